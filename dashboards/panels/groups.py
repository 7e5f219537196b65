"""Dashboard *MVDS groups*: are messages acknowledged, how fast, at what cost?"""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import GROUPS, Links
from dashboards.panels import colours, forecast, queries
from dashboards.panels.base import Link, Panel
from dashboards.panels.charts import figure, heat, lines, ratio, states
from dashboards.panels.frame import assemble, group_page, in_lines, some_groups
from dashboards.panels.queries import CHANNELS, JOB, select
from dashboards.panels.series import Query, now, per_second, per_step, quantiles, sums
from dashboards.panels.tables import Column, moment, rows
from dashboards.thresholds import UNACKNOWLEDGED_SHARE
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.verdict import Verdict

_DEADLINE_S = DEFAULTS.ack_deadline_ms / 1000


def groups(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        links,
        GROUPS,
        "MVDS / Groups",
        "Do receivers acknowledge MVDS messages, how fast, and at what cost?",
        {
            "": _FIGURES,
            "Verdicts": _VERDICTS,
            "Acknowledgement": _ACKNOWLEDGEMENT,
            "Exchange": _EXCHANGE,
            "Cost": in_lines(_COST, 3),
            "Forecast": forecast.costs("mvds", "groups"),
            "By group": [_TABLE],
            "Memory of the monitor": _MEMORY,
        },
        variables=(some_groups(),),
        pages=(Link("Incidents of groups", "/incidents"),),
    )


def _unacknowledged() -> str:
    missing = queries.in_range("mvds_unacknowledged_total", CHANNELS)
    resolved = queries.in_range("mvds_unacknowledged_resolved_total", CHANNELS)
    in_time = queries.in_range("mvds_acknowledged_in_time_total", CHANNELS)
    # `missing - resolved` may be negative: `resolved` includes late acknowledgements of
    # messages whose deadline was before the time range.
    return queries.share(
        f"clamp_min({missing} - {resolved}, 0)", f"{missing} + {in_time}"
    )


_MUTED = select("mvds_group_muted_until_timestamp_seconds", JOB)

_FIGURES: list[Panel] = [
    figure(
        "Messages",
        "Distinct messages of the chosen groups in the chosen range.",
        queries.counted("mvds_messages_total", CHANNELS),
    ),
    ratio(
        "Unacknowledged",
        "Share of pairs without an acknowledgement. A pair is one message and one "
        "receiver. Only pairs whose deadline was in the chosen range count. Pairs "
        "whose receiver sent nothing do not count. If an acknowledgement comes late, "
        "the pair does not count as unacknowledged. Red: the alert's limit is "
        "reached.",
        _unacknowledged(),
        steps=colours.up_to(UNACKNOWLEDGED_SHARE),
        absent="nothing ended",
    ),
    figure(
        "Acknowledged within",
        "Time within which 95 % of the acknowledgements in the chosen range came, "
        "counted from the first MESSAGE.",
        queries.quantile_in_range(0.95, "mvds_ack_latency_seconds", CHANNELS),
        unit="s",
        absent="no traffic",
    ),
    figure(
        "MESSAGEs per delivery",
        "Mean number of MESSAGE records that nodes send to a receiver until the "
        "receiver acknowledges the message. The mean covers the chosen range. Without "
        "losses, the mean is 1.",
        queries.share_in_range(
            "mvds_sends_until_delivery_total", "mvds_sent_deliveries_total", CHANNELS
        ),
        unit="none",
        absent="no traffic",
    ),
    figure(
        "OFFERs per delivery",
        "OFFER records per acknowledged pair of a message and a receiver, in the "
        "chosen range. If nodes offer each message to all their peers, the value is "
        "high.",
        queries.share_in_range(
            "mvds_records_total", "mvds_deliveries_total", CHANNELS, type="offer"
        ),
        unit="none",
        absent="no traffic",
    ),
    ratio(
        "Empty payloads",
        "Share of payloads that are empty, over all groups, in the chosen range. "
        "Deployed nodes send empty payloads, which only cost bandwidth.",
        queries.share_in_range(
            "mvds_payloads_total", "mvds_payloads_total", JOB, empty="true"
        ),
        absent="no traffic",
    ),
]

_VERDICTS: list[Panel] = [
    lines(
        "Groups by verdict",
        "Number of groups with each verdict, including groups without a label of "
        "their own.",
        *(
            sums("mvds_groups", JOB, verdict.value, verdict=verdict.value)
            for verdict in Verdict
        ),
    ),
    lines(
        "Muted groups",
        "Number of groups that an operator has muted in the channel table. Muted "
        "groups cause no alert, and the monitor's overall verdict ignores muted "
        "groups.",
        Query(queries.or_else(f"count({_MUTED} > time())"), "muted"),
    ),
    states(
        "Verdict",
        "Verdict of each chosen group. Failing: more than "
        f"{UNACKNOWLEDGED_SHARE:.0%} of the deliveries that ended in the last ten "
        "minutes were not acknowledged. A delivery is one message to one receiver. "
        "Group `unknown` contains records whose group is unknown.",
        Query(queries.trouble(CHANNELS, "mvds_group_verdict"), "{{channel}}"),
        colours.VERDICT_MAPPINGS,
    ),
]

_ACKNOWLEDGEMENT: list[Panel] = [
    lines(
        "Acknowledgement latency",
        "Time between the first MESSAGE to a receiver and the receiver's "
        "acknowledgement. The dashed line is the deadline.",
        *quantiles("mvds_ack_latency_seconds", CHANNELS),
        unit="s",
        limits=colours.line_at(_DEADLINE_S),
    ),
    heat(
        "Delivery time",
        "Number of deliveries by duration. A delivery begins with the first record "
        "that has the message's id, for example an OFFER. It ends with the receiver's "
        "first acknowledgement.",
        "mvds_delivery_seconds",
        CHANNELS,
    ),
    lines(
        "Outcome of addressed pairs",
        "Number of pairs that ended per graph step, by outcome. A pair is one message "
        "and one receiver. Unwitnessed: the receiver sent nothing, or already had the "
        "message. An unwitnessed pair is not a fault.",
        per_step("mvds_acknowledged_in_time_total", CHANNELS, "in time"),
        per_step("mvds_unacknowledged_total", CHANNELS, "unacknowledged"),
        per_step("mvds_unacknowledged_resolved_total", CHANNELS, "acknowledged late"),
        per_step("mvds_unwitnessed_total", CHANNELS, "unwitnessed"),
    ),
    lines(
        "Addressed pairs and pairs in flight",
        "Pairs of a message and a receiver. Addressed: new pairs per graph step. In "
        "flight: pairs without an acknowledgement, whose deadline has not passed. If "
        "the number of pairs in flight rises although the traffic does not rise, "
        "receivers are offline.",
        per_step("mvds_addressed_total", CHANNELS, "addressed"),
        now("mvds_in_flight", CHANNELS, "in flight in {{channel}}"),
    ),
]

_EXCHANGE: list[Panel] = [
    lines(
        "Records by type",
        "ACK, OFFER, REQUEST and MESSAGE records per second. In interactive mode, "
        "nodes send OFFER records first. In batch mode, nodes send only MESSAGE and "
        "ACK records.",
        per_second("mvds_records_total", CHANNELS, "{{type}}"),
        unit="ops",
        stacked=True,
    ),
    lines(
        "Retransmissions by type",
        "Records per second that repeat an earlier record from the same sender to the "
        "same receiver. Each lost payload causes some retransmissions. If many "
        "retransmissions occur without losses, the senders' back-off is too short.",
        per_second("mvds_retransmissions_total", CHANNELS, "{{type}}"),
        unit="ops",
        stacked=True,
    ),
    lines(
        "Broken exchanges",
        "Requests without an answer, and offers without a request, per graph step. "
        "Requests without answer: no MESSAGE came before the deadline, because the "
        "node that offered the message did not answer, or because the answers were "
        "lost. Offers without request: the receiver did not want the message, or did "
        "not receive the offer.",
        per_step("mvds_unanswered_requests_total", CHANNELS, "requests without answer"),
        per_step("mvds_unrequested_offers_total", CHANNELS, "offers without request"),
    ),
    lines(
        "Messages and deliveries",
        "Messages: distinct messages per second. Deliveries: acknowledged pairs of a "
        "message and a receiver, per second.",
        per_second("mvds_messages_total", CHANNELS, "messages"),
        per_second("mvds_deliveries_total", CHANNELS, "deliveries"),
        unit="ops",
    ),
]

_COST: list[Panel] = [
    lines(
        "Needless records",
        "Duplicate messages: MESSAGE records per second to receivers that had already "
        "acknowledged the message. Needless offers: OFFER records per second to peers "
        "that already had the message.",
        per_second("mvds_duplicates_total", CHANNELS, "duplicate messages"),
        per_second("mvds_needless_offers_total", CHANNELS, "needless offers"),
        unit="ops",
    ),
    lines(
        "Bytes by type",
        "Bytes of records per second, by type. Type `other` contains payload bytes "
        "outside of records. These bytes count in the group `unknown`.",
        per_second("mvds_bytes_total", CHANNELS, "{{type}}"),
        unit="Bps",
        stacked=True,
    ),
    lines(
        "Payloads",
        "Empty and non-empty payloads per second, over all groups. Copies: payloads "
        "that a second tap recorded again.",
        per_second("mvds_payloads_total", JOB, "empty: {{empty}}"),
        per_second("mvds_replicas_total", JOB, "copies"),
        unit="pps",
    ),
]

_TABLE = rows(
    "Groups by unacknowledged messages",
    "Unacknowledged pairs of a message and a receiver in the chosen range, by group. "
    "The group with the most unacknowledged pairs comes first. Each group links to "
    "its status page.",
    "channel",
    Column(
        "Unacknowledged",
        queries.counted("mvds_unacknowledged_total", CHANNELS, "channel"),
        steps=colours.ANY_IS_SUSPECT,
    ),
    Column(
        "Acknowledged late",
        queries.counted("mvds_unacknowledged_resolved_total", CHANNELS, "channel"),
    ),
    Column("Messages", queries.counted("mvds_messages_total", CHANNELS, "channel")),
    Column("Deliveries", queries.counted("mvds_deliveries_total", CHANNELS, "channel")),
    moment(
        "Verdict since",
        queries.greatest("mvds_verdict_since_timestamp_seconds", CHANNELS, "channel"),
    ),
    headers={"channel": "Group"},
    links={"channel": group_page("__data.fields.channel")},
)

_MEMORY: list[Panel] = [
    lines(
        "Dropped by limits",
        "Number of entries per graph step that the monitor dropped because a limit was "
        "reached. Each limit has a line of its own. Only large groups or hostile "
        "traffic reach these limits.",
        per_step("mvds_left_out_total", JOB, "{{reason}}"),
    ),
    lines(
        "Evicted from memory",
        "Number of entries per graph step that the monitor evicted from memory early, "
        "because a limit was reached. After an eviction, figures may be too low.",
        per_step("mvds_remembered_evicted_total", JOB, "entries"),
    ),
]
