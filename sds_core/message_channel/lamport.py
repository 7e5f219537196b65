"""The Lamport timestamp of a participant in one channel."""

from __future__ import annotations

from sds_core.message_channel.profile import LamportRule, Profile

MAX_ADOPTED = 1 << 62
"""Greatest timestamp that is ever adopted: counting on from it stays within 64 bits.

It is 146 million years in ms; only hostile frames carry more.
"""


class LamportTimestamp:
    """Counts as its profile's rule says; times in ms, the value in the rule's unit.

    Attributes:
        value: the participant's current timestamp.
    """

    __slots__ = ("_max_ahead_ms", "_rule", "_unit_ms", "value")

    def __init__(self, profile: Profile, now_ms: int) -> None:
        self._rule = profile.lamport_rule
        self._unit_ms = profile.lamport_unit_ms
        self._max_ahead_ms = profile.lamport_max_ahead_ms
        self.value = now_ms // self._unit_ms

    def next(self, now_ms: int) -> int:
        """Return the timestamp of the next frame; `value` is set once it is made."""
        clock = now_ms // self._unit_ms
        if self._rule is LamportRule.COUNT:
            return self.value + 1
        if self._rule is LamportRule.FOLLOW_CLOCK:
            return max(clock, self.value + 1)
        return max(clock, self.value) + 1

    def tick(self, received: int, now_ms: int) -> None:
        """Move on at a reception, where the rule says so, within the limit."""
        if self._rule is LamportRule.TICK and received <= self.limit(now_ms):
            self.value = max(received, self.value) + 1

    def limit(self, now_ms: int) -> int:
        """Return the greatest timestamp that is adopted now."""
        if self._max_ahead_ms is None:
            return MAX_ADOPTED
        return (now_ms + self._max_ahead_ms) // self._unit_ms
