"""Builds the report: the figures of all views as one object for JSON.

``docs/figures.md`` explains the keys. All numbers are integers. All times are in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sds_core.observer.blindness import causes_of
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.incidents import ChannelIncident, incident_object
from sds_core.observer.protocols import ROOT_KIND
from sds_core.observer.settings_table import changed
from sds_core.observer.snapshot import Snapshot, Views

SCHEMA = 1

Latencies = Sequence[tuple[str, int]]
"""Pairs of message id and latency in milliseconds.

The order is that of the event times of the messages' first copies.
"""


def build_report(
    snapshot: Snapshot,
    generated_at_ms: int,
    details: Mapping[str, Latencies] | None = None,
    incidents: Iterable[ChannelIncident] | None = None,
    others: Mapping[str, Iterable[ChannelIncident]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the report, which has the views of `ROOT_KIND` at its top level.

    Args:
        snapshot: The figures.
        generated_at_ms: Wall time of the report, Unix ms. No other value in the report
            comes from the wall clock.
        details: All definite acknowledgements of the views at the top level, by view
            name; None without ``--report-detail``. If given, the percentiles of latency
            are exact.
        incidents: All incidents of the views at the top level; None without
            ``--report-detail``. If given, the report also has the likely causes of bad
            verdicts.
        others: All incidents of each other kind of view, by the kind's prefix; empty
            without ``--report-detail``.
    """
    known = dict(others)
    if incidents is not None:
        known[ROOT_KIND.prefix] = incidents
    sections = {
        prefix: _section(
            snapshot, views, known.get(prefix), details if views.kind.at_root else None
        )
        for prefix, views in snapshot.views.items()
    }
    root = sections.pop(ROOT_KIND.prefix)
    root["totals"]["undecodable"] = dict(snapshot.undecodable)
    sums = [views.sum for views in snapshot.views.values()]
    first = [one.first_event_ms for one in sums if one.first_event_ms is not None]
    last = [one.last_event_ms for one in sums if one.last_event_ms is not None]
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "generated_at": generated_at_ms,
        "window": {
            "first_event": min(first, default=None),
            "last_event": max(last, default=None),
        },
        ROOT_KIND.names.many: root.pop("views"),
        **root,
    }
    if settings := changed(snapshot.observer):
        report["observer"] = settings
    if sections:
        report["views"] = sections
    return report


def _section(
    snapshot: Snapshot,
    views: Views[Any],
    incidents: Iterable[ChannelIncident] | None,
    details: Mapping[str, Latencies] | None,
) -> dict[str, Any]:
    """Return the part of the report with the views of one kind.

    `incidents` are all incidents of the views; None without ``--report-detail``.
    `details` has the definite acknowledgements of each view; None if they are not
    stored.
    """
    table, shown = views.figures, {}
    for name, totals in views.totals.items():
        own = None if details is None else details.get(name, ())
        shown[name] = table.report(totals, exact=_exact(table, own))
        if own is not None and table.detailed is not None:
            shown[name][table.detailed.detail] = [list(pair) for pair in own]
        if incidents is not None:
            shown[name]["causes"] = [
                one.as_object() for one in causes_of(snapshot, totals, views.kind)
            ]
    latencies: Latencies | None = None
    # If a view was forgotten, `details` lacks its acknowledgements. The percentiles of
    # all views together are then not exact.
    if details is not None and views.remainder is None:
        latencies = [pair for pairs in details.values() for pair in pairs]
    section: dict[str, Any] = {
        "totals": table.report(views.sum, exact=_exact(table, latencies), is_sum=True),
        "views": shown,
    }
    if views.remainder is not None:
        totals = table.report(views.remainder.totals, is_sum=True)
        section["forgotten"] = {"count": views.remainder.views, "totals": totals}
    if incidents is not None:
        section["incidents"] = [
            incident_object(one, snapshot.observer, views.kind.explain)
            for one in sorted(incidents, key=_by_age)
        ]
    return section


def _exact(
    table: FigureTable[Any], latencies: Latencies | None
) -> dict[str, list[int]]:
    if latencies is None or table.detailed is None:
        return {}
    return {table.detailed.field: [latency for _, latency in latencies]}


def _by_age(one: ChannelIncident) -> tuple[int, str, tuple[str, str]]:
    return one.incident.found_ms, one.channel, one.incident.key
