"""Decides whether a message may be lost on all nodes from which a mirror reads.

A node stores messages for the mirror in a small cache. If the node restarts, the cache
is empty; if the cache is full, it drops messages silently. Another node may still have
these messages.
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
            It allows for nodes that are read at different times.
        goes_on: Whether the mirror ran before. If so, messages that nodes received
            after that run can also be lost.
    """

    def __init__(
        self, nodes: Iterable[str], patience_ms: int, goes_on: bool = False
    ) -> None:
        until_ms = _LONG_AGO_MS if goes_on else None
        self._spans = {node: _Span(until_ms=until_ms) for node in nodes}
        self._patience_ms = patience_ms

    def answered(self, node: str, at_ms: int) -> None:
        """Record that a node returned all messages since its last answer."""
        span = self._spans[node]
        if span.since_ms is None:
            span.since_ms = at_ms
        span.until_ms = at_ms

    def interrupted(self, node: str, at_ms: int) -> bool:
        """Record that a node may have lost messages since its last answer.

        The result is True if these messages may be lost forever: no other node has
        returned all messages since this node's last answer. Further calls return False
        until this node answers again. If a new mirror has not read this node yet, the
        result is False.
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
        """Return whether any node has answered since a time, Unix ms."""
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
