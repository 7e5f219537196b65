"""Judges a tap by its sequence numbers and heartbeats (docs/figures.md, 8).

A tap's records are in all partitions. A tap's health never changes a channel's figures,
but shows how reliable these figures are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import groupby, repeat
from operator import attrgetter, itemgetter
from typing import Annotated

import msgspec
import numpy as np

from sds_core.native import native
from sds_core.observer import blob
from sds_core.observer.record import NO_SEQ
from sds_core.observer.rule_settings import RuleSettings, rule_settings
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.summing import least

BLOB_VERSION = 5
"""Version of the blobs of `TapView.to_blob`. Versions 1 to 3 have no checksum."""

CHECKSUM_SINCE = 4

MAX_HOLE = 100_000
"""If `seq` increases by more than this number, the tap counts as restarted."""

MAX_HOLES = 10_000
"""Maximum number of sequence gaps that wait for late records.

If a tap sends 1,000 records per second and loses every second record, 7,500 gaps wait.
Beyond the limit, the oldest gap counts as missing at once, which bounds the cost of a
record.
"""

_INT_BYTES = 8

MAX_SPANS = 50
"""Maximum number of stored capture gaps, whatever their age.

A batch of several hours may have incidents during many gaps. Adjacent gaps are merged,
so a tap rarely reaches this limit.
"""


class TapTotals(msgspec.Struct, array_like=True):
    """Figures of one tap (docs/figures.md, 8).

    Attributes:
        last_seen_ms: Event time of the tap's last record or heartbeat. If the tap is
            silent for the retention window, the value becomes 0, and the tap is not
            published.
        last_hole_ms: When the newest capture gap was found; None if no gap was found. A
            capture gap is a silence of more than 15 s, or a sequence number that is
            missing for more than 15 s.
        holes: Periods [from, to] of event time in which the tap may have missed
            records: disjoint, in order of time, only the newest `tap_view.MAX_SPANS`.
        hole_since_ms: Start of the latest series of capture gaps; None if no gap was
            found. In a series, each gap is at most a verdict window after the previous
            gap. The series ends at `last_hole_ms`.
        first_seen_ms: Event time of the first record since the tap was last forgotten.
            0 before this record, or if release 0.12 or earlier read this record.
    """

    # For all taps together, this is the minimum, so that an alert on silence covers
    # each tap.
    last_seen_ms: Annotated[int, least] = 0
    missing_records: int = 0
    last_hole_ms: int | None = None
    holes: list[tuple[int, int]] = []
    hole_since_ms: int | None = None
    first_seen_ms: Annotated[int, least] = 0


class TapDigest(msgspec.Struct, array_like=True):
    """Frames and heartbeats of one tap in one chunk of one partition.

    Attributes:
        times: For each frame, the maximum record time of the partition so far, Unix ms.
            Encoded ``int64``, shape (n,).
        seqs: Sequence numbers of the frames; `NO_SEQ` for a frame without a number.
            Encoded like `times`.
        heartbeat_times: Times of heartbeats, encoded ``int64``, shape (h,).
        heartbeat_seqs: For each heartbeat, the last sequence number that the tap
            assigned to a frame. This frame may arrive later. Encoded like
            `heartbeat_times`.
        own_times: Record times of the frames according to the tap's own clock. Encoded
            like `times`; empty if all values are the same as in `times`.
        heartbeat_own_times: The same times for heartbeats.
    """

    times: bytes
    seqs: bytes
    heartbeat_times: bytes
    heartbeat_seqs: bytes
    own_times: bytes = b""
    heartbeat_own_times: bytes = b""


@native
class TapDigester:
    """Collects the records of one tap in one chunk."""

    _times: array[int]
    _seqs: array[int]
    _heartbeat_times: array[int]
    _heartbeat_seqs: array[int]
    _own_times: array[int]
    _heartbeat_own_times: array[int]

    def __init__(self) -> None:
        self._times, self._seqs = array("q"), array("q")
        self._heartbeat_times, self._heartbeat_seqs = array("q"), array("q")
        self._own_times, self._heartbeat_own_times = array("q"), array("q")

    def add_frame(self, clock_ms: int, seq: int, own_ms: int) -> None:
        """Add a record that is not a heartbeat.

        `clock_ms` is the maximum record time of the partition up to the record, and
        `own_ms` is the time of the record; both are Unix ms. If the record has no
        sequence number, `seq` is `NO_SEQ`.
        """
        self._times.append(clock_ms)
        self._seqs.append(seq)
        self._own_times.append(own_ms)

    def add_heartbeat(self, clock_ms: int, seq: int, own_ms: int) -> None:
        """Add a heartbeat; see `add_frame`. `seq` is the number of the last frame."""
        self._heartbeat_times.append(clock_ms)
        self._heartbeat_seqs.append(seq)
        self._heartbeat_own_times.append(own_ms)

    def finish(self) -> TapDigest:
        """Return the digest of all records that were added."""
        own, heartbeat_own = self._own_times, self._heartbeat_own_times
        return TapDigest(
            self._times.tobytes(),
            self._seqs.tobytes(),
            self._heartbeat_times.tobytes(),
            self._heartbeat_seqs.tobytes(),
            b"" if own == self._times else own.tobytes(),
            b"" if heartbeat_own == self._heartbeat_times else heartbeat_own.tobytes(),
        )


class Hole(msgspec.Struct, array_like=True):
    """The missing sequence numbers in [first, end).

    Attributes:
        since_ms: Event time of the record that revealed the gap.
        from_ms: Event time of the last earlier record with a sequence number; None in a
            blob of release 0.1.
    """

    first: int
    end: int
    since_ms: int
    from_ms: int | None = None


class TapState(msgspec.Struct, array_like=True):
    """The part of the view's state that is not in its totals.

    Attributes:
        highest: Maximum sequence number seen; `NO_SEQ` before the first number.
        holes: Missing numbers below `highest` that may still arrive, in order of age.
        ahead: Records at the clock's time or later, in order. They wait, because other
            partitions may have earlier records. Each is a row of `_rows` without the
            tap's own time.
        highest_ms: Event time of the last record that confirmed `highest`; None before
            the first such record.
        ahead_own: The tap's own time of each record in `ahead`; empty in a blob of
            release 0.12 or earlier.
        last_own_ms: Time of the last record according to the tap's own clock, Unix ms;
            None before the first record.
        judged_ms: Event time of the last record before the clock, Unix ms. Silences are
            judged up to this time. 0 in a blob of release 0.12 or earlier.
    """

    highest: int = NO_SEQ
    holes: list[Hole] = []
    ahead: list[tuple[int, bool, int]] = []
    highest_ms: int | None = None
    ahead_own: list[int] = []
    last_own_ms: int | None = None
    judged_ms: int = 0


@native
class TapView:
    """Finds gaps in one tap's sequence numbers, and silences between its records.

    A tap that is silent for the retention window is forgotten. If it returns, it counts
    as new.
    """

    totals: TapTotals
    _settings: RuleSettings
    _state: TapState

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        totals: TapTotals | None = None,
        state: TapState | None = None,
    ) -> None:
        self._settings = rule_settings(settings)
        self.totals = totals or TapTotals()
        self._state = state or TapState()

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> TapView:
        """Restore the view that `to_blob` encoded; see `View.from_blob`."""
        with blob.opened(version, data, BLOB_VERSION, CHECKSUM_SINCE) as body:
            totals, state = blob.unpack(body, TapTotals, TapState)
            if state.ahead_own and len(state.ahead_own) != len(state.ahead):
                message = "ahead_own and ahead have different lengths"
                raise ValueError(message)
            return cls(settings, totals, state)

    def to_blob(self) -> bytes:
        """Encode the whole view in version `BLOB_VERSION`."""
        return blob.pack(self.totals, self._state)

    def apply(self, digests: Iterable[TapDigest], clock_ms: int) -> list[object]:
        """Process the tap's next records from all partitions, then advance the clock.

        The order of the digests does not matter. The result is empty.

        Raises:
            DamagedDigest: A digest is damaged, or another release made it.
        """
        state = self._state
        own_times = state.ahead_own or [record[0] for record in state.ahead]
        records = [
            (*record, own_ms)
            for record, own_ms in zip(state.ahead, own_times, strict=True)
        ]
        for digest in digests:
            records += _rows(
                digest.times, digest.seqs, digest.own_times, is_heartbeat=False
            )
            records += _rows(
                digest.heartbeat_times,
                digest.heartbeat_seqs,
                digest.heartbeat_own_times,
                is_heartbeat=True,
            )
        # At equal times, a frame comes before the heartbeat with its number.
        records.sort()
        # Records at exactly the clock's time wait, because records that follow may have
        # the same time and sort before them.
        due = bisect_left(records, clock_ms, key=itemgetter(0))
        state.ahead = [record[:3] for record in records[due:]]
        state.ahead_own = [record[3] for record in records[due:]]
        for time_ms, group in groupby(records[:due], key=itemgetter(0)):
            known = list(group)
            self._advance(time_ms)
            self._seen(time_ms, [own_ms for *_, own_ms in known])
            for _, is_heartbeat, seq, _ in known:
                if seq != NO_SEQ:
                    self._given(seq, time_ms)
                    if not is_heartbeat:
                        self._arrived(seq)
                    self._await_newest(time_ms)
        self._advance(clock_ms)
        at_clock = bisect_right(state.ahead, clock_ms, key=itemgetter(0))
        if at_clock:
            self._seen_now(clock_ms, state.ahead_own[:at_clock])
        return []

    def forget(self) -> list[object]:
        """Forget the tap; see `View.forget`. The result is empty."""
        self.totals, self._state = TapTotals(), TapState()
        return []

    @property
    def next_deadline_ms(self) -> int | None:
        """Next time to apply records, count a gap or forget the tap, Unix ms."""
        state, deadlines = self._state, []
        if state.ahead:
            deadlines.append(state.ahead[0][0])
        if state.holes:
            deadlines.append(state.holes[0].since_ms + self._settings.tap_hole_ms)
        if self.totals.last_seen_ms:
            deadlines.append(self.totals.last_seen_ms + self._settings.horizon_ms)
        return min(deadlines, default=None)

    @property
    def is_forgotten(self) -> bool:
        """Whether the tap was forgotten, so that its state can be removed."""
        return not self.totals.last_seen_ms and not self._state.ahead

    def _advance(self, clock_ms: int) -> None:
        """Advance the clock, count overdue gaps, and forget a silent tap."""
        settings, state = self._settings, self._state
        holes = state.holes
        if holes:
            passed = bisect_left(
                holes, clock_ms - settings.tap_hole_ms, key=attrgetter("since_ms")
            )
            for hole in holes[:passed]:
                self._missing(hole, hole.since_ms + settings.tap_hole_ms)
            del holes[:passed]
        edge_ms: int = clock_ms - settings.horizon_ms
        if self.totals.last_seen_ms < edge_ms:
            self.totals = TapTotals()
            self._state = TapState(ahead=state.ahead, ahead_own=state.ahead_own)

    def _seen(self, time_ms: int, own_times: Sequence[int]) -> None:
        """Judge the silence before records at `time_ms` of the topic's clock.

        `own_times` are the records' times according to the tap's own clock, Unix ms.
        """
        totals, state = self.totals, self._state
        hole_ms: int = self._settings.tap_hole_ms
        last_own_ms = state.last_own_ms
        # Releases up to 0.12 stored no `judged_ms`; they judged up to `last_seen_ms`.
        last_ms: int = state.judged_ms or totals.last_seen_ms
        # A tap may send any number as its time, so differences may exceed 64 bits.
        first_own_ms = min(own_times)
        if last_own_ms is None or max(own_times) < last_own_ms:
            # The tap's own clock cannot show how much time passed since the last
            # record.
            own_silence_ms = time_ms - last_ms
        else:
            own_silence_ms = first_own_ms - last_own_ms
        # Both clocks must show the silence, as the topic's clock also advances if
        # another tap's clock is set forward.
        if last_ms and min(time_ms - last_ms, own_silence_ms) > hole_ms:
            self._found(last_ms, time_ms, since_ms=last_ms + hole_ms)
        if not totals.last_seen_ms:
            totals.first_seen_ms = time_ms
        totals.last_seen_ms = state.judged_ms = time_ms
        state.last_own_ms = max(own_times)

    def _seen_now(self, clock_ms: int, own_times: Sequence[int]) -> None:
        """Process records at exactly the clock's time; more such records may follow.

        If these records may end a capture gap, the tap counts as silent until all of
        them are known.
        """
        totals, state = self.totals, self._state
        hole_ms, last_own_ms = self._settings.tap_hole_ms, state.last_own_ms
        last_ms = state.judged_ms or totals.last_seen_ms
        if not last_ms:
            totals.first_seen_ms = clock_ms
        elif clock_ms - last_ms > hole_ms and (
            last_own_ms is None
            or max(own_times) < last_own_ms
            or min(own_times) - last_own_ms > hole_ms
        ):
            return
        totals.last_seen_ms = clock_ms

    def _missing(self, hole: Hole, found_ms: int) -> None:
        self.totals.missing_records += hole.end - hole.first
        from_ms = hole.since_ms if hole.from_ms is None else hole.from_ms
        self._found(from_ms, found_ms, since_ms=found_ms)

    def _await_newest(self, time_ms: int) -> None:
        holes = self._state.holes
        if len(holes) > MAX_HOLES:
            for hole in holes[:-MAX_HOLES]:
                self._missing(hole, time_ms)
            del holes[:-MAX_HOLES]

    def _found(self, from_ms: int, to_ms: int, since_ms: int) -> None:
        """Count a capture gap that made channels blind from `since_ms` on."""
        totals = self.totals
        if (
            totals.hole_since_ms is None
            or totals.last_hole_ms is None
            or since_ms - totals.last_hole_ms > self._settings.verdict_window_ms
        ):
            totals.hole_since_ms = since_ms
        totals.last_hole_ms = to_ms
        spans = totals.holes
        while spans and spans[-1][1] >= from_ms:
            from_ms = min(from_ms, spans.pop()[0])
        spans.append((from_ms, to_ms))
        del spans[:-MAX_SPANS]

    def _given(self, seq: int, time_ms: int) -> None:
        """Record that the tap has assigned all numbers up to `seq`."""
        state = self._state
        highest: int = state.highest
        if seq < highest:
            return
        if highest != NO_SEQ and 0 < seq - highest <= MAX_HOLE:
            state.holes.append(Hole(highest + 1, seq + 1, time_ms, state.highest_ms))
        state.highest, state.highest_ms = seq, time_ms

    def _arrived(self, seq: int) -> None:
        holes = self._state.holes
        if not holes:
            return
        # The gaps are in order of their numbers.
        index: int = bisect_right(holes, seq, key=attrgetter("first")) - 1
        if index >= 0 and seq < (hole := holes[index]).end:
            parts = (
                msgspec.structs.replace(hole, end=seq),
                msgspec.structs.replace(hole, first=seq + 1),
            )
            holes[index : index + 1] = [one for one in parts if one.first < one.end]


def _rows(
    times: bytes, seqs: bytes, own_times: bytes, is_heartbeat: bool
) -> Iterable[tuple[int, bool, int, int]]:
    own_times = own_times or times
    if len(times) % _INT_BYTES or not len(times) == len(seqs) == len(own_times):
        message = "the columns of a tap's digest have different lengths"
        raise blob.DamagedDigest(message)
    clocks, numbers, own = (
        np.frombuffer(data, dtype=np.int64).tolist()
        for data in (times, seqs, own_times)
    )
    return zip(clocks, repeat(is_heartbeat), numbers, own, strict=False)
