"""When the next sync message is due."""

from __future__ import annotations

from random import Random
from typing import Final

from sds_core.message_channel.profile import Profile

# How far traffic moves the next sync message, as a factor on the time drawn: sooner
# after received content, to acknowledge it; later after one of our own. The factors of
# js-waku's ReliableChannel.
AFTER_CONTENT_SENT: Final = 1.0
AFTER_CONTENT_RECEIVED: Final = 0.5
AFTER_SYNC_RECEIVED: Final = 1.0
AFTER_SYNC_SENT: Final = 2.0


class SyncTimer:
    """Plans sync messages so that a busy channel needs few (SDS, "Periodic Sync").

    Attributes:
        next_ms: when the next one is due, Unix ms.
    """

    __slots__ = (
        "_interval_ms",
        "_least_share",
        "_random",
        "_requests_factor",
        "next_ms",
    )

    next_ms: int

    def __init__(self, profile: Profile, random: Random, now_ms: int) -> None:
        self._set(profile, random, now_ms)
        self.next_ms += self._delay_ms(AFTER_CONTENT_SENT)

    @classmethod
    def planned(cls, profile: Profile, random: Random, next_ms: int) -> SyncTimer:
        """Return a timer with a given next time; draws nothing from `random`."""
        self = cls.__new__(cls)
        self._set(profile, random, next_ms)
        return self

    def put_off(self, factor: float, now_ms: int, *, requests_wait: bool) -> None:
        """Draw the next time again, because other traffic replaced a sync message.

        Args:
            factor: One of the factors above, by the kind of traffic.
            now_ms: Unix ms.
            requests_wait: Whether repair requests wait for a frame: the next time may
                only become earlier then (SDS-R guide, "Periodic Sync Messages").
        """
        # With a fixed interval only our own sync messages count (nim-sds).
        if self._least_share is not None:
            if requests_wait:
                factor *= self._requests_factor
            planned_ms = now_ms + self._delay_ms(factor)
            if not requests_wait or planned_ms < self.next_ms:
                self.next_ms = planned_ms

    def sent(self, now_ms: int, *, requests_wait: bool) -> None:
        """Draw the next time after our own sync message, sent or skipped as empty."""
        factor = AFTER_SYNC_SENT * (self._requests_factor if requests_wait else 1.0)
        self.next_ms = now_ms + self._delay_ms(factor)

    def _set(self, profile: Profile, random: Random, next_ms: int) -> None:
        self._interval_ms = profile.sync_interval_ms
        self._least_share = profile.sync_least_share
        self._requests_factor = profile.sync_requests_factor
        self._random = random
        self.next_ms = next_ms

    def _delay_ms(self, factor: float) -> int:
        if self._least_share is None:
            return self._interval_ms
        share = self._least_share + self._random.random()
        # At least 1 ms: a timer that is due again immediately would never end.
        return 1 + int(share * self._interval_ms * factor)
