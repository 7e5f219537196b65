"""The report: the figures of all channels as one JSON-ready object.

Its keys are explained in ``docs/figures.md``. All numbers are integers, all times are
in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sds_core.observer.cause_finding import causes_of
from sds_core.observer.incidents import ChannelIncident, incident_object
from sds_core.observer.kinds import AnyKind
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.settings_table import changed
from sds_core.observer.snapshot import Snapshot, Views

SCHEMA = 1

Latencies = Sequence[tuple[str, int]]
"""Message id and latency in milliseconds, in order of t0."""


def build_report(
    snapshot: Snapshot,
    generated_at_ms: int,
    details: Mapping[str, Latencies] | None = None,
    incidents: Iterable[ChannelIncident] | None = None,
    others: Mapping[str, Iterable[ChannelIncident]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The whole report.

    Args:
        snapshot: The figures.
        generated_at_ms: Wall time, Unix ms; the only value taken from the wall clock.
        details: With ``--report-detail``, every definite acknowledgement by channel;
            percentiles of their latency are then exact.
        incidents: With ``--report-detail``, every incident of a channel; channels then
            have their likely causes.
        others: With ``--report-detail``, those of other kinds of view, by prefix.
    """
    table = CHANNEL_FIGURES
    first = snapshot.views[CHANNELS.prefix]
    totals = first.sum
    latencies: Latencies | None = None
    channels = {}
    # The single acknowledgements of forgotten channels are not stored any more.
    if details is not None and first.remainder is None:
        latencies = [pair for pairs in details.values() for pair in pairs]
    for channel, figures in first.totals.items():
        own = None if details is None else details.get(channel, ())
        channels[channel] = table.report(figures, exact=_exact(own))
        if own is not None and table.detailed is not None:
            channels[channel][table.detailed.detail] = [list(pair) for pair in own]
        if incidents is not None:
            channels[channel]["causes"] = _causes(snapshot, figures, first.kind)
    summed = table.report(totals, exact=_exact(latencies), is_sum=True)
    summed["undecodable"] = dict(snapshot.undecodable)
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "generated_at": generated_at_ms,
        "window": {
            "first_event": totals.first_event_ms,
            "last_event": totals.last_event_ms,
        },
        "totals": summed,
        table.names.many: channels,
        **_forgotten(first),
    }
    if settings := changed(snapshot.observer):
        report["observer"] = settings
    sections = {
        prefix: _section(views)
        for prefix, views in snapshot.views.items()
        if prefix != CHANNELS.prefix
    }
    if sections:
        report["views"] = sections
        for prefix, found in others.items():
            views, section = snapshot.views[prefix], sections[prefix]
            section["incidents"] = _listed(snapshot, views.kind, found)
            for name, one in views.totals.items():
                section["views"][name]["causes"] = _causes(snapshot, one, views.kind)
    if incidents is not None:
        report["incidents"] = _listed(snapshot, first.kind, incidents)
    return report


def _listed(
    snapshot: Snapshot, kind: AnyKind, incidents: Iterable[ChannelIncident]
) -> list[dict[str, Any]]:
    """Return the incidents of one kind of view, the oldest first."""
    return [
        incident_object(one, snapshot.observer, kind.explain)
        for one in sorted(incidents, key=_by_age)
    ]


def _causes(snapshot: Snapshot, totals: Any, kind: AnyKind) -> list[dict[str, Any]]:
    return [one.as_object() for one in causes_of(snapshot, totals, kind)]


def _section(views: Views[Any]) -> dict[str, Any]:
    """The section of one protocol other than SDS."""
    table = views.figures
    return {
        "totals": table.report(views.sum, is_sum=True),
        "views": {name: table.report(one) for name, one in views.totals.items()},
        **_forgotten(views),
    }


def _forgotten(views: Views[Any]) -> dict[str, Any]:
    """What forgotten views had counted, which the totals contain."""
    remainder = views.remainder
    if remainder is None:
        return {}
    totals = views.figures.report(remainder.totals, is_sum=True)
    return {"forgotten": {"count": remainder.views, "totals": totals}}


def _exact(latencies: Latencies | None) -> dict[str, list[int]]:
    """All durations that are known, by the field of their figure."""
    figure = CHANNEL_FIGURES.detailed
    if latencies is None or figure is None:
        return {}
    return {figure.field: [latency for _, latency in latencies]}


def _by_age(one: ChannelIncident) -> tuple[int, str, tuple[str, str]]:
    return one.incident.found_ms, one.channel, one.incident.key
