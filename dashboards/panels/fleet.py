"""Dashboard *Fleet*: is everything fine, and if not, which channels have problems?"""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards.links import FLEET, Links
from dashboards.panels import colours, queries
from dashboards.panels.base import Link, Panel, thresholds
from dashboards.panels.charts import figure
from dashboards.panels.fleet_trends import over_time, verdict_counts
from dashboards.panels.frame import (
    Frame,
    Section,
    assemble,
    channel_link,
    channel_page,
    status_page,
)
from dashboards.panels.queries import JOB, RANGE, select
from dashboards.panels.tables import Column, rows
from sds_core.observer.channel_table import DEFAULT_SETTINGS

_FRAME = Frame(
    FLEET,
    "SDS / Fleet",
    "Is everything fine? If not: which channels are in trouble, and with what.",
    pages=(Link("Incidents", "/incidents"),),
)

_DELIVERY = colours.at_least(
    DEFAULT_SETTINGS.delivery_objective, 2 * DEFAULT_SETTINGS.delivery_objective - 1
)
_ACKNOWLEDGEMENT = colours.at_least(
    DEFAULT_SETTINGS.acknowledgement_objective,
    2 * DEFAULT_SETTINGS.acknowledgement_objective - 1,
)
"""Steps: suspect below the default objective, bad with twice the failures it allows."""


def fleet(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        _FRAME,
        links,
        [
            Section("", [_is_all_well(), _verdicts(), _muted(), *_figures()]),
            Section("Channels", [_worst_channels(), _alerts()]),
            Section("Over time", over_time()),
        ],
    )


def _is_all_well() -> Panel:
    answer = queries.or_else(f"min({select('sds_monitor_ok', JOB)})", -1)
    return figure(
        "Is everything fine?",
        "The one number: fine as long as no channel that is not muted is failing or "
        "blind, one has a verdict, Kafka answers, the monitor runs, and its figures "
        "are at most a minute old. 'No figures' is as bad as 'Look below': nobody is "
        "watching then.",
        answer,
        width=6,
        mappings=colours.texts(
            {
                1: ("Everything is fine", colours.GOOD),
                0: ("Look below", colours.BAD),
                -1: ("No figures", colours.UNKNOWN),
            }
        ),
        link=Link("Status page", status_page("/")),
    )


def _verdicts() -> Panel:
    panel = figure(
        "Channels by verdict",
        "How many channels have each verdict now, over the last ten minutes. Failing: "
        "messages were lost, or too many not acknowledged in time. Blind: the taps "
        "miss records, so these channels cannot be judged. Degraded: it recovers. "
        "Quiet: nobody writes, which is no fault.",
        *verdict_counts(),
        width=14,
        absent="no figures",
    )
    for text, colour in colours.VERDICTS.values():
        steps = thresholds(((None, colours.NEUTRAL), (1, colour))).build()
        panel = panel.override_by_name(
            text, [models.DynamicConfigValue("thresholds", steps)]
        )
    return panel


def _muted() -> Panel:
    muted = select("sds_channel_muted_until_timestamp_seconds", JOB)
    return figure(
        "Muted channels",
        "Channels that an operator has silenced for now in the channel table. They "
        "raise no alert and are left out of 'Is everything fine?'.",
        queries.or_else(f"count({muted} > time())"),
        steps=((None, colours.NEUTRAL), (1, colours.WARNING)),
    )


def _figures() -> list[Panel]:
    unacknowledged = queries.counted(select("sds_messages_unacknowledged_total", JOB))
    return [
        figure(
            "Messages lost",
            "Messages that others refer to and that only their sender showed to have, "
            "less those that arrived later. In the chosen range; anything above 0 is "
            "worth a look.",
            queries.or_else(queries.lost_messages(JOB)),
            steps=colours.ANY_IS_BAD,
            link=Link("Incidents", status_page("/incidents")),
        ),
        figure(
            "Deliveries lost",
            "Pairs of a message and a participant that spoke five minutes later and "
            "still lacked it, less those that got it later. One participant that was "
            "cut off causes many.",
            queries.or_else(queries.lost_deliveries(JOB)),
            steps=colours.ANY_IS_BAD,
            link=Link("Incidents", status_page("/incidents")),
        ),
        figure(
            "Unacknowledged",
            "Messages that nobody acknowledged within two minutes although others had "
            "written since. In the chosen range.",
            queries.or_else(unacknowledged),
            steps=colours.ANY_IS_SUSPECT,
        ),
        figure(
            "Eventual delivery",
            "Share of deliveries that were not lost in the end, all channels "
            "together, in the chosen range. Green from the default objective on; a "
            "channel's own objective is on its dashboard.",
            queries.delivered(JOB, window=RANGE),
            unit="percentunit",
            steps=_DELIVERY,
            absent="no deliveries",
        ),
        figure(
            "Acknowledged in time",
            "Share of messages acknowledged within two minutes, of those that "
            "somebody could have acknowledged, all channels together, in the chosen "
            "range. Green from the default objective on.",
            queries.acknowledged(JOB, window=RANGE),
            unit="percentunit",
            steps=_ACKNOWLEDGEMENT,
            absent="no messages",
        ),
        figure(
            "Messages",
            "Distinct content messages per second now, all channels together. 0 is no "
            "fault if nobody writes.",
            queries.rate(select("sds_messages_total", JOB)),
            unit="mps",
            absent="no figures",
        ),
    ]


def _worst_channels() -> Panel:
    since = queries.greatest(
        select("sds_verdict_since_timestamp_seconds", JOB), "channel"
    )
    unacknowledged = queries.counted(
        select("sds_messages_unacknowledged_total", JOB), "channel"
    )
    missing = queries.total(select("sds_dependencies_missing", JOB), "channel")
    return rows(
        "Channels, worst first",
        "Every channel with a label of its own, the most troubled first. The name "
        "leads to the channel's dashboard, the id to its status page with the message "
        "ids. Counts are of the chosen range. From 100 % of its delivery budget on, "
        "more deliveries failed in the range than the channel's objective allows. "
        "Channels beyond the label budget are summed as 'other', which has no verdict "
        "and is not here.",
        "channel",
        Column(
            "Verdict",
            queries.named(queries.trouble(JOB), JOB),
            mappings=colours.verdict_mappings(),
        ),
        Column("Since", f"1000 * {since}", unit="dateTimeFromNow"),
        Column(
            "Messages lost",
            _of_labelled(queries.lost_messages(JOB, "channel")),
            steps=colours.ANY_IS_BAD,
        ),
        Column(
            "Deliveries lost",
            _of_labelled(queries.lost_deliveries(JOB, "channel")),
            steps=colours.ANY_IS_BAD,
        ),
        Column(
            "Unacknowledged",
            _of_labelled(unacknowledged),
            steps=colours.ANY_IS_SUSPECT,
        ),
        Column("Missing now", _of_labelled(missing), steps=colours.ANY_IS_SUSPECT),
        Column(
            "Delivery budget used",
            _of_labelled(queries.delivery_budget_used(JOB)),
            unit="percentunit",
            steps=colours.up_to(1),
        ),
        headers={"name": "Channel", "channel": "Id"},
        links={
            "name": channel_link("__data.fields.channel"),
            "channel": channel_page("__data.fields.channel"),
        },
    )


def _of_labelled(per_channel: str) -> str:
    """Drop channel `other`, the sum of channels without a label: it has no verdict."""
    return f"({per_channel}) and on (channel) {queries.trouble(JOB)}"


def _alerts() -> Panel:
    firing = select("ALERTS", 'alertname=~"Sds.+"', alertstate="firing")
    return rows(
        "Alerts that fire",
        "What fires in this Prometheus now, inhibited and silenced alerts too. Empty "
        "is good, provided that the rules are loaded. The name leads to its runbook.",
        "alertname",
        Column("Times", f"count by (alertname, severity) ({firing})"),
        headers={"alertname": "Alert", "severity": "Severity"},
        links={
            "alertname": Link(
                "Runbook",
                status_page("/runbooks/${__data.fields.alertname:percentencode}"),
            )
        },
        height=6,
    )
