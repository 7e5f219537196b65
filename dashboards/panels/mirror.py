"""Panels of mirrors: `instance` distinguishes their gauges, and no job is selected."""

from __future__ import annotations

from functools import partial

from dashboards.panels import colours, queries
from dashboards.panels.base import Panel, Query, now, per_second, per_step
from dashboards.panels.charts import figure, lines, moment, states
from dashboards.panels.frame import in_lines
from dashboards.panels.queries import select

_ANY = ""
_of_mirrors = partial(figure, absent="no mirror")
_of_audits = partial(figure, absent="no audit")


def mirror() -> list[Panel]:
    """Return panels of the messages that mirrors receive, lose and write."""
    return [*_mirror_figures(), *in_lines(_mirror_charts(), 3, 3)]


def _mirror_figures() -> list[Panel]:
    oldest = select("sds_mirror_oldest_spooled_timestamp_seconds", _ANY)
    return [
        _of_mirrors(
            "Probable losses",
            "Times in the chosen range that messages were probably lost before a "
            "mirror had them. Losses in channels at that time may be the mirror's.",
            queries.counted("sds_mirror_probable_losses_total", _ANY),
            steps=colours.ANY_IS_SUSPECT,
        ),
        _of_mirrors(
            "Nodes up",
            "Nodes whose latest answer was good.",
            queries.total("sds_mirror_node_up", _ANY),
        ),
        _of_mirrors(
            "Paused",
            "Mirrors that read nothing because their spool is full: messages that "
            "nodes drop meanwhile are lost. Make Kafka accept records again.",
            queries.total("sds_mirror_paused", _ANY),
            steps=colours.ANY_IS_BAD,
        ),
        moment(
            "Oldest record waiting",
            "Since when the oldest record has waited on a mirror's disk for Kafka. "
            "Some seconds are normal; minutes mean that Kafka accepts nothing.",
            f"min({oldest})",
            absent="none",
        ),
        _of_mirrors(
            "Refused by Kafka",
            "Records that Kafka refuses, in the chosen range: dropped permanently, "
            "for example because they are too large.",
            queries.counted("sds_mirror_refused_total", _ANY),
            steps=colours.ANY_IS_BAD,
        ),
        _of_mirrors(
            "Last number",
            "Last number that each mirror gave to a frame. It must never fall: the "
            "monitor counts gaps in them as missing records.",
            now("sds_mirror_last_seq", _ANY, "{{instance}}"),
        ),
    ]


def _mirror_charts() -> list[Panel]:
    return [
        lines(
            "Messages taken",
            "Messages per second taken for the first time, by source. Many from store "
            "mean that relay or filter miss messages.",
            per_second("sds_mirror_messages_total", _ANY, "{{source}}"),
            unit="mps",
        ),
        lines(
            "Messages left out",
            "Messages per second that were known already, by source, and that were "
            "not meant to be mirrored, by reason. Duplicates are normal with several "
            "nodes; other_topic and not_sds are foreign traffic.",
            per_second("sds_mirror_duplicates_total", _ANY, "known, {{source}}"),
            per_second("sds_mirror_skipped_total", _ANY, "{{reason}}"),
            unit="mps",
        ),
        lines(
            "Probable losses by cause",
            "Times per step of the graph that messages were probably lost. full_page: "
            "the node's cache overflowed, so poll it more often; unreachable and "
            "resubscribed: the node was unavailable.",
            per_step("sds_mirror_probable_losses_total", _ANY, "{{cause}}"),
            bars=True,
        ),
        lines(
            "Written to Kafka",
            "Frames per second that Kafka acknowledged, and writes without an "
            "acknowledgement, which are repeated. Lasting failures fill the spool.",
            per_second("sds_mirror_written_total", _ANY, "written"),
            per_second("sds_mirror_kafka_failures_total", _ANY, "failures"),
            unit="wps",
        ),
        lines(
            "Records waiting on disk",
            "Records in each mirror's spool that wait for Kafka. It must come back to "
            "about 0.",
            now("sds_mirror_spooled_records", _ANY, "{{instance}}"),
        ),
        lines(
            "Bytes waiting on disk",
            "Size of each mirror's spool. When it is full the mirror pauses.",
            now("sds_mirror_spooled_bytes", _ANY, "{{instance}}"),
            unit="bytes",
        ),
    ]


def audits() -> list[Panel]:
    """Return panels of audits, which compare mirrors with stores or with each other."""
    ended = select("sds_audit_last_success_timestamp_seconds", _ANY)
    until = select("sds_audit_compared_until_timestamp_seconds", _ANY)
    return [
        _of_audits(
            "Missing here",
            "Messages that the mirror lacks and the other side has, by the newest "
            "audits. Channels of which recent ones are missing are blind.",
            queries.total("sds_audit_missing_messages", _ANY, side="here"),
            steps=colours.ANY_IS_BAD,
        ),
        _of_audits(
            "Missing there",
            "Messages that the mirror has and the other side lacks. A store has some "
            "in normal operation: it refuses messages that are older than 20 s.",
            queries.total("sds_audit_missing_messages", _ANY, side="there"),
        ),
        _of_audits(
            "Not compared",
            "Records of the mirror without hash or time of their message.",
            queries.total("sds_audit_unidentified_records", _ANY),
        ),
        moment(
            "Last audit",
            "When the oldest of the newest audits ended.",
            f"min({ended})",
            absent="no audit",
        ),
        moment(
            "Compared up to",
            "Sender's time up to which messages were compared: a minute before the "
            "audit, unless --settle says otherwise.",
            f"min({until})",
            absent="no audit",
        ),
        _of_audits(
            "Mirrored again",
            "Messages that audits with --fix wrote to the mirror, in the chosen range.",
            queries.counted("sds_audit_remirrored_total", _ANY),
        ),
        lines(
            "Messages compared",
            "Messages of each side in the newest audit.",
            now("sds_audit_messages", _ANY, "{{instance}} {{side}}"),
        ),
        lines(
            "Audits",
            "Audits per step of the graph, by how they ended.",
            per_step("sds_audit_runs_total", _ANY, "{{result}}"),
            bars=True,
        ),
        lines(
            "Served to other mirrors",
            "Messages that other mirrors can compare, by server, and records that they "
            "copied per step of the graph.",
            now("sds_audit_serve_messages", _ANY, "{{instance}} messages"),
            per_step("sds_audit_serve_records_total", _ANY, "records copied"),
        ),
        lines(
            "Peers of served mirrors",
            "Connections and synchronisations per step of the graph. Many refused "
            "connections come from strangers, or from peers with other versions; "
            "differing are synchronisations with a mirror that has other messages.",
            per_step("sds_audit_serve_connections_total", _ANY, "connections"),
            per_step("sds_audit_serve_refused_total", _ANY, "refused"),
            per_step("sds_audit_serve_sessions_total", _ANY, "synchronisations"),
            per_step("sds_audit_serve_differing_roots_total", _ANY, "differing"),
            bars=True,
        ),
    ]


def nodes() -> list[Panel]:
    """Return panels of the Waku nodes that mirrors read."""
    swept = queries.greatest("sds_mirror_store_swept_timestamp_seconds", _ANY, "node")
    return [
        states(
            "Nodes",
            "Whether each node's latest answer was good. What a node receives while "
            "it is down for a mirror is lost, unless another node or its Store has it.",
            now("sds_mirror_node_up", _ANY, "{{node}}"),
            colours.texts({1: ("Up", colours.GOOD), 0: ("Down", colours.BAD)}),
        ),
        lines(
            "Pages",
            "Pages of messages per second from nodes, by source.",
            per_second("sds_mirror_pages_total", _ANY, "{{node}} {{source}}"),
            unit="rps",
            width=8,
        ),
        lines(
            "Failed requests",
            "Requests per second to which a node gave no good answer.",
            per_second("sds_mirror_failures_total", _ANY, "{{node}} {{source}}"),
            unit="reqps",
            width=8,
        ),
        lines(
            "Full pages and messages that cannot be read",
            "Per step of the graph. A page as long as the node's cache: the cache may "
            "have overflowed silently, so poll more often. Messages that cannot be "
            "read: the node speaks another version of the API.",
            per_step("sds_mirror_full_pages_total", _ANY, "full, {{node}}"),
            per_step(
                "sds_mirror_undecodable_messages_total", _ANY, "not read, {{node}}"
            ),
            bars=True,
            width=4,
        ),
        lines(
            "Store not swept",
            "Lag of the mirror behind each node's store. It must stay at a few sweep "
            "intervals; if it grows the sweep hangs.",
            Query(f"time() - {swept}", "{{node}}"),
            unit="s",
            width=4,
        ),
    ]
