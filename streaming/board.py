"""Where the newest figures hang: written by the job, read by exporter and page."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sds_core.observer import blob
from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.dead_letter_view import DeadLetterTotals
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.tap_view import TapTotals
from streaming.keys import KeyKind, split_key
from streaming.position import Position

_TOTALS: dict[KeyKind, type[Any]] = {
    KeyKind.CHANNEL: ChannelTotals,
    KeyKind.TAP: TapTotals,
    KeyKind.DEAD_LETTERS: DeadLetterTotals,
}


class Board:
    """Holds one immutable snapshot and swaps it for the next.

    Setting the same totals twice gives the same snapshot, so a replayed batch does
    no harm.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshot = Snapshot()
        self._dead: dict[str, DeadLetterTotals] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The newest figures."""
        return self._snapshot

    def set_totals(
        self,
        packed: Mapping[str, bytes],
        labels: tuple[str, ...],
        tap_labels: tuple[str, ...],
    ) -> None:
        """Set the totals of some views, by key; the others stay as they are.

        A tap of which nothing is known, or nothing any more, is dropped.

        Args:
            packed: Totals as `blob.totals_part` gives them.
            labels: Channels that have a label, see `streaming.labels`.
            tap_labels: Taps that have one.
        """
        fresh: dict[KeyKind, dict[str, Any]] = {kind: {} for kind in _TOTALS}
        for key, data in packed.items():
            kind, name = split_key(key)
            fresh[kind][name] = blob.unpack_totals(data, _TOTALS[kind])
        with self._lock:
            old = self._snapshot
            self._dead |= fresh[KeyKind.DEAD_LETTERS]
            channels = dict(old.channels) | fresh[KeyKind.CHANNEL]
            taps = dict(old.taps) | fresh[KeyKind.TAP]
            taps = {name: tap for name, tap in taps.items() if tap.last_seen_ms}
            self._snapshot = replace(
                old,
                primed=True,
                channels=MappingProxyType(channels),
                labels=labels,
                taps=MappingProxyType(taps),
                tap_labels=tap_labels,
                undecodable=MappingProxyType(_by_reason(self._dead)),
            )

    def set_position(self, position: Position) -> None:
        """Set where the newest batch ended: its admission time and records."""
        with self._lock:
            self._snapshot = replace(self._snapshot, clock_ms=position.clock_ms)
        self.set_job(records=position.records, records_lost=position.skipped)

    def set_table(self, table: ChannelTable) -> None:
        """Set what the operator says of channels."""
        with self._lock:
            self._snapshot = replace(self._snapshot, table=table)

    def set_job(self, **figures: Any) -> JobFigures:
        """Set some of the job's own figures."""
        with self._lock:
            job = replace(self._snapshot.job, **figures)
            self._snapshot = replace(self._snapshot, job=job)
        return job


def _by_reason(dead: Mapping[str, DeadLetterTotals]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for totals in dead.values():
        for reason, count in totals.by_reason.items():
            counts[reason] = counts.get(reason, 0) + count
    return counts
