"""Judges a tap by its sequence numbers and heartbeats (docs/figures.md, 8).

The records of a tap are distributed over all partitions of the topic. A tap's health
never changes a channel's counters, but shows how reliable these counters are.
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

from sds_core.native import native, uint64
from sds_core.observer import blob
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.record import NO_SEQ
from sds_core.observer.rule_settings import RuleSettings, rule_settings
from sds_core.observer.settings import DEFAULTS, ObserverSettings

BLOB_VERSION = 5
"""Version of the blobs that `TapView.to_blob` returns.

Blobs of versions 1 to 3 have no checksum.
"""

CHECKSUM_SINCE = 4

MAX_HOLE = 100_000
"""Maximum increase of a tap's sequence number that counts as a sequence gap.

If the number increases by more, the tap counts as restarted, and no number counts as
missing.
"""

MAX_HOLES = 10_000
"""Maximum number of a tap's sequence gaps that wait for late records.

A gap waits for 15 s by default. If a tap sends 1,000 records per second and loses every
second record, 7,500 gaps wait at the same time. At the limit, the numbers of the oldest
gap count as missing at once. The limit bounds the time to process a record.
"""

_INT_BYTES = 8

MAX_SPANS = 50
"""Maximum number of stored capture gaps of a tap, whatever their age.

Old gaps are stored too, because a batch of several hours may have incidents that fall
in many different gaps. Gaps that touch or overlap are merged, so a tap rarely reaches
this limit.
"""


def _earliest(times: Sequence[int]) -> int:
    """Return the earliest time; the value 0 stands for no time."""
    return min((ms for ms in times if ms), default=0)


class TapTotals(msgspec.Struct, array_like=True):
    """Figures of one tap (docs/figures.md, 8).

    Attributes:
        last_seen_ms: Event time of the tap's last record or heartbeat. If the tap is
            silent for the retention window, the value becomes 0, and the tap is no
            longer published.
        last_hole_ms: Event time at which the newest capture gap was found; None if no
            gap was found. A capture gap is a silence of more than 15 s, or a sequence
            number that is missing for more than 15 s.
        holes: Periods [from, to] of event time in which the tap may have missed
            records. The periods are disjoint and in order of time. Only the newest
            `tap_view.MAX_SPANS` periods are stored.
        hole_since_ms: Event time at which the latest series of capture gaps began to
            make channels blind; None if no gap was found. Each gap of a series begins
            to do so at most a verdict window after the previous gap was found. The
            series ends at `last_hole_ms`.
        first_seen_ms: Event time of the tap's first record. If the tap was forgotten,
            only later records count. 0 if no record was read, or if release 0.12 or
            earlier read the first record.
    """

    # If several taps share the label `other`, the label shows the minimum of this time.
    # An alert on silence then fires if any of these taps is silent.
    last_seen_ms: Annotated[int, _earliest] = 0
    missing_records: int = 0
    last_hole_ms: int | None = None
    holes: list[tuple[int, int]] = []
    hole_since_ms: int | None = None
    first_seen_ms: Annotated[int, _earliest] = 0


class TapDigest(msgspec.Struct, array_like=True):
    """Frames and heartbeats of one tap in one chunk of one partition.

    Attributes:
        times: For each frame, the maximum record time in the partition up to and
            including the frame, Unix ms. Encoded ``int64``, shape (n,).
        seqs: Sequence numbers of the frames; `NO_SEQ` for a frame without a number.
            Encoded like `times`.
        heartbeat_times: For each heartbeat, the maximum record time in the partition up
            to and including the heartbeat, Unix ms. Encoded ``int64``, shape (h,).
        heartbeat_seqs: For each heartbeat, the last sequence number that the tap
            assigned to a frame. The frame with this number may arrive later than the
            heartbeat. Encoded like `heartbeat_times`.
        own_times: Record times of the frames according to the tap's own clock, Unix ms.
            Encoded like `times`; empty if all values are the same as in `times`.
        heartbeat_own_times: Record times of the heartbeats according to the tap's own
            clock, Unix ms. Encoded like `heartbeat_times`; empty if all values are the
            same as in `heartbeat_times`.
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

        `clock_ms` is the maximum record time in the partition up to and including this
        record. `own_ms` is the time of this record. Both are Unix ms. If the record has
        no sequence number, `seq` is `NO_SEQ`.
        """
        self._times.append(clock_ms)
        self._seqs.append(seq)
        self._own_times.append(own_ms)

    def add_heartbeat(self, clock_ms: int, seq: int, own_ms: int) -> None:
        """Add a heartbeat; see `add_frame`.

        `seq` is the last sequence number that the tap has assigned to a frame.
        """
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
        since_ms: Event time of the record whose number showed that numbers are missing.
        from_ms: Event time of the last record with a sequence number before the record
            at `since_ms`; None in a blob of release 0.1.
    """

    first: int
    end: int
    since_ms: int
    from_ms: int | None = None


class TapState(msgspec.Struct, array_like=True):
    """The part of a `TapView`'s state that is not in `TapTotals`.

    Attributes:
        highest: Maximum sequence number so far; `NO_SEQ` before the first number.
        holes: Gaps in the sequence numbers below `highest` that late records may still
            fill, oldest gap first.
        ahead: Records whose time is the clock's time or later, in order of time. They
            wait, because other partitions may still deliver earlier records. Each
            record is a row of `_rows` without the tap's own time.
        highest_ms: Event time of the last frame or heartbeat with the number `highest`;
            None before the first number.
        ahead_own: The tap's own time of each record in `ahead`; empty in a blob of
            release 0.12 or earlier.
        last_own_ms: Time of the last record according to the tap's own clock, Unix ms;
            None before the first record.
        judged_ms: Event time of the last record whose time the clock has passed, Unix
            ms. Silences up to this time have been judged. 0 before the first such
            record, and in a blob of release 0.12 or earlier.
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

    If a tap is silent for the retention window, it is forgotten. If a forgotten tap
    sends records again, it counts as a new tap.
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

    def apply(self, digests: Iterable[TapDigest], clock_ms: int) -> list[Forgotten]:
        """Process the tap's next records from all partitions, then advance the clock.

        The order of the digests does not matter. The result has an event for each time
        that the tap was forgotten.

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
        # If a frame and a heartbeat have the same time, the frame is processed first.
        # Otherwise, its number would seem missing if the heartbeat has this number.
        records.sort()
        # Records at exactly the clock's time wait for the next call, because the next
        # digests may have records with the same time that must be processed first.
        due = bisect_left(records, clock_ms, key=itemgetter(0))
        state.ahead = [record[:3] for record in records[due:]]
        state.ahead_own = [record[3] for record in records[due:]]
        events: list[Forgotten] = []
        for time_ms, group in groupby(records[:due], key=itemgetter(0)):
            known = list(group)
            events += self._advance(time_ms)
            self._seen(time_ms, [own_ms for *_, own_ms in known])
            for _, is_heartbeat, seq, _ in known:
                if seq != NO_SEQ:
                    self._given(seq, time_ms)
                    if not is_heartbeat:
                        self._arrived(seq)
                    self._await_newest(time_ms)
        events += self._advance(clock_ms)
        at_clock = bisect_right(state.ahead, clock_ms, key=itemgetter(0))
        if at_clock:
            self._seen_now(clock_ms, state.ahead_own[:at_clock])
        return events

    def forget(self) -> list[Forgotten]:
        """Forget the tap; see `View.forget`."""
        last = self._last_event()
        self.totals, self._state = TapTotals(), TapState()
        return last

    @property
    def next_deadline_ms(self) -> int | None:
        """Next time to process waiting records, count a gap, or forget the tap.

        Unix ms; None if none of these is expected.
        """
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

    def _last_event(self) -> list[Forgotten]:
        """The event of a tap that is now forgotten; empty if no tap was known."""
        if not self.totals.last_seen_ms:
            return []
        return [Forgotten(blob.pack_totals(self.totals))]

    def _advance(self, clock_ms: int) -> list[Forgotten]:
        """Advance the clock, count overdue gaps, and forget a silent tap.

        If the tap is forgotten, its last event is returned.
        """
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
        if self.totals.last_seen_ms >= edge_ms:
            return []
        last = self._last_event()
        self.totals = TapTotals()
        self._state = TapState(ahead=state.ahead, ahead_own=state.ahead_own)
        return last

    def _seen(self, time_ms: int, own_times: Sequence[int]) -> None:
        """Decide whether the silence before the given records is a capture gap.

        The topic's clock gives all these records the time `time_ms`. `own_times` are
        their times according to the tap's own clock. All times are Unix ms.
        """
        totals, state = self.totals, self._state
        hole_ms: int = self._settings.tap_hole_ms
        last_own_ms = state.last_own_ms
        # Releases up to 0.12 stored no `judged_ms`. They had judged all silences up to
        # `last_seen_ms`.
        last_ms: int = state.judged_ms or totals.last_seen_ms
        # A tap may send any number as its time, so a difference of two of its times may
        # need more than 64 bits. Compiled variables of type `int` have 64 bits, so the
        # variables of these times have no type.
        first_own_ms = min(own_times)
        if last_own_ms is None or max(own_times) < last_own_ms:
            # The tap's own time of the last record is unknown, or the tap's clock was
            # set back. Only the topic's clock can show the length of the silence.
            own_silence_ms = time_ms - last_ms
        else:
            own_silence_ms = first_own_ms - last_own_ms
        # Both clocks must show the silence. The topic's clock alone is not sufficient,
        # because it also advances if another tap's clock is set forward.
        if last_ms and min(time_ms - last_ms, own_silence_ms) > hole_ms:
            self._found(last_ms, time_ms, since_ms=last_ms + hole_ms)
        if not totals.last_seen_ms:
            totals.first_seen_ms = time_ms
        totals.last_seen_ms = state.judged_ms = time_ms
        state.last_own_ms = max(own_times)

    def _seen_now(self, clock_ms: int, own_times: Sequence[int]) -> None:
        """Process records at exactly the clock's time; more such records may follow.

        If these records may end a capture gap, the tap counts as silent until the clock
        advances, because only then are all records at this time known.
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
        """Store the capture gap from `from_ms` to `to_ms`, when it was found.

        The gap makes channels blind from `since_ms` on. All times are Unix ms.
        """
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
            end = uint64(seq) + 1
            state.holes.append(Hole(highest + 1, end, time_ms, state.highest_ms))
        state.highest, state.highest_ms = seq, time_ms

    def _arrived(self, seq: int) -> None:
        holes = self._state.holes
        if not holes:
            return
        # The gaps are sorted by sequence number.
        index: int = bisect_right(holes, seq, key=attrgetter("first")) - 1
        if index >= 0 and seq < (hole := holes[index]).end:
            # The greatest number is 2**63 - 1, so the next one is not an `int64`.
            parts = (
                msgspec.structs.replace(hole, end=seq),
                msgspec.structs.replace(hole, first=uint64(seq) + 1),
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
