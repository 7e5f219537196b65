"""One tap, from its own numbers and heartbeats (observer model, section 8).

A tap's records lie in all partitions. Its health never changes a channel's figures;
it says how far they can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable

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
        times: Record times, Unix ms, packed ``int64``, shape (n,).
        seqs: The tap's numbers; a heartbeat repeats the last one given to a frame.
            Packed ``int64``, shape (n,).
    """

    times: bytes
    seqs: bytes


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
    """

    highest: int = NO_SEQ
    holes: list[Hole] = []


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
        records = sorted(
            (time_ms, seq)
            for digest in digests
            for time_ms, seq in zip(
                np.frombuffer(digest.times, dtype=np.int64).tolist(),
                np.frombuffer(digest.seqs, dtype=np.int64).tolist(),
                strict=True,
            )
        )
        for time_ms, seq in records:
            self._close_holes(time_ms)
            self._seen(time_ms)
            if seq != NO_SEQ:
                self._numbered(seq, time_ms)
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

    def _numbered(self, seq: int, time_ms: int) -> None:
        state = self._state
        if seq > state.highest:
            first = state.highest + 1
            if state.highest != NO_SEQ and 0 < seq - first <= MAX_HOLE:
                state.holes.append(Hole(first, seq, time_ms))
            state.highest = seq
            return
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
