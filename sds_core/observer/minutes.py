"""Emits the figures of a view for each minute, for the history.

A minute of event time is emitted if the view's figures at its end differ from those of
the last emitted minute. If none was emitted yet, they are compared with the figures of
a new view. The clock, the names of taps and momentary values are totals, but they are
not compared. Therefore, no minute is emitted if only the clock changes, or if Kafka
only delivers earlier records again.

A minute includes every frame and every deadline before its end. A frame or deadline
exactly at its end belongs to the next minute.
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
        totals: The view's totals at the end of the minute, not their changes during the
            minute.
    """

    minute_ms: int
    totals: Totals


class GroupMinute(Minute[Totals], Generic[Totals], array_like=True):
    """A view's part of a group's figures, at the end of one minute.

    Each subclass must have a msgspec tag. The tag is stored with the minute, and
    distinguishes minutes from incidents.
    """

    group: str


class MinutesState(msgspec.Struct, array_like=True):
    """The part of a view's state that `Minutes` needs.

    Attributes:
        emitted: Fingerprint of the figures of the last emitted minute; None if none was
            emitted.
    """

    emitted: int | None = None


@native
class Minutes(Generic[Totals, MinuteOf]):
    """Emits each minute in which a figure changed.

    A minute needs a check at its end only if a figure might have changed in the minute.
    If the check finds no change, the minute is not emitted.

    Attributes:
        check_ms: End of the next minute in which a figure might change, Unix ms.

    Args:
        totals: The view's totals, a msgspec struct. The view changes this struct in
            place.
        momentary: Names of the totals' momentary fields. Each name is mapped to the
            constant that replaces the field's value in emitted minutes.
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
        # The current minute must be checked, because a figure may have changed in this
        # minute before a restart.
        self.check_ms = _end_of_minute(clock_ms)

    def might_change(self, clock_ms: int) -> None:
        """Record that a figure may change when the clock is `clock_ms`, Unix ms."""
        if clock_ms < self.check_ms - MINUTE_MS:
            self.check_ms = _end_of_minute(clock_ms)

    def check(self, next_change_ms: int | None) -> None:
        """Emit the minute that ends at `check_ms`, if a figure has changed.

        At the call, the view's totals must be those at the end of the minute.

        `next_change_ms` is when a figure may next change without a frame or a deadline,
        Unix ms; None if never.
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
        """Emit the last figures of a view that ends before the current minute ends.

        The last figures are emitted as the figures of the previous minute. As figures
        of the current minute, they could be replaced by those of a new view that has
        the same name.
        """
        self.check_ms = _end_of_minute(clock_ms) - MINUTE_MS
        self.check(None)

    def deadline_ms(self, clock_ms: int) -> int | None:
        """When the current minute must be emitted, Unix ms; None if nothing changed."""
        if self._fingerprint(self._totals) == self._emitted_last():
            return None
        return _end_of_minute(clock_ms) - 1

    def take(self) -> list[MinuteOf]:
        """Return the minutes that were emitted since the last call, in order."""
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
