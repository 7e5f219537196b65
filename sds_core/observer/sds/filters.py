"""The bloom filter of each participant over time: growth and roll-over.

Observer model, sections 5 and 9. The filters themselves are not kept, only their fill.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sds_core.observer.sds.digest import Filter, SeenFrame
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect, FrameKind, estimated_ids


class FilterTrace(msgspec.Struct, array_like=True):
    """One participant's filter, by the frame with its greatest lamport timestamp.

    Attributes:
        dialect, m_bits, k: Of the filter; the other dialect begins a new trace.
        lamport: Of the frame.
        time_ms: Event time of the frame.
        bits_set: How many bits were 1.
        rolled_ms: Event time of the frame that showed the latest roll-over; None if
            none did.
        grown_from: Event time and ids of an earlier frame, from which growth is
            reckoned, one to two horizons back once there is so much.
        grown_next: Of the frame that follows it in this, a horizon later.
    """

    dialect: Dialect
    m_bits: int
    k: int
    lamport: int
    time_ms: int
    bits_set: int
    rolled_ms: int | None = None
    grown_from: tuple[int, float] | None = None
    grown_next: tuple[int, float] | None = None


class Filters:
    """Follows the filters that first copies carry."""

    def __init__(
        self, settings: ObserverSettings, traces: dict[int, FilterTrace]
    ) -> None:
        self._settings = settings
        self._traces = traces

    @property
    def traces(self) -> Mapping[int, FilterTrace]:
        """Traces by participant index; `UNKNOWN` for all senders without a name."""
        return self._traces

    def rolled_ms(self, by: int) -> int | None:
        """When the participant's filter last rolled over, as far as frames show."""
        trace = self._traces.get(by)
        return None if trace is None else trace.rolled_ms

    def has_rolled(self, by: int, frame: SeenFrame) -> bool:
        """Whether the participant's newest frame, this one, showed a roll-over."""
        return self._traces[by].rolled_ms == frame.time_ms

    def rolled(self, by: int, frame: SeenFrame) -> None:
        """The participant's newest frame, this one, shows a roll-over."""
        trace = self._traces[by]
        trace.rolled_ms = frame.time_ms
        trace.grown_from = trace.grown_next = None
        self._grow(trace)

    def first_copy_by(self, frame: SeenFrame, by: int) -> bool:
        """Look at the filter of a participant's first copy.

        Returns:
            Whether it is the participant's newest: a first copy that is seen late
            carries an old filter.
        """
        filter_ = frame.filter
        if filter_ is None or frame.kind is FrameKind.EPHEMERAL:
            return False
        trace = self._traces.get(by)
        if trace is None or trace.dialect is not filter_.dialect:
            self._traces[by] = trace = FilterTrace(
                filter_.dialect,
                filter_.m_bits,
                filter_.k,
                frame.lamport,
                frame.time_ms,
                filter_.bits_set,
            )
        elif frame.lamport <= trace.lamport:
            return False
        else:
            if _has_rolled(trace, filter_):
                trace.rolled_ms = frame.time_ms
                trace.grown_from = trace.grown_next = None
            trace.m_bits, trace.k = filter_.m_bits, filter_.k
            trace.lamport = frame.lamport
            trace.time_ms = frame.time_ms
            trace.bits_set = filter_.bits_set
        self._grow(trace)
        return True

    def forget_before(self, clock_ms: int) -> None:
        """Forget filters of participants that have been silent since."""
        for by in [by for by, t in self._traces.items() if t.time_ms < clock_ms]:
            del self._traces[by]

    def _grow(self, trace: FilterTrace) -> None:
        now = trace.time_ms, estimated_ids(trace.bits_set, trace.m_bits, trace.k)
        if trace.grown_from is None or trace.grown_next is None:
            trace.grown_from = trace.grown_next = now
        elif trace.time_ms - trace.grown_next[0] >= self._settings.horizon_ms:
            trace.grown_from, trace.grown_next = trace.grown_next, now


def _has_rolled(trace: FilterTrace, filter_: Filter) -> bool:
    """Whether the fill fell, or a filter of another size was made of what was kept."""
    is_other = (filter_.m_bits, filter_.k) != (trace.m_bits, trace.k)
    return is_other or filter_.bits_set < trace.bits_set
