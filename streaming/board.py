"""Holds the newest figures, which the job writes, and exporter and page read."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from sds_core.observer import blob
from sds_core.observer.forgotten import Remainder
from sds_core.observer.kinds import AnyProtocol, Grouping
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.snapshot import JobFigures, Snapshot, Views
from streaming.position import Position


class GroupParts:
    """Holds, for each group, the newest part of its totals from each view."""

    def __init__(self, grouping: Grouping[Any, Any]) -> None:
        self._grouping = grouping
        # Name of a group -> name of a view -> part.
        self._parts: dict[str, dict[str, Any]] = {}

    def set(self, group: str, view: str, part: Any) -> bool:
        """Set the part of a group's totals from a view; return whether it changed."""
        parts = self._parts.setdefault(group, {})
        if parts.get(view) == part:
            return False
        parts[view] = part
        return True

    def join(self, group: str) -> Any:
        """Return a group's totals, joined from its parts in all views."""
        return self._grouping.join(list(self._parts[group].values()))

    def take(self, view: str, totals: Any) -> dict[str, Any]:
        """Divide a view's totals among groups; return changed parts, by group."""
        found = self._grouping.split(totals)
        return {name: one for name, one in found.items() if self.set(name, view, one)}


class FollowingViews(NamedTuple):
    """The views to publish next.

    Attributes:
        views: All views of each kind, by prefix of the kind.
        changed: Names of the views whose totals were set or dropped, by prefix of the
            kind.
    """

    views: dict[str, Views[Any]]
    changed: Mapping[str, Collection[str]]


class Board:
    """Holds the newest snapshot, which is immutable; a change replaces the snapshot.

    Totals are absolute values, not increments, so a repeated batch does no harm.
    """

    def __init__(self, protocols: Iterable[AnyProtocol] = PROTOCOLS) -> None:
        self._lock = threading.Lock()
        self._kinds = kinds_of(protocols)
        self._views: dict[str, Views[Any]] = {
            kind.prefix: Views(kind) for kind in self._kinds
        }
        self._groups = {
            kind.prefix: GroupParts(kind.grouping)
            for kind in self._kinds
            if kind.grouping is not None
        }
        # Groups whose totals have changed, but are not published yet.
        self._touched: dict[str, set[str]] = {prefix: set() for prefix in self._groups}
        self._changed: dict[str, set[str]] = {prefix: set() for prefix in self._views}
        self._snapshot = Snapshot().with_views(self._views)

    @property
    def snapshot(self) -> Snapshot:
        """The newest figures."""
        return self._snapshot

    def names(self, prefix: str) -> Collection[str]:
        """Return the names of a kind's views that have figures; they are not copied."""
        return self._views[prefix].totals.keys()

    def take_changed(self) -> Mapping[str, Collection[str]]:
        """Return names of views that were set or dropped since the last call.

        The result maps the prefix of a kind to these names.
        """
        with self._lock:
            changed = self._changed
            self._changed = {prefix: set() for prefix in self._views}
        return changed

    def read(self, packed: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
        """Decode the totals of views; return them as they are published.

        The result maps the prefix of a kind, and then the name of a view, to totals. If
        a kind has a `Grouping`, groups replace the views. The totals of a group are
        joined from its parts in all views, including views that were read earlier.
        If the same totals are read again, nothing changes. `packed` maps the key of a
        view to its totals, as `blob.totals_part` returns them. If the kind has
        `Grouping.changed`, these totals may omit groups that did not change.

        Raises:
            sds_core.observer.kinds.UnknownKind: A key belongs to no registered kind.
        """
        fresh: dict[str, dict[str, Any]] = {prefix: {} for prefix in self._views}
        for key, data in packed.items():
            kind, name = self._kinds.split(key)
            totals = blob.unpack_totals(data, kind.totals)
            parts = self._groups.get(kind.prefix)
            if parts is None:
                fresh[kind.prefix][name] = totals
            else:
                self._touched[kind.prefix].update(parts.take(name, totals))
        for prefix, groups in self._touched.items():
            parts = self._groups[prefix]
            fresh[prefix] = {group: parts.join(group) for group in groups}
        return fresh

    def following(
        self,
        fresh: Mapping[str, Mapping[str, Any]],
        labels: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        remainders: Mapping[str, Remainder[Any]] = MappingProxyType({}),
        gone: Iterable[str] = (),
    ) -> FollowingViews:
        """Return all views; those in `fresh` get new totals, others keep their totals.

        If `Kind.is_known` is False for new totals, their view is dropped.

        Args:
            fresh: New totals, as `read` returns them.
            labels: Prefix of a kind -> names of all its views that have a metric label
                of their own.
            remainders: Prefix of a kind -> sums over its forgotten views.
            gone: Keys of views to drop, whatever their totals are.
        """
        dropped: dict[str, set[str]] = {prefix: set() for prefix in self._views}
        for key in gone:
            kind, name = self._kinds.split(key)
            dropped[kind.prefix].add(name)
        views = {}
        for prefix, old in self._views.items():
            new = fresh.get(prefix, {})
            totals = {**old.totals, **new}
            for name, one in new.items():
                if not old.kind.is_known(one):
                    dropped[prefix].add(name)
            for name in dropped[prefix]:
                totals.pop(name, None)
            views[prefix] = Views(
                old.kind,
                MappingProxyType(totals),
                labels.get(prefix, old.labels),
                remainders.get(prefix, old.remainder),
            )
        changed = {
            prefix: {*fresh.get(prefix, ()), *dropped[prefix]} for prefix in views
        }
        return FollowingViews(views, changed)

    def publish(self, following: FollowingViews) -> None:
        """Replace all views."""
        with self._lock:
            for prefix, names in following.changed.items():
                self._changed[prefix].update(names)
            self._views = following.views
            self._snapshot = replace(self._snapshot, primed=True).with_views(
                self._views
            )
        self._touched = {prefix: set() for prefix in self._groups}

    def set_position(self, position: Position) -> None:
        """Set the admission time and the counts of records after the newest batch."""
        self.set(clock_ms=position.clock_ms)
        self.set_job(records=position.records, records_lost=position.skipped)

    def set(self, **parts: Any) -> None:
        """Replace `table`, `audit`, `observer` or other parts of the snapshot."""
        with self._lock:
            self._snapshot = replace(self._snapshot, **parts)

    def set_job(self, **figures: Any) -> JobFigures:
        """Set some of the job's own figures; return all of them."""
        with self._lock:
            job = replace(self._snapshot.job, **figures)
            self._snapshot = replace(self._snapshot, job=job)
        return job
