"""The newest figures: written by the job, read by exporter and page."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sds_core.observer import blob
from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.kinds import AnyProtocol
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.snapshot import JobFigures, Snapshot, Views
from streaming.position import Position


class Board:
    """Holds one immutable snapshot and swaps it for the next.

    Setting the same totals twice gives the same snapshot, so a replayed batch does
    no harm.

    Args:
        protocols: Registered protocols.
    """

    def __init__(self, protocols: Iterable[AnyProtocol] = PROTOCOLS) -> None:
        self._lock = threading.Lock()
        self._kinds = kinds_of(protocols)
        self._views: dict[str, Views[Any]] = {
            kind.prefix: Views(kind) for kind in self._kinds
        }
        self._snapshot = Snapshot().with_views(self._views)

    @property
    def snapshot(self) -> Snapshot:
        """The newest figures."""
        return self._snapshot

    def names(self, prefix: str) -> frozenset[str]:
        """Return the names of the views of one kind that have figures."""
        return frozenset(self._views[prefix].totals)

    def set_totals(
        self,
        packed: Mapping[str, bytes],
        labels: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        """Set the totals of some views, by key; the others stay unchanged.

        A view whose totals describe nothing (`Kind.is_known`) is dropped.

        Args:
            packed: Totals as `blob.totals_part` returns them.
            labels: Prefix of a kind -> names of all its views that have a metric label
                of their own; see `streaming.labels`.

        Raises:
            sds_core.observer.kinds.UnknownKind: A key is of no registered kind.
        """
        fresh: dict[str, dict[str, Any]] = {prefix: {} for prefix in self._views}
        for key, data in packed.items():
            kind, name = self._kinds.split(key)
            fresh[kind.prefix][name] = blob.unpack_totals(data, kind.totals)
        with self._lock:
            for prefix, old in self._views.items():
                totals = dict(old.totals) | fresh[prefix]
                for name, one in fresh[prefix].items():
                    if not old.kind.is_known(one):
                        del totals[name]
                self._views[prefix] = Views(
                    old.kind,
                    MappingProxyType(totals),
                    labels.get(prefix, old.labels),
                )
            self._snapshot = replace(self._snapshot, primed=True).with_views(
                self._views
            )

    def set_position(self, position: Position) -> None:
        """Set where the newest batch ended: its admission time and records."""
        with self._lock:
            self._snapshot = replace(self._snapshot, clock_ms=position.clock_ms)
        self.set_job(records=position.records, records_lost=position.skipped)

    def set_table(self, table: ChannelTable) -> None:
        """Set the operator's channel table."""
        with self._lock:
            self._snapshot = replace(self._snapshot, table=table)

    def set_observer(self, settings: ObserverSettings) -> None:
        """Set the settings of the model, which the checkpoint has."""
        with self._lock:
            self._snapshot = replace(self._snapshot, observer=settings)

    def set_job(self, **figures: Any) -> JobFigures:
        """Set some of the job's own figures."""
        with self._lock:
            job = replace(self._snapshot.job, **figures)
            self._snapshot = replace(self._snapshot, job=job)
        return job
