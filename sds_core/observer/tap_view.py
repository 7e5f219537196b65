"""One tap, from its own numbers and heartbeats (observer model, section 8).

A tap's records lie in all partitions. Its health never changes a channel's figures;
it says how far they can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from sds_core.observer import blob
from sds_core.observer.deadlines import later
from sds_core.observer.digest import NO_SEQ
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.totals import TapTotals

MAX_HOLE = 100_000
"""A jump of `seq` by more is a tap that began anew, not so many lost records."""


class TapDigest(msgspec.Struct, array_like=True):
    """Records and heartbeats of one tap in one chunk of one partition.

    Attributes:
        times: Times of frames, Unix ms: the greatest record time of the partition up
            to each. Packed ``int64``, shape (n,).
        seqs: Their numbers; `NO_SEQ` where there is none. As `times`.
        heartbeat_times: Times of heartbeats, packed ``int64``, shape (h,).
        heartbeat_seqs: The last number that the tap had given to a frame then, which
            that frame still has to show. As `heartbeat_times`.
    """

    times: bytes
    seqs: bytes
    heartbeat_times: bytes
    heartbeat_seqs: bytes


class Hole(msgspec.Struct, array_like=True):
    """Numbers [first, end) that are missing.

    Attributes:
        since_ms: Event time of the record that showed it.
    """

    first: int
    end: int
    since_ms: int


class TapState(msgspec.Struct, array_like=True):
    """What the view keeps beside its totals.

    Attributes:
        highest: Greatest number seen; `NO_SEQ` before the first.
        holes: Numbers below it that may still come, in order of age.
        ahead: Records later than the clock, as `_rows` gives them: other partitions
            may still bring earlier ones.
    """

    highest: int = NO_SEQ
    holes: list[Hole] = []
    ahead: list[tuple[int, bool, int]] = []


class TapView:
    """Holes in one tap's numbers and silences between its records.

    Attributes:
        totals: The figures, absolute.
    """

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        totals: TapTotals | None = None,
        state: TapState | None = None,
    ) -> None:
        self._settings = settings
        self.totals = totals or TapTotals()
        self._state = state or TapState()

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> TapView:
        """The view as it was when the blob was made; see `blob.unpack`."""
        return cls(settings, *blob.unpack(version, data, TapTotals, TapState))

    def to_blob(self) -> bytes:
        """The whole view in version `blob.VERSION`."""
        return blob.pack(self.totals, self._state)

    def apply(self, digests: Iterable[TapDigest], clock_ms: int) -> None:
        """Take the tap's next records, of all partitions, then move the clock.

        Args:
            digests: In any order.
            clock_ms: Admission time T, Unix ms.
        """
        records = self._state.ahead
        for digest in digests:
            records += _rows(digest.times, digest.seqs, is_heartbeat=False)
            records += _rows(
                digest.heartbeat_times, digest.heartbeat_seqs, is_heartbeat=True
            )
        # Of one time, a frame comes before the heartbeat that tells of it.
        records.sort()
        self._state.ahead = [record for record in records if record[0] > clock_ms]
        for time_ms, is_heartbeat, seq in records[: -len(self._state.ahead) or None]:
            self._close_holes(time_ms)
            self._seen(time_ms)
            if seq != NO_SEQ:
                self._given(seq, time_ms)
                if not is_heartbeat:
                    self._arrived(seq)
        self._close_holes(clock_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        """When the oldest hole counts as missing; None if there is none."""
        if not self._state.holes:
            return None
        return self._state.holes[0].since_ms + self._settings.tap_hole_ms

    def take_details(self) -> list[object]:
        """A tap has none."""
        return []

    def _seen(self, time_ms: int) -> None:
        totals = self.totals
        silent_ms = time_ms - totals.last_seen_ms
        if totals.last_seen_ms and silent_ms > self._settings.tap_hole_ms:
            totals.last_hole_ms = later(totals.last_hole_ms, time_ms)
        totals.last_seen_ms = max(totals.last_seen_ms, time_ms)

    def _given(self, seq: int, time_ms: int) -> None:
        """The tap has given numbers up to this one; none has come yet."""
        state = self._state
        if seq <= state.highest:
            return
        if state.highest != NO_SEQ and seq - state.highest <= MAX_HOLE:
            state.holes.append(Hole(state.highest + 1, seq + 1, time_ms))
        state.highest = seq

    def _arrived(self, seq: int) -> None:
        """The frame with this number has come."""
        state = self._state
        for index, hole in enumerate(state.holes):
            if hole.first <= seq < hole.end:
                parts = (
                    Hole(hole.first, seq, hole.since_ms),
                    Hole(seq + 1, hole.end, hole.since_ms),
                )
                state.holes[index : index + 1] = [p for p in parts if p.first < p.end]
                return

    def _close_holes(self, clock_ms: int) -> None:
        holes = self._state.holes
        while holes and holes[0].since_ms + self._settings.tap_hole_ms < clock_ms:
            hole = holes.pop(0)
            self.totals.missing_records += hole.end - hole.first
            self.totals.last_hole_ms = later(
                self.totals.last_hole_ms, hole.since_ms + self._settings.tap_hole_ms
            )


def _rows(
    times: bytes, seqs: bytes, is_heartbeat: bool
) -> Iterator[tuple[int, bool, int]]:
    columns = (np.frombuffer(data, dtype=np.int64).tolist() for data in (times, seqs))
    for time_ms, seq in zip(*columns, strict=True):
        yield time_ms, is_heartbeat, seq
