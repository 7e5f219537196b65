"""Groups of a node, and the peers in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator


class Groups:
    """Which peers are in which group.

    Args:
        mark: Called with the id of each group that changes.
    """

    __slots__ = ("_mark", "_peers", "_shared")

    def __init__(self, mark: Callable[[bytes], None]) -> None:
        # Inner dictionaries are used as sets that keep their order.
        self._peers: dict[bytes, dict[bytes, None]] = {}
        self._shared: Counter[bytes] = Counter()
        self._mark = mark

    def __contains__(self, group_id: bytes) -> bool:
        """Return whether the node is in a group."""
        return group_id in self._peers

    def __iter__(self) -> Iterator[bytes]:
        """Yield the ids of all groups."""
        return iter(self._peers)

    def peers(self, group_id: bytes) -> tuple[bytes, ...]:
        """Return the peers of a group in the order of their adding."""
        return tuple(self._peers.get(group_id, ()))

    def has_peer(self, peer: bytes) -> bool:
        """Return whether a peer is in any group."""
        return peer in self._shared

    def shares(self, peer: bytes, group_id: bytes) -> bool:
        """Return whether a peer is in a group of ours."""
        return peer in self._peers.get(group_id, ())

    def add(self, group_id: bytes) -> None:
        """Add a group; no effect if it is known."""
        if group_id not in self._peers:
            self._peers[group_id] = {}
            self._mark(group_id)

    def add_peer(self, group_id: bytes, peer: bytes) -> None:
        """Add a peer to a known group; no effect if it is in it."""
        peers = self._peers[group_id]
        if peer not in peers:
            peers[peer] = None
            self._shared[peer] += 1
            self._mark(group_id)

    def remove_peer(self, group_id: bytes, peer: bytes) -> None:
        """Remove a peer from a group; no effect if it is not in it."""
        peers = self._peers.get(group_id, {})
        if peer in peers:
            del peers[peer]
            self._shared[peer] -= 1
            if not self._shared[peer]:
                del self._shared[peer]
            self._mark(group_id)
