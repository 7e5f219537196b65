"""Emits the figures of a view per minute for the history.

A minute of event time is emitted if the view's figures have changed since the
previously emitted minute. The first minute is emitted if the figures differ from those
of a new view. All totals are figures, except the clock, the names of taps, and
momentary values. If only the clock changes, or Kafka delivers copies again, no minute
is emitted.

A minute includes every frame and every deadline before its end, and nothing at its end
or later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import msgspec

from sds_core.native import native
from sds_core.observer.deadlines import NEVER
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.view_totals import ViewTotals, replaced

MINUTE_MS = 60_000

_ENCODER = msgspec.msgpack.Encoder()

Totals = TypeVar("Totals", bound=ViewTotals)
MinuteOf = TypeVar("MinuteOf")


class Minute(msgspec.Struct, Generic[Totals], array_like=True):
    """The figures of a view at the end of one minute.

    Attributes:
        minute_ms: Start of the minute, Unix ms of event time; a multiple of 60,000.
        totals: Absolute figures at the end of the minute.
    """

    minute_ms: int
    totals: Totals


class GroupMinute(Minute[Totals], Generic[Totals], array_like=True):
    """A view's part of a group's figures, at the end of one minute.

    A subclass has a persisted tag, which distinguishes minutes from incidents.
    """

    group: str


class MinutesState(msgspec.Struct, array_like=True):
    """The part of a view's state about emitted minutes.

    Attributes:
        emitted: Fingerprint of the figures of the last emitted minute; None before the
            first.
    """

    emitted: int | None = None


@native
class Minutes(Generic[Totals, MinuteOf]):
    """Emits each minute in which a figure changed.

    Only the ends of minutes in which something might have changed are checked. A check
    that finds no change emits nothing.

    Attributes:
        check_ms: The end of the next minute in which a figure might change, Unix ms.

    Args:
        totals: The view's figures, a msgspec struct that the view keeps changing.
        momentary: Maps each momentary field of the totals to the value that the field
            has in minutes.
    """

    _momentary: Mapping[str, Any]
    _new_minute: Callable[[int, Totals], MinuteOf]
    _totals: Totals
    _state: MinutesState
    _ended: list[MinuteOf]
    check_ms: int

    def __init__(
        self,
        new_minute: Callable[[int, Totals], MinuteOf],
        totals: Totals,
        state: MinutesState,
        clock_ms: int,
        momentary: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._momentary = momentary
        self._new_minute = new_minute
        self._totals = totals
        self._state = state
        self._ended = []
        # Check this minute, because a figure may have changed in it before a restart.
        self.check_ms = _end_of_minute(clock_ms)

    def might_change(self, clock_ms: int) -> None:
        """Record that a figure may change at this clock, Unix ms."""
        if clock_ms < self.check_ms - MINUTE_MS:
            self.check_ms = _end_of_minute(clock_ms)

    def check(self, next_change_ms: int | None) -> None:
        """Check the minute that ends at `check_ms`; the totals are valid at its end.

        At `next_change_ms`, Unix ms, a gauge may next change without a frame; None for
        never.
        """
        figures = self._fingerprint(self._totals)
        if figures != self._emitted_last():
            self._state.emitted = figures
            minute_ms = self.check_ms - MINUTE_MS
            encoded = _ENCODER.encode(replaced(self._totals, **self._momentary))
            copy = msgspec.msgpack.decode(encoded, type=type(self._totals))
            self._ended.append(self._new_minute(minute_ms, copy))
        self.check_ms = NEVER
        if next_change_ms is not None:
            self.might_change(next_change_ms)

    def finish(self, clock_ms: int) -> None:
        """Emit the last figures of a view that ends during the running minute.

        The last figures are put into the previous minute. In the running minute,
        figures of a new view with the same name would replace the last figures.
        """
        self.check_ms = _end_of_minute(clock_ms) - MINUTE_MS
        self.check(None)

    def deadline_ms(self, clock_ms: int) -> int | None:
        """When the running minute must be emitted; None if no figure has changed."""
        if self._fingerprint(self._totals) == self._emitted_last():
            return None
        return _end_of_minute(clock_ms) - 1

    def take(self) -> list[MinuteOf]:
        """Return the minutes that ended since the last call, in order."""
        taken, self._ended = self._ended, []
        return taken

    def _emitted_last(self) -> int:
        last = self._state.emitted
        return self._fingerprint(type(self._totals)()) if last is None else last

    def _fingerprint(self, totals: Totals) -> int:
        figures = replaced(totals, clock_ms=0, observers=[], **self._momentary)
        return fingerprint(_ENCODER.encode(figures))


@native
def _end_of_minute(clock_ms: int) -> int:
    return clock_ms - clock_ms % MINUTE_MS + MINUTE_MS
