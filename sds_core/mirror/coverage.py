"""Decides whether all nodes from which a mirror reads may have lost a message.

A node stores messages for the mirror in a small cache. If the node restarts, it loses
the cached messages. If the cache is full, it drops messages silently. Another node may
still have the lost messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_LONG_AGO_MS = 0
"""A time before the first answer of any node."""


@dataclass
class _Span:
    """Period in which a node returned all messages without interruption, Unix ms."""

    since_ms: int | None = None
    until_ms: int | None = None


class Coverage:
    """Records since when each node has returned all messages without interruption.

    Args:
        patience_ms: Maximum age at which the last answer of a node counts as current.
            The maximum is more than 0, because nodes are read at different times.
        goes_on: Whether the mirror ran before. If so, the mirror can also lose messages
            that nodes received between the previous run and this run.
    """

    def __init__(
        self, nodes: Iterable[str], patience_ms: int, goes_on: bool = False
    ) -> None:
        until_ms = _LONG_AGO_MS if goes_on else None
        self._spans = {node: _Span(until_ms=until_ms) for node in nodes}
        self._patience_ms = patience_ms

    def answered(self, node: str, at_ms: int) -> None:
        """Record that a node returned all messages received since its last answer."""
        span = self._spans[node]
        if span.since_ms is None:
            span.since_ms = at_ms
        span.until_ms = at_ms

    def interrupted(self, node: str, at_ms: int) -> bool:
        """Record that a node may have lost messages received since its last answer.

        If no other node has returned all messages since this node's last answer, the
        messages may be lost forever, and the result is True. Further calls for this
        node return False until it answers again. If the mirror is new and has not read
        this node yet, the result is False.
        """
        from_ms = self._spans[node].until_ms
        self._spans[node] = _Span()
        if from_ms is None:
            return False
        return not any(
            self._covers(other, from_ms, at_ms)
            for name, other in self._spans.items()
            if name != node
        )

    def has_answer_since(self, since_ms: int) -> bool:
        """Return whether any node has answered at or after `since_ms`, Unix ms."""
        return any(
            span.until_ms is not None and span.until_ms >= since_ms
            for span in self._spans.values()
        )

    def _covers(self, other: _Span, from_ms: int, to_ms: int) -> bool:
        return (
            other.since_ms is not None
            and other.until_ms is not None
            and other.since_ms <= from_ms
            and other.until_ms >= to_ms - self._patience_ms
        )
