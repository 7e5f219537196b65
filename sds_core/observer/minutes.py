"""The figures of a channel minute by minute, for a history that lasts.

A minute of event time is told if and only if the channel's figures at its end differ
from those of the minute told last, or, before the first, from those of a channel of
which nothing was seen. Figures are all totals but the clock and the names of taps, so
the clock moving by itself and further copies that Kafka delivers change nothing.

The end of a minute is passed as a deadline at its last millisecond is: every frame and
every deadline before the end counts, and nothing that comes at the end or later.
"""

from __future__ import annotations

import msgspec

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.sds.totals import ChannelTotals

MINUTE_MS = 60_000

_NEVER = 1 << 62

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ChannelTotals)


class ChannelMinute(msgspec.Struct, array_like=True, tag=True):
    """What a channel had come to at the end of one minute.

    Attributes:
        minute_ms: Start of the minute, Unix ms of event time; a multiple of 60,000.
        totals: Absolute, with the end of the minute as their clock.
    """

    minute_ms: int
    totals: ChannelTotals


class MinutesState(msgspec.Struct, array_like=True):
    """What is kept of the minutes told.

    Attributes:
        told: Fingerprint of the figures of the latest; None if none was told.
    """

    told: int | None = None


class Minutes:
    """Tells each minute in which a figure changed.

    It is enough to look at the end of each minute in which something might have
    changed: a look in vain tells nothing.

    Args:
        totals: The channel's.
        state: Kept between batches.
        clock_ms: The channel's clock.
    """

    def __init__(
        self, totals: ChannelTotals, state: MinutesState, clock_ms: int
    ) -> None:
        self._totals = totals
        self._state = state
        self._told: list[ChannelMinute] = []
        # What happened before a restart is not known: that minute is looked at.
        self._look_ms = _end_of_minute(clock_ms)

    @property
    def look_ms(self) -> int:
        """The end of the next minute in which a figure might change, Unix ms."""
        return self._look_ms

    def might_change(self, clock_ms: int) -> None:
        """At this clock something happens, or may happen by itself."""
        if clock_ms < self._look_ms - MINUTE_MS:
            self._look_ms = _end_of_minute(clock_ms)

    def look(self, next_change_ms: int | None) -> None:
        """The clock stands at `look_ms`, and the totals are as of it.

        Args:
            next_change_ms: When a gauge may next change by itself, as a deadline; None
                if never.
        """
        figures = _fingerprint(self._totals)
        if figures != self._told_last():
            self._state.told = figures
            minute_ms = self._look_ms - MINUTE_MS
            self._told.append(ChannelMinute(minute_ms, _copy(self._totals)))
        self._look_ms = _NEVER
        if next_change_ms is not None:
            self.might_change(next_change_ms)

    def deadline_ms(self, clock_ms: int) -> int | None:
        """When the running minute has to be told; None if it has nothing to tell.

        Args:
            clock_ms: The channel's clock; the totals are as of it.
        """
        if _fingerprint(self._totals) == self._told_last():
            return None
        return _end_of_minute(clock_ms) - 1

    def take(self) -> list[ChannelMinute]:
        """The minutes told since the last call, in order."""
        taken, self._told = self._told, []
        return taken

    def _told_last(self) -> int:
        told = self._state.told
        return _fingerprint(ChannelTotals()) if told is None else told


def _end_of_minute(clock_ms: int) -> int:
    return clock_ms - clock_ms % MINUTE_MS + MINUTE_MS


def _fingerprint(totals: ChannelTotals) -> int:
    """Fingerprint of the figures."""
    figures = msgspec.structs.replace(totals, clock_ms=0, observers=[])
    return fingerprint(_ENCODER.encode(figures))


def _copy(totals: ChannelTotals) -> ChannelTotals:
    return _DECODER.decode(_ENCODER.encode(totals))
