"""Tracks how participants' bloom filters grow and roll over (docs/figures.md, 5, 9).

Only the number of each filter's set bits is stored, not the bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from sds_core.native import native
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.wire import Dialect, FrameKind, estimated_ids


class FilterTrace(msgspec.Struct, array_like=True):
    """What is known about a participant's newest filter.

    Attributes:
        dialect, m_bits, k: Parameters of the filter. If a participant changes its
            dialect, a new trace begins.
        lamport: Lamport timestamp of the frame with the filter. No other frame of this
            trace has a higher timestamp.
        rolled_ms: Event time of the frame that showed the latest roll-over, Unix ms;
            None if no roll-over was seen.
        grown_from: Growth is computed from an earlier frame to the newest frame. The
            pair has the earlier frame's event time, and the estimated number of ids in
            its filter. The earlier frame began the trace, showed the latest roll-over,
            or is one to two retention windows older than the newest frame.
        grown_next: The same pair of a frame after the frame of `grown_from`. When the
            newest frame is one retention window later, this pair replaces `grown_from`.
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


@native
@dataclass(slots=True)
class Filters:
    """Tracks the filters that participants send in first copies.

    Attributes:
        traces: Traces by participant index; all senders without a name share the index
            `UNKNOWN`.
        has_rolled: Whether the most recently processed first copy showed a roll-over of
            its sender's filter.
    """

    _settings: RuleSettings
    traces: dict[int, FilterTrace]
    has_rolled: bool = False

    def rolled_ms(self, by: int) -> int | None:
        """Event time of a participant's latest roll-over; None if none was seen."""
        trace = self.traces.get(by)
        return None if trace is None else trace.rolled_ms

    def rolled(self, by: int, frame: SeenFrame) -> None:
        """Record that a frame shows a roll-over of its sender's newest filter."""
        trace = self.traces[by]
        self.has_rolled = True
        trace.rolled_ms = frame.time_ms
        trace.grown_from = trace.grown_next = None
        self._grow(trace)

    def first_copy_by(self, frame: SeenFrame, by: int) -> bool:
        """Record a first copy's filter; return whether it is the sender's newest.

        If a first copy is seen late, the sender's newest filter may be known already.
        """
        self.has_rolled = False
        filter_ = frame.filter
        if filter_ is None or frame.kind is FrameKind.EPHEMERAL:
            return False
        trace = self.traces.get(by)
        if trace is None and len(self.traces) >= self._settings.followed:
            return False
        if trace is None or trace.dialect is not filter_.dialect:
            self.traces[by] = trace = FilterTrace(
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
                self.has_rolled = True
                trace.rolled_ms = frame.time_ms
                trace.grown_from = trace.grown_next = None
            trace.m_bits, trace.k = filter_.m_bits, filter_.k
            trace.lamport = frame.lamport
            trace.time_ms = frame.time_ms
            trace.bits_set = filter_.bits_set
        self._grow(trace)
        return True

    def forget_before(self, clock_ms: int) -> None:
        """Drop each trace whose newest frame has an earlier event time, Unix ms."""
        for by in [by for by, t in self.traces.items() if t.time_ms < clock_ms]:
            del self.traces[by]

    def _grow(self, trace: FilterTrace) -> None:
        now = trace.time_ms, estimated_ids(trace.bits_set, trace.m_bits, trace.k)
        if trace.grown_from is None or trace.grown_next is None:
            trace.grown_from = trace.grown_next = now
        elif trace.time_ms - trace.grown_next[0] >= self._settings.horizon_ms:
            trace.grown_from, trace.grown_next = trace.grown_next, now


def _has_rolled(trace: FilterTrace, filter_: Filter) -> bool:
    """Whether `filter_` has fewer set bits, or other parameters, than the trace."""
    is_other = (filter_.m_bits, filter_.k) != (trace.m_bits, trace.k)
    return is_other or filter_.bits_set < trace.bits_set
