"""Messages that were refused because their group is not shared with their sender.

Nodes seldom add each other to a group at the same moment, so the group may be shared
later. Then these messages are requested. They are not part of the state.
"""

from __future__ import annotations

from hashlib import sha256


class ForeignMessages:
    """Groups and ids of refused messages by peer, the oldest first.

    Args:
        most: Ids that are stored for one peer; the oldest is dropped.
    """

    __slots__ = ("_groups", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        # Hashes of ids: that of a foreign group may have any length.
        self._groups: dict[bytes, dict[bytes, bytes]] = {}

    def add(self, peer: bytes, group_id: bytes, message_id: bytes) -> None:
        """Store the id of a message that a peer sent."""
        groups = self._groups.setdefault(peer, {})
        groups[message_id] = sha256(group_id).digest()
        if len(groups) > self._most:
            del groups[next(iter(groups))]

    def take(self, peer: bytes, group_id: bytes) -> list[bytes]:
        """Return a peer's ids in one group, and drop them."""
        groups = self._groups.get(peer, {})
        wanted = sha256(group_id).digest()
        taken = [one for one, group in groups.items() if group == wanted]
        for one in taken:
            del groups[one]
        return taken

    def remove(self, peer: bytes) -> None:
        """Drop all ids of a peer."""
        self._groups.pop(peer, None)
