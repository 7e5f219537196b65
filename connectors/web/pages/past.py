"""The parts of the page of a view that come from files: its charts and incidents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from markupsafe import Markup

from connectors.web import words
from connectors.web.charts import Chart, charts_of
from connectors.web.drawing import draw
from connectors.web.incident_words import IncidentWords, incident_words
from connectors.web.lacks import READ_INCIDENTS, Lacks, group_words
from connectors.web.lookups import Lookups
from connectors.web.naming import settings_of
from connectors.web.refusals import HistoryBusy, HistoryUnreadable, NoRecord
from connectors.web.trends import Hours
from sds_core.observer.channel_table import DEFAULT_SETTINGS
from sds_core.observer.incidents import ChannelIncident, IncidentKind, IncidentQuery
from sds_core.observer.kinds import AnyKind
from sds_core.observer.snapshot import Snapshot, Views

LISTED_INCIDENTS = 5
"""Single incidents of each kind, those that stand first; `/incidents` has more."""


@dataclass(frozen=True, slots=True)
class History:
    """The parts of the page that come from files instead of the snapshot.

    Attributes:
        intervals: Length of their intervals, and what is not known.
        charts: Charts, each with its picture, which is empty if there is nothing to
            draw; none if they cannot be drawn.
        no_charts: Why charts cannot be drawn; empty if they can.
        lacks: Who lacks what since when; None if incidents cannot be listed.
        incidents: Single incidents, those that stand first, of them the gravest.
        no_incidents: Why incidents cannot be listed; empty if they can.
    """

    heading: str
    intervals: str = ""
    charts: Sequence[tuple[Chart, Markup]] = ()
    no_charts: str = ""
    lacks: Lacks | None = None
    incidents: Sequence[IncidentWords] = ()
    more_incidents: bool = False
    no_incidents: str = ""


def history_of(
    lookups: Lookups, snapshot: Snapshot, views: Views[Any], name: str, hours: Hours
) -> History:
    """Read charts and incidents of a view."""
    found: dict[str, Any] = {"heading": f"The last {words.counted(hours, 'hour')}"}
    try:
        trend = lookups.trend(snapshot, views, name, hours)
    except (HistoryBusy, HistoryUnreadable, NoRecord) as error:
        found["no_charts"] = str(error)
    else:
        settings = DEFAULT_SETTINGS
        if views.kind.has_objectives:
            settings = settings_of(snapshot, name, views.kind)
        charts = charts_of(views.figures, trend, settings, snapshot.observer)
        found["charts"] = [
            (chart, Markup() if chart.is_empty else draw(chart)) for chart in charts
        ]
        known = ""
        if len(trend.growth) * trend.step_ms < hours * 3_600_000:
            begin = words.since(trend.begin_ms, snapshot.clock_ms)
            found["heading"] = f"Since {begin}"
            if (views.totals[name].first_event_ms or 0) < trend.begin_ms:
                known = "; earlier minutes are not stored"
        found["intervals"] = f"intervals of {words.duration(trend.step_ms)}{known}"
    try:
        found |= _incidents(lookups, snapshot, views.kind, name)
    except (HistoryBusy, HistoryUnreadable) as error:
        found["no_incidents"] = str(error)
    return History(**found)


def _incidents(
    lookups: Lookups, snapshot: Snapshot, kind: AnyKind, name: str
) -> dict[str, Any]:
    """Read the incidents of a view; returns attributes of `History`."""
    query = IncidentQuery(name, standing=True, limit=READ_INCIDENTS + 1)
    standing = lookups.incidents(kind.prefix, query)
    query = IncidentQuery(name, resolved=True, limit=LISTED_INCIDENTS + 1)
    ended = lookups.incidents(kind.prefix, query)
    listed: list[ChannelIncident] = []
    # Many incidents of one kind must not hide another.
    for problem in IncidentKind:
        of_kind = (one for one in standing if one.incident.kind is problem)
        listed += islice(of_kind, LISTED_INCIDENTS)
    listed += ended[:LISTED_INCIDENTS]
    return {
        "lacks": group_words(snapshot, kind, standing),
        "incidents": [incident_words(snapshot, one, kind) for one in listed],
        "more_incidents": len(standing) + len(ended) > len(listed),
    }
