"""The tables of the history, three for each kind of view, and the tables' rows.

A row is a dictionary of JSON values, with times in Unix ms. Records in Kafka contain
these values unchanged. Parquet files contain the values converted to the types of the
table's schema. Every row has ``told``, its sequence number in the outbox
(docs/architecture.md). If several rows have the same key, only the row with the
greatest ``told`` is valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from sds_core.observer.figure_table import ColumnType, FigureTable, Names
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    incident_object,
)
from sds_core.observer.kinds import AnyKind
from sds_core.observer.protocols import ROOT_KIND
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.shown_verdicts import ShownVerdict

Row = dict[str, Any]
"""One row: for each field's name, the JSON value of the field."""


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """One table of the history.

    Attributes:
        schema: Fields of the table; the metadata of each field has a ``description``.
        key: Names of the fields that identify what a row describes. The first of these
            fields contains the name of the view.
        time: Name of the field whose time decides the partition of a row. A partition
            is a day in UTC.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    time: str

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        """Convert rows to an Arrow table with the schema."""
        maps = [f.name for f in self.schema if pa.types.is_map(f.type)]
        typed = [row | {name: list(row[name].items()) for name in maps} for row in rows]
        return pa.Table.from_pylist(typed, schema=self.schema)

    def rows(self, table: pa.Table) -> list[Row]:
        """Convert an Arrow table with the fields of the schema back to rows."""
        # DuckDB returns times in microseconds; the schema has milliseconds.
        plain = table.cast(self.schema).cast(_with_unix_ms(self.schema))
        rows: list[Row] = plain.to_pylist(maps_as_pydicts="strict")
        return rows


class NumberedIncident(NamedTuple):
    """An incident and its sequence number in the outbox."""

    sequence: int
    found: ChannelIncident


class NumberedMinute(NamedTuple):
    """Figures at the end of a minute, and their sequence number in the outbox.

    The minute began at `minute_ms`, Unix ms of event time.
    """

    sequence: int
    channel: str
    minute_ms: int
    totals: Any


class NumberedVerdict(NamedTuple):
    """A shown verdict and its sequence number in the outbox."""

    sequence: int
    channel: str
    shown: ShownVerdict


def incident_row(
    numbered: NumberedIncident,
    settings: ObserverSettings = DEFAULTS,
    kind: AnyKind = ROOT_KIND,
) -> Row:
    """Return an incident as a row: its fields in the report, and ``told``."""
    row = {**incident_object(numbered.found, settings, kind.explain)}
    return {kind.names.label: row.pop("channel")} | row | {"told": numbered.sequence}


def channel_incident(row: Mapping[str, Any], label: str = "channel") -> ChannelIncident:
    """Return the incident that a row describes.

    `label` is the name of the field that contains the view's name.
    """
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
        # Releases before 0.7 wrote rows without this field.
        lacking_others=row.get("lacking_others") or 0,
    )
    return ChannelIncident(row[label], incident, row["tap_hole"])


def minute_row(
    numbered: NumberedMinute, table: FigureTable[Any] = ROOT_KIND.published
) -> Row:
    """Return a minute's figures as a row of the table that `minutes_schema` describes.

    For a histogram, the row has the buckets instead of percentiles, because the buckets
    of one minute can be subtracted from the buckets of another.
    """
    return {
        table.names.label: numbered.channel,
        "minute": numbered.minute_ms,
        **table.row(numbered.totals),
        "told": numbered.sequence,
    }


def verdict_row(numbered: NumberedVerdict, table: FigureTable[Any]) -> Row:
    """Return a shown verdict as a row of the table of verdicts."""
    return {
        table.names.label: numbered.channel,
        "minute": numbered.shown.minute_ms,
        "verdict": numbered.shown.verdict,
        "reason": numbered.shown.reason,
        "told": numbered.sequence,
    }


def shown_verdict(row: Mapping[str, Any]) -> ShownVerdict:
    """Return the verdict that a row describes."""
    return ShownVerdict(row["minute"], row["verdict"], row["reason"])


_TIME = pa.timestamp("ms", "UTC")
_TIMES = pa.map_(pa.string(), _TIME)
_NAMES = pa.list_(pa.field("element", pa.string()))
_COUNTS = pa.list_(pa.field("element", pa.int64()))


def _field(name: str, type_: pa.DataType, text: str) -> pa.Field:
    # Every field is nullable, because files of older releases may lack the field.
    return pa.field(name, type_, metadata={"description": text})


def _key(name: str, type_: pa.DataType, text: str) -> pa.Field:
    return _field(name, type_, text).with_nullable(False)


def _with_unix_ms(schema: pa.Schema) -> pa.Schema:
    plain = {_TIME: pa.int64(), _TIMES: pa.map_(pa.string(), pa.int64())}
    return pa.schema([f.with_type(plain.get(f.type, f.type)) for f in schema])


_TOLD = _key(
    "told",
    pa.int64(),
    "Sequence number; if several rows have one key, the row with the greatest number "
    "is valid.",
)


def _schema(names: Names, *fields: pa.Field) -> pa.Schema:
    """Return a schema with the name of the view, the given fields, and `told`."""
    label = _key(names.label, pa.string(), f"{names.one.capitalize()} id.")
    return pa.schema([label, *fields, _TOLD])


def _incidents_schema(names: Names) -> pa.Schema:
    return _schema(
        names,
        _key("kind", pa.string(), "`lost`, `undelivered` or `unacknowledged`."),
        _key("message_id", pa.string(), "Id of the message."),
        _field("sender", pa.string(), "Id of the sender; null if unknown."),
        _field(
            "since",
            _TIME,
            "For `lost`, when a frame first named the message. For `undelivered`, "
            "when a frame first showed that a participant lacked the message. "
            "For `unacknowledged`, when the first copy was seen.",
        ),
        _key(
            "found",
            _TIME,
            "Time of the channel's clock at which the monitor found the incident.",
        ),
        _field(
            "ended",
            _TIME,
            "When the message arrived, was delivered to every participant that "
            "lacked the message, or was acknowledged; null until then.",
        ),
        _field(
            "lacking",
            _TIMES,
            "Participants whose frames show that they lack the message, each with the "
            "time of the first such frame.",
        ),
        _field(
            "lacking_others",
            pa.int64(),
            "Number of participants that lack the message and are not in `lacking`, "
            "which names only the first 100.",
        ),
        _field(
            "named_by",
            _NAMES,
            "For `lost`, participants whose causal history named the message. In an "
            "MVDS group, participants that sent the message.",
        ),
        _field(
            "waku_hash",
            pa.string(),
            "Waku hash of the first copy: `0x` and 64 hexadecimal digits; null if "
            "no tap saw the message, or if the tap's record of the first copy has no "
            "hash.",
        ),
        _field(
            "retrieval_hint",
            pa.string(),
            "Retrieval hint from a causal history, hexadecimal; null if none is known.",
        ),
        _field(
            "tap_hole",
            pa.bool_(),
            "Whether every tap of the channel had a capture gap during the "
            "incident; if so, the taps may be the cause.",
        ),
        _field("why", pa.string(), "The evidence, as text."),
    )


_TYPES = {
    ColumnType.INTEGER: pa.int64(),
    ColumnType.TEXT: pa.string(),
    ColumnType.COUNTS: _COUNTS,
}


def minutes_schema(table: FigureTable[Any]) -> pa.Schema:
    """Return the schema of the table with the figures at the end of each minute."""
    return _schema(
        table.names,
        _key(
            "minute",
            _TIME,
            "When the minute began; the row has the figures at the minute's end.",
        ),
        *(
            _field(column.name, _TYPES[column.type], column.help)
            for column in table.columns
        ),
    )


def _verdicts_schema(names: Names) -> pa.Schema:
    return _schema(
        names,
        _key(
            "minute",
            _TIME,
            "When the minute began, in wall time; the row applies until the channel's "
            "next row, at most until the end of the day.",
        ),
        _field(
            "verdict",
            pa.string(),
            "The worst verdict that was shown in each of these minutes, or "
            "`not_watched`.",
        ),
        _field("reason", pa.string(), "Reason for the verdict, as one word."),
    )


class KindTables(NamedTuple):
    """The tables of one kind of view.

    Attributes:
        incidents: One row per change of an incident, with all fields of the incident.
        minutes: One row per view and minute in which a figure changed. The row has all
            figures at the end of the minute.
        verdicts: One row per view and minute in which the shown verdict changed.
    """

    kind: AnyKind
    incidents: HistoryTable
    minutes: HistoryTable
    verdicts: HistoryTable

    @property
    def label(self) -> str:
        """Name of the field that contains the name of a view."""
        return self.kind.names.label


def tables_of(kind: AnyKind) -> KindTables:
    """Return the tables of a kind of view.

    Raises:
        ValueError: Views of this kind have no figures.
    """
    names = kind.names
    label, one = names.label, names.one
    by_minute = (label, "minute"), "minute"
    return KindTables(
        kind,
        HistoryTable(
            names.incidents or f"{one}_incidents",
            _incidents_schema(names),
            key=(label, "kind", "message_id"),
            time="found",
        ),
        HistoryTable(f"{one}_minutes", minutes_schema(kind.published), *by_minute),
        HistoryTable(f"{one}_verdicts", _verdicts_schema(names), *by_minute),
    )


CHANNEL_TABLES = tables_of(ROOT_KIND)

INCIDENTS, CHANNEL_MINUTES, CHANNEL_VERDICTS = TABLES = CHANNEL_TABLES[1:]
