"""Whether something may have passed all nodes that a mirror listens to.

A node keeps what it hears for the mirror in a small cache that is lost when it
restarts and overflows silently. What one node lost, another may have heard.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_LONG_AGO_MS = 0
"""Before any node was heard, so that none covers it."""


@dataclass
class _Heard:
    """One node: heard without a break from one time to another, Unix ms."""

    since_ms: int | None = None
    until_ms: int | None = None


class Coverage:
    """Follows how long each node has been heard without a break.

    Args:
        nodes: Their names.
        patience_ms: A node that answered so lately counts as heard up to now: the
            nodes are not asked at one moment.
        goes_on: Whether the mirror ran before: what the nodes kept for it since may
            have been lost too.
    """

    def __init__(
        self, nodes: Iterable[str], patience_ms: int, goes_on: bool = False
    ) -> None:
        until_ms = _LONG_AGO_MS if goes_on else None
        self._heard = {node: _Heard(until_ms=until_ms) for node in nodes}
        self._patience_ms = patience_ms

    def heard(self, node: str, at_ms: int) -> None:
        """A node answered with all that it had heard since its last answer."""
        heard = self._heard[node]
        if heard.since_ms is None:
            heard.since_ms = at_ms
        heard.until_ms = at_ms

    def broke(self, node: str, at_ms: int) -> bool:
        """A node may have lost something since its last answer.

        Returns:
            Whether that may have been lost for good: no other node was heard all that
            time. Once only until the node answers again; and of a node that a new
            mirror has not heard yet, nothing is known to be lost.
        """
        from_ms = self._heard[node].until_ms
        self._heard[node] = _Heard()
        if from_ms is None:
            return False
        return not any(
            self._covers(other, from_ms, at_ms)
            for name, other in self._heard.items()
            if name != node
        )

    def is_listening(self, since_ms: int) -> bool:
        """Whether any node has answered since then, Unix ms."""
        return any(
            heard.until_ms is not None and heard.until_ms >= since_ms
            for heard in self._heard.values()
        )

    def _covers(self, other: _Heard, from_ms: int, to_ms: int) -> bool:
        return (
            other.since_ms is not None
            and other.until_ms is not None
            and other.since_ms <= from_ms
            and other.until_ms >= to_ms - self._patience_ms
        )
