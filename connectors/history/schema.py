"""The two tables of the history, and their rows.

A row is an object in values of JSON, times in Unix ms: as such it goes to Kafka, and
with the types of the table's schema to Parquet. Every row carries ``told``, the
outbox's counter: of the rows with one key the one with the greatest counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from sds_core.catalogue import CHANNEL_METRICS
from sds_core.observer.histogram import BUCKETS_MS
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    incident_object,
)
from sds_core.observer.report import channel_report
from sds_core.observer.sds.totals import ChannelTotals

Row = dict[str, Any]
"""One row by the names of its fields, in values of JSON."""


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """One table.

    Attributes:
        name: Its name.
        schema: Its fields; the metadata of each holds a ``description``.
        key: Names of the fields that tell its rows apart.
        time: Name of the field by whose day, in UTC, it is partitioned.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    time: str

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        """Rows with the types of the schema."""
        maps = [f.name for f in self.schema if pa.types.is_map(f.type)]
        typed = [row | {name: list(row[name].items()) for name in maps} for row in rows]
        return pa.Table.from_pylist(typed, schema=self.schema)

    def rows(self, table: pa.Table) -> list[Row]:
        """Rows of a table that has the fields of the schema."""
        # Times come back from DuckDB in microseconds.
        plain = table.cast(self.schema).cast(_with_unix_ms(self.schema))
        rows: list[Row] = plain.to_pylist(maps_as_pydicts="strict")
        return rows


class ToldIncident(NamedTuple):
    """An incident as it left the job.

    Attributes:
        told: The outbox's counter.
        found: The incident.
    """

    told: int
    found: ChannelIncident


class ToldMinute(NamedTuple):
    """A channel's figures at the end of a minute, as they left the job.

    Attributes:
        told: The outbox's counter.
        channel: Channel id.
        minute_ms: When the minute began, Unix ms of event time.
        totals: The figures at its end.
    """

    told: int
    channel: str
    minute_ms: int
    totals: ChannelTotals


def incident_row(told: ToldIncident) -> Row:
    """The incident as report and API show it, and the counter."""
    return incident_object(told.found) | {"told": told.told}


def channel_incident(row: Mapping[str, Any]) -> ChannelIncident:
    """The incident of a row."""
    incident = Incident(
        IncidentKind(row["kind"]),
        row["message_id"],
        row["sender"] or "",
        since_ms=row["since"],
        found_ms=row["found"],
        ended_ms=row["ended"],
        lacking=row["lacking"],
        named_by=row["named_by"],
        waku_hash=bytes.fromhex((row["waku_hash"] or "").removeprefix("0x")),
        hint=bytes.fromhex(row["retrieval_hint"] or ""),
    )
    return ChannelIncident(row["channel"], incident, row["tap_hole"])


def minute_row(told: ToldMinute) -> Row:
    """The figures of the report's object of a channel, flat, and the counter.

    Histograms have their buckets in place of percentiles: buckets of two minutes can
    be subtracted.
    """
    row = {"channel": told.channel, "minute": told.minute_ms}
    row.update(_flat(channel_report(told.totals)))
    for name, field in _HISTOGRAMS.items():
        row[f"{name}_buckets"] = getattr(told.totals, field).counts
    for name in _GAUGES:
        row[name] = getattr(told.totals, name)
    return row | {"told": told.told}


def description(field: pa.Field) -> str:
    """What a field of a schema is."""
    return str(field.metadata[b"description"].decode())


_PERCENTILES = {"p50", "p95", "p99"}
_GAUGES = ("participants_lately", "epoch_messages_max")
_HISTOGRAMS = {
    "ack_latency_ms_definite": "definite_latency",
    "ack_latency_ms_probable": "probable_latency",
    "repair_response_ms": "repair_response",
    "gap_ms": "gap_duration",
    "delivery_recovery_ms": "delivery_recovery",
}
"""The report's name of each histogram, and its field in the totals."""


def _flat(part: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int | str]]:
    for name, value in part.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{name}_")
        elif name not in _PERCENTILES:
            yield path + name, value


_TIME = pa.timestamp("ms", "UTC")
_TIMES = pa.map_(pa.string(), _TIME)
_NAMES = pa.list_(pa.field("element", pa.string()))
_COUNTS = pa.list_(pa.field("element", pa.int64()))


def _field(name: str, type_: pa.DataType, text: str) -> pa.Field:
    # Null in files that were written before the field was added.
    return pa.field(name, type_, metadata={"description": text})


def _key(name: str, type_: pa.DataType, text: str) -> pa.Field:
    return _field(name, type_, text).with_nullable(False)


def _with_unix_ms(schema: pa.Schema) -> pa.Schema:
    """The schema with numbers in place of times."""
    plain = {_TIME: pa.int64(), _TIMES: pa.map_(pa.string(), pa.int64())}
    return pa.schema([f.with_type(plain.get(f.type, f.type)) for f in schema])


_TOLD = _key(
    "told",
    pa.int64(),
    "Counter of the rows that left the job; of the rows with one key the one with the "
    "greatest counts.",
)

INCIDENTS = HistoryTable(
    "incidents",
    pa.schema(
        [
            _key("channel", pa.string(), "Channel id."),
            _key("kind", pa.string(), "`lost`, `undelivered` or `unacknowledged`."),
            _key("message_id", pa.string(), "The message."),
            _field("sender", pa.string(), "Its sender; null if unknown."),
            _field(
                "since",
                _TIME,
                "When it was first named (`lost`), when a frame first showed that "
                "somebody lacked it (`undelivered`), or when its first copy was seen "
                "(`unacknowledged`).",
            ),
            _key("found", _TIME, "When it was decided, by the channel's clock."),
            _field(
                "ended",
                _TIME,
                "When the message came, was delivered to all who lacked it, or was "
                "acknowledged; null as long as it is not.",
            ),
            _field(
                "lacking",
                _TIMES,
                "Participants shown to lack it and not shown to have it since, and "
                "when that was first shown.",
            ),
            _field(
                "named_by",
                _NAMES,
                "Participants whose causal history named a lost message.",
            ),
            _field(
                "waku_hash",
                pa.string(),
                "Hash of the Waku message of its first copy: `0x` and 64 hexadecimal "
                "digits; null if no tap saw it or the tap gave none.",
            ),
            _field(
                "retrieval_hint",
                pa.string(),
                "Hint from a causal history, hexadecimal; null if none gave one.",
            ),
            _field(
                "tap_hole",
                pa.bool_(),
                "Whether every tap of the channel had a hole meanwhile: it may be of "
                "the taps' making.",
            ),
            _field("why", pa.string(), "Why the monitor says so."),
            _TOLD,
        ]
    ),
    key=("channel", "kind", "message_id"),
    time="found",
)
"""One row each time something about an incident changed, whole."""

_METRICS = MappingProxyType({metric.name: metric for metric in CHANNEL_METRICS})
_METRIC_OF = {
    "frames": "sds_frames_total",
    "messages": "sds_messages_total",
    "replicas": "sds_replicas_total",
    "rebroadcasts": "sds_rebroadcasts_total",
    "acknowledged": "sds_messages_acknowledged_total",
    "acknowledged_in_time": "sds_messages_acknowledged_in_time_total",
    "unacknowledged": "sds_messages_unacknowledged_total",
    "unwitnessed": "sds_messages_unwitnessed_total",
    "in_flight": "sds_messages_in_flight",
    "message_id_collisions": "sds_message_id_collisions_total",
    "deliveries": "sds_deliveries_total",
    "deliveries_retracted": "sds_delivery_losses_retracted_total",
    "gaps": "sds_dependency_gaps_closed_total",
    "gaps_opened": "sds_dependency_gaps_opened_total",
    "gaps_open": "sds_dependencies_missing",
    "gaps_retracted": "sds_dependency_losses_retracted_total",
    "repair": "sds_repair_episodes_total",
    "repair_requests": "sds_repair_requests_total",
    "repair_requests_for_received": "sds_repair_requests_for_received_total",
    "repair_responses": "sds_repair_responses_total",
    "repair_timing": "sds_repair_timing_total",
    "bytes": "sds_frame_bytes_total",
    "repair_bytes": "sds_repair_bytes_total",
    "ack_latency_ms": "sds_ack_latency_seconds",
    "repair_response_ms": "sds_repair_response_seconds",
    "gap_ms": "sds_dependency_gap_seconds",
    "delivery_recovery_ms": "sds_delivery_recovery_seconds",
    "participants_lately": "sds_channel_participants",
    "epoch_messages_max": "sds_epoch_messages_max",
}
"""Figures, or what their names begin with, and the metric that says what they are."""
_WITHOUT_METRIC = {
    "repair_redundant": "Responses to repair requests after the first.",
    "participants": "Distinct senders of first copies.",
    "verdict": "The judgement on the channel; taps are not looked at.",
    "reason": "The first reason that held for the verdict.",
}
_PARTS = {
    "count": "how many",
    "sum": "their sum in milliseconds",
    "buckets": "how many in each bucket, not cumulative; upper bounds in milliseconds, "
    f"each inclusive: {', '.join(map(str, BUCKETS_MS))}; the last bucket is open",
}


def _meaning(figure: str) -> str:
    """What a figure is, in the words of its metric."""
    if figure in _WITHOUT_METRIC:
        return _WITHOUT_METRIC[figure]
    begin = max(
        (name for name in _METRIC_OF if f"{figure}_".startswith(f"{name}_")), key=len
    )
    rest = figure.removeprefix(begin).removeprefix("_")
    label, _, part = rest.rpartition("_") if "_ms" in begin else (rest, "", "")
    words = [_METRICS[_METRIC_OF[begin]].help.rstrip("."), label, _PARTS.get(part, "")]
    return "; ".join(filter(None, words)) + "."


_TYPES = {int: pa.int64(), str: pa.string(), list: _COUNTS}


def _minutes_schema() -> pa.Schema:
    _, _, *figures, _ = minute_row(ToldMinute(0, "", 0, ChannelTotals())).items()
    return pa.schema(
        [
            _key("channel", pa.string(), "Channel id."),
            _key("minute", _TIME, "When it began; the figures are those at its end."),
            *(_field(name, _TYPES[type(one)], _meaning(name)) for name, one in figures),
            _TOLD,
        ]
    )


CHANNEL_MINUTES = HistoryTable(
    "channel_minutes", _minutes_schema(), key=("channel", "minute"), time="minute"
)
"""One row per channel and minute in which something changed: absolute figures."""

TABLES = (INCIDENTS, CHANNEL_MINUTES)
