"""Panels about the mirrors of all Prometheus jobs.

A gauge's label `instance` names the mirror that exports the gauge.
"""

from __future__ import annotations

from functools import partial

from dashboards.panels import colours, queries
from dashboards.panels.base import Panel
from dashboards.panels.charts import figure, lines, moment, states
from dashboards.panels.frame import in_lines
from dashboards.panels.series import Query, now, per_second, per_step

_ANY = ""
_SWEPT = queries.greatest("sds_mirror_store_swept_timestamp_seconds", _ANY, "node")
_of_mirrors = partial(figure, absent="no mirror")
_of_audits = partial(figure, absent="no audit")

_FIGURES: list[Panel] = [
    _of_mirrors(
        "Probable losses",
        "Number of times in the chosen range that a mirror probably missed messages. "
        "If the monitor found losses in a channel at the same time, the mirror may "
        "have caused these losses.",
        queries.counted("sds_mirror_probable_losses_total", _ANY),
        steps=colours.ANY_IS_SUSPECT,
    ),
    _of_mirrors(
        "Nodes up",
        "Number of nodes whose latest answer to a mirror was valid.",
        queries.total("sds_mirror_node_up", _ANY),
    ),
    _of_mirrors(
        "Paused",
        "Number of mirrors that read nothing, because their spool is full or "
        "cannot be written. If a node drops messages before a mirror reads them, the "
        "mirror misses these messages.",
        queries.total("sds_mirror_paused", _ANY),
        steps=colours.ANY_IS_BAD,
    ),
    moment(
        "Oldest record waiting",
        "How long the oldest record on a mirror's disk has waited for Kafka. A "
        "wait of seconds is normal. A wait of minutes means that Kafka accepts no "
        "records.",
        "min(sds_mirror_oldest_spooled_timestamp_seconds)",
        absent="none",
    ),
    _of_mirrors(
        "Refused by Kafka",
        "Number of records that Kafka refused in the chosen range, for example "
        "because the records were too large. Mirrors drop refused records.",
        queries.counted("sds_mirror_refused_total", _ANY),
        steps=colours.ANY_IS_BAD,
    ),
    _of_mirrors(
        "Last number",
        "Last sequence number that each mirror assigned to a frame. If this number "
        "falls, the mirror has a fault.",
        now("sds_mirror_last_seq", _ANY, "{{instance}}"),
    ),
]

_CHARTS: list[Panel] = [
    lines(
        "Messages received",
        "Messages per second that mirrors received for the first time, by source. If "
        "mirrors receive many messages from the source 'store', the source 'relay' "
        "or 'filter' misses messages.",
        per_second("sds_mirror_messages_total", _ANY, "{{source}}"),
        unit="mps",
    ),
    lines(
        "Messages skipped",
        "Messages per second that mirrors skipped. The lines 'known' show duplicates "
        "by source. The other lines show skipped messages by reason. If a mirror "
        "reads several nodes, duplicates are normal. The reasons 'other_topic' and "
        "'not_sds' mean traffic that the mirror does not need.",
        per_second("sds_mirror_duplicates_total", _ANY, "known, {{source}}"),
        per_second("sds_mirror_skipped_total", _ANY, "{{reason}}"),
        unit="mps",
    ),
    lines(
        "Probable losses by cause",
        "Number of probable losses per graph step, by cause. Cause 'full_page': a "
        "node's cache probably overflowed, so poll the node more often. Causes "
        "'unreachable' and 'resubscribed': a node was unavailable.",
        per_step("sds_mirror_probable_losses_total", _ANY, "{{cause}}"),
    ),
    lines(
        "Written to Kafka",
        "Written: frames per second that Kafka acknowledged. Failures: writes per "
        "second that failed. Mirrors retry failed writes. If writes fail for a long "
        "time, the spool fills up.",
        per_second("sds_mirror_written_total", _ANY, "written"),
        per_second("sds_mirror_kafka_failures_total", _ANY, "failures"),
        unit="wps",
    ),
    lines(
        "Records waiting on disk",
        "Number of records that wait for Kafka in each mirror's spool on disk. If the "
        "number does not return to about 0, Kafka accepts too few records.",
        now("sds_mirror_spooled_records", _ANY, "{{instance}}"),
    ),
    lines(
        "Bytes waiting on disk",
        "Size of each mirror's spool on disk. When the spool is full, the mirror "
        "stops reading its nodes.",
        now("sds_mirror_spooled_bytes", _ANY, "{{instance}}"),
        unit="bytes",
    ),
]

MIRROR = [*_FIGURES, *in_lines(_CHARTS, 3, 3)]
"""Panels about the messages that mirrors receive, lose and write."""

AUDITS: list[Panel] = [
    _of_audits(
        "Missing here",
        "Number of messages that only the other side of the audit has, according to "
        "the newest audits. The mirror lacks these messages. If the monitor runs with "
        "--audit, and a message of the last ten minutes is missing, the message's "
        "channel is blind.",
        queries.total("sds_audit_missing_messages", _ANY, side="here"),
        steps=colours.ANY_IS_BAD,
    ),
    _of_audits(
        "Missing there",
        "Number of messages that only the mirror has, according to the newest audits. "
        "The other side of the audit lacks these messages. A store normally lacks "
        "some messages, because a store refuses messages that are more than 20 s old.",
        queries.total("sds_audit_missing_messages", _ANY, side="there"),
    ),
    _of_audits(
        "Not compared",
        "Number of the mirror's records that lack the hash or the time of their "
        "message.",
        queries.total("sds_audit_unidentified_records", _ANY),
    ),
    moment(
        "Last audit",
        "Time at which the last successful audit ended. If several audit processes "
        "run, the panel shows the earliest of their last successes.",
        "min(sds_audit_last_success_timestamp_seconds)",
        absent="no audit",
    ),
    moment(
        "Compared up to",
        "Timestamp up to which the last audit compared messages. By default, this "
        "timestamp is one minute before the audit starts (option --settle).",
        "min(sds_audit_compared_until_timestamp_seconds)",
        absent="no audit",
    ),
    _of_audits(
        "Mirrored again",
        "Number of missing messages that audits with --fix wrote to the mirror's "
        "topic in the chosen range.",
        queries.counted("sds_audit_remirrored_total", _ANY),
    ),
    lines(
        "Messages compared",
        "Number of messages on each side of the newest audit.",
        now("sds_audit_messages", _ANY, "{{instance}} {{side}}"),
    ),
    lines(
        "Audits",
        "Number of audits per graph step, by result. Failures in a row: audits that "
        "failed since the newest successful audit.",
        per_step("sds_audit_runs_total", _ANY, "{{result}}"),
        now("sds_audit_consecutive_failures", _ANY, "{{instance}} failures in a row"),
    ),
    lines(
        "Served to other mirrors",
        "Number of messages that each audit server offers to other mirrors for "
        "comparison. Records copied: records that audit servers sent to other mirrors, "
        "per graph step.",
        now("sds_audit_serve_messages", _ANY, "{{instance}} messages"),
        per_step("sds_audit_serve_records_total", _ANY, "records copied"),
    ),
    lines(
        "Peers of audit servers",
        "Connections to audit servers, and synchronisations, per graph step. Refused: "
        "connections that exceeded the limit, had no valid token, or ended because of "
        "a fault of the peer. Differing: synchronisations in which two mirrors had "
        "different messages.",
        per_step("sds_audit_serve_connections_total", _ANY, "connections"),
        per_step("sds_audit_serve_refused_total", _ANY, "refused"),
        per_step("sds_audit_serve_sessions_total", _ANY, "synchronisations"),
        per_step("sds_audit_serve_differing_roots_total", _ANY, "differing"),
    ),
]
"""Panels about audits, which compare mirrors with stores or with each other."""

NODES: list[Panel] = [
    states(
        "Nodes",
        "Up: the node's latest answer to a mirror was valid. If a mirror cannot read "
        "a node, the mirror misses new messages, unless another node or a Store node "
        "has these messages.",
        now("sds_mirror_node_up", _ANY, "{{node}}"),
        colours.texts({1: ("Up", colours.GOOD), 0: ("Down", colours.BAD)}),
    ),
    lines(
        "Pages",
        "Pages of messages that each node returned per second, by source.",
        per_second("sds_mirror_pages_total", _ANY, "{{node}} {{source}}"),
        unit="rps",
        width=8,
    ),
    lines(
        "Failed requests",
        "Requests per second to which the node gave no valid answer.",
        per_second("sds_mirror_failures_total", _ANY, "{{node}} {{source}}"),
        unit="reqps",
        width=8,
    ),
    lines(
        "Full pages and malformed messages",
        "Number of full pages and malformed messages per graph step. Full: the node "
        "returned as many messages as its cache holds, so the cache may have "
        "overflowed. In this case, poll the node more often. Malformed: messages that "
        "the mirror could not read, usually because the node has a version of the API "
        "that the mirror does not support.",
        per_step("sds_mirror_full_pages_total", _ANY, "full, {{node}}"),
        per_step("sds_mirror_undecodable_messages_total", _ANY, "malformed, {{node}}"),
        width=4,
    ),
    lines(
        "Lag behind stores",
        "Lag of the mirror behind each node's store. A lag of a few sweep intervals "
        "is normal. If the lag grows, the mirror no longer reads the store.",
        Query(f"time() - {_SWEPT}", "{{node}}"),
        unit="s",
        width=4,
    ),
]
"""Panels about the Waku nodes from which mirrors read."""
