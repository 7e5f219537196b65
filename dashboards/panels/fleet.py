"""Dashboard *Fleet*: is everything fine, and if not, which channels have problems?"""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import FLEET, Links
from dashboards.panels import colours, queries
from dashboards.panels.base import Link, Panel, thresholds
from dashboards.panels.charts import figure, lines, ratio, ratios
from dashboards.panels.frame import assemble, status_page
from dashboards.panels.queries import JOB, RANGE, select
from dashboards.panels.series import Query, per_step, sums
from dashboards.panels.tables import Column, channel_rows, moment, rows
from sds_core.observer.channel_table import DEFAULT_SETTINGS
from sds_core.observer.settings import DEFAULTS

_DEADLINE_S = DEFAULTS.ack_deadline_ms // 1000

_DELIVERY = colours.at_least(
    DEFAULT_SETTINGS.delivery_objective, 2 * DEFAULT_SETTINGS.delivery_objective - 1
)
_ACKNOWLEDGEMENT = colours.at_least(
    DEFAULT_SETTINGS.acknowledgement_objective,
    2 * DEFAULT_SETTINGS.acknowledgement_objective - 1,
)
"""Thresholds of a ratio. The ratio is suspect if it is below the default SLO. It is bad
if more than twice as many events fail as this SLO allows."""


def fleet(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        links,
        FLEET,
        "SDS / Fleet",
        "Is everything fine, and if not, which channels have which problems?",
        {
            "": _FIGURES,
            "Channels": [_WORST_CHANNELS, _alerts(links)],
            "Over time": _OVER_TIME,
        },
        pages=(Link("Incidents", "/incidents"),),
    )


def _verdict_counts() -> list[Query]:
    return [
        sums("sds_channels", JOB, text, verdict=verdict.value)
        for verdict, (text, _) in colours.VERDICTS.items()
    ]


def _verdicts() -> Panel:
    panel = figure(
        "Channels by verdict",
        "Number of channels with each verdict. A verdict covers the last ten minutes. "
        "Failing: messages were lost, or too many messages were not delivered or not "
        "acknowledged in time. Blind: the taps miss records, so the monitor cannot "
        "judge the channel. Degraded: the channel has smaller problems, such as "
        "missing messages or unanswered repair requests. Quiet: no participant writes "
        "messages. This verdict is not a fault.",
        *_verdict_counts(),
        width=14,
        absent="no figures",
    )
    for text, colour in colours.VERDICTS.values():
        steps = thresholds(((None, colours.NEUTRAL), (1, colour))).build()
        panel = panel.override_by_name(
            text, [models.DynamicConfigValue("thresholds", steps)]
        )
    return panel


def _of_labelled(per_channel: str) -> str:
    """Drop the series of channel `other`.

    This series is the sum of all channels without a label. The channel `other` has no
    verdict.
    """
    return f"({per_channel}) and on (channel) {queries.trouble(JOB)}"


def _unacknowledged(*by: str) -> str:
    return queries.counted("sds_messages_unacknowledged_total", JOB, *by)


def _alerts(links: Links) -> Panel:
    firing = select("ALERTS", 'alertname=~"(Sds|Mvds).+"', alertstate="firing")
    return rows(
        "Alerts that fire",
        "Alerts that fire in this Prometheus now, including inhibited and silenced "
        "alerts. If the rules are loaded, an empty table means that no alert fires. "
        "The name of an alert links to its runbook.",
        "alertname",
        Column("Times", f"count by (alertname, severity) ({firing})"),
        headers={"alertname": "Alert", "severity": "Severity"},
        links={
            "alertname": Link(
                "Runbook", links.runbook("${__data.fields.alertname:percentencode}")
            )
        },
        height=6,
    )


_MUTED = select("sds_channel_muted_until_timestamp_seconds", JOB)

_FIGURES: list[Panel] = [
    figure(
        "Is everything fine?",
        "'Everything is fine' means that the monitor runs, Kafka answers, the "
        "monitor's clock is not wrong, and figures are at most a minute old. It also "
        "means that at least one channel or group has a verdict, and that no channel "
        "or group is failing or blind. Muted channels and groups do not count. 'No "
        "figures' means that Prometheus receives no figures from the monitor. This "
        "state is as bad as 'Look below'.",
        queries.or_else(f"min({select('sds_monitor_ok', JOB)})", -1),
        width=6,
        mappings=colours.texts(
            {
                1: ("Everything is fine", colours.GOOD),
                0: ("Look below", colours.BAD),
                -1: ("No figures", colours.UNKNOWN),
            }
        ),
        link=Link("Status page", status_page("/")),
    ),
    _verdicts(),
    figure(
        "Muted channels",
        "Number of channels that an operator has muted in the channel table. Muted "
        "channels cause no alert, and do not count in 'Is everything fine?'.",
        queries.or_else(f"count({_MUTED} > time())"),
        steps=((None, colours.NEUTRAL), (1, colours.WARNING)),
    ),
    figure(
        "Messages lost",
        "Number of lost messages in the chosen range. A message is lost if other "
        "messages list it as a dependency, but only its sender has it. A lost message "
        "that arrives later does not count. Investigate any value above 0.",
        queries.or_else(queries.lost_messages(JOB)),
        steps=colours.ANY_IS_BAD,
        link=Link("Incidents", status_page("/incidents")),
    ),
    figure(
        "Deliveries lost",
        "Number of lost deliveries in the chosen range. A delivery is a pair of a "
        "message and a participant. The delivery is lost if the participant still "
        "lacks the message after five minutes. If the message arrives later, the "
        "delivery does not count. A single disconnected participant can lack many "
        "messages.",
        queries.or_else(queries.lost_deliveries(JOB)),
        steps=colours.ANY_IS_BAD,
        link=Link("Incidents", status_page("/incidents")),
    ),
    figure(
        "Unacknowledged",
        "Number of messages in the chosen range that no participant acknowledged "
        "within two minutes, although other participants sent frames.",
        queries.or_else(_unacknowledged()),
        steps=colours.ANY_IS_SUSPECT,
    ),
    ratio(
        "Eventual delivery",
        "Share of deliveries that succeeded in the end, over all channels, in the "
        "chosen range. Green: the default SLO is met. The dashboard of a channel "
        "shows the channel's own SLO.",
        queries.delivered(JOB, window=RANGE),
        steps=_DELIVERY,
        absent="no deliveries",
    ),
    ratio(
        "Acknowledged in time",
        "Share of messages that were acknowledged within two minutes, over all "
        "channels, in the chosen range. Messages that no other participant could "
        "acknowledge do not count. Green: the default SLO is met.",
        queries.acknowledged(JOB, window=RANGE),
        steps=_ACKNOWLEDGEMENT,
        absent="no messages",
    ),
    figure(
        "Messages",
        "Distinct content messages per second now, over all channels. The value 0 is "
        "not a fault if no participant writes messages.",
        queries.rate("sds_messages_total", JOB),
        unit="mps",
        absent="no figures",
    ),
]

_WORST_CHANNELS = channel_rows(
    "Channels, worst first",
    "All channels that have their own label. The channels with the worst verdicts "
    "come first. The table omits channels beyond the cardinality limit. The name "
    "links to the channel's dashboard. The id links to the channel's status page, "
    "which shows message ids. Counts cover the chosen range. If the used error budget "
    "is above 100 %, more deliveries failed than the channel's SLO allows.",
    Column(
        "Verdict",
        queries.named(queries.trouble(JOB), JOB),
        mappings=colours.VERDICT_MAPPINGS,
    ),
    moment(
        "Since",
        queries.greatest("sds_verdict_since_timestamp_seconds", JOB, "channel"),
    ),
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
        _of_labelled(_unacknowledged("channel")),
        steps=colours.ANY_IS_SUSPECT,
    ),
    Column(
        "Missing now",
        _of_labelled(queries.total("sds_dependencies_missing", JOB, "channel")),
        steps=colours.ANY_IS_SUSPECT,
    ),
    Column(
        "Delivery error budget used",
        _of_labelled(queries.delivery_budget_used(JOB)),
        unit="percentunit",
        steps=colours.up_to(1),
    ),
)

_OVER_TIME: list[Panel] = [
    lines(
        "Verdicts",
        "Number of channels by verdict. Red: channels were failing. Purple: channels "
        "were blind, because the taps missed records. The network may have worked "
        "correctly.",
        *_verdict_counts(),
        stacked=True,
    ),
    lines(
        "Lost and unacknowledged",
        "Failures per graph step, by kind. The line 'lost' counts messages that "
        "reached no other participant within five minutes. The line 'retracted' counts "
        "the lost messages that arrived later. The line 'lost' includes these "
        "messages, too.",
        per_step("sds_dependency_gaps_closed_total", JOB, "lost", outcome="lost"),
        per_step("sds_dependency_losses_retracted_total", JOB, "retracted"),
        per_step("sds_deliveries_total", JOB, "deliveries lost", outcome="lost"),
        per_step("sds_messages_unacknowledged_total", JOB, "unacknowledged"),
    ),
    ratios(
        "Eventual delivery and the default SLO",
        "Share of deliveries that succeeded. The line 'last hour' shows the share over "
        "one hour. The line 'now' shows the current share. The dashed line is the "
        "default SLO. If the share is below this SLO, failures use up the error budget "
        "too fast. If the monitor retracts earlier losses, the share can exceed 100 %.",
        Query(queries.delivered(JOB, window="1h"), "last hour"),
        Query(queries.delivered(JOB), "now"),
        limits=colours.line_at(DEFAULT_SETTINGS.delivery_objective, colours.NEUTRAL),
    ),
    ratios(
        "Timely acknowledgement and the default SLO",
        f"Share of messages that were acknowledged within {_DEADLINE_S} s. The line "
        "'last hour' shows the share over one hour. The line 'now' shows the current "
        "share. The dashed line is the default SLO.",
        Query(queries.acknowledged(JOB, window="1h"), "last hour"),
        Query(queries.acknowledged(JOB), "now"),
        limits=colours.line_at(
            DEFAULT_SETTINGS.acknowledgement_objective, colours.NEUTRAL
        ),
    ),
]
