"""The Lamport timestamp of a participant in one channel."""

from __future__ import annotations

from sds_core.message_channel.profile import LamportRule, Profile

CENTURY_MS = 36_525 * 86_400_000
"""Default maximum time by which a Lamport timestamp may be ahead of the clock, ms.

A message whose timestamp exceeds this limit is ignored. The limit moves with the clock,
so no participant can raise a channel's timestamps so far that all later messages are
ignored.
"""


class LamportTimestamp:
    """A Lamport timestamp; the profile defines its `LamportRule` and its unit."""

    __slots__ = ("_max_ahead_ms", "_rule", "_unit_ms", "value")

    def __init__(self, profile: Profile, now_ms: int) -> None:
        self._rule = profile.lamport_rule
        self._unit_ms = profile.lamport_unit_ms
        ahead_ms = profile.lamport_max_ahead_ms
        self._max_ahead_ms = CENTURY_MS if ahead_ms is None else ahead_ms
        self.value = now_ms // self._unit_ms

    def next(self, now_ms: int) -> int:
        """Return the timestamp for the next sent frame; `value` does not change."""
        clock = now_ms // self._unit_ms
        if self._rule is LamportRule.COUNT:
            return self.value + 1
        if self._rule is LamportRule.FOLLOW_CLOCK:
            return max(clock, self.value + 1)
        return max(clock, self.value) + 1

    def tick(self, received: int, now_ms: int) -> None:
        """If the rule is TICK, increase our timestamp, because a frame was received."""
        if self._rule is LamportRule.TICK and received <= self.limit(now_ms):
            self._raise_to(max(received, self.value) + 1, now_ms)

    def adopt(self, delivered: int, now_ms: int) -> None:
        """If a delivered message has a higher timestamp, raise our timestamp to it."""
        if self._rule is LamportRule.TICK:
            self._raise_to(delivered, now_ms)
        else:
            self.value = max(self.value, delivered)

    def limit(self, now_ms: int) -> int:
        """Return the greatest message timestamp that is accepted now."""
        return (now_ms + self._max_ahead_ms) // self._unit_ms

    def _raise_to(self, value: int, now_ms: int) -> None:
        """Raise the timestamp to `value`, but not beyond half of the maximum lead.

        The lead is the time by which the timestamp is ahead of the clock. Only sent
        frames may use the other half of the maximum lead. If received frames could also
        use that half, our timestamp could reach the limit, and all participants would
        ignore our next frames.
        """
        reach = (now_ms + self._max_ahead_ms // 2) // self._unit_ms
        self.value = max(self.value, min(value, reach))
