"""Writes docs/history.md from the schemas: ``python -m docs.make_history``."""

from __future__ import annotations

from collections.abc import Iterable, Set
from pathlib import Path

import pyarrow as pa

from connectors.history.parquet import FILE_LIMIT, QUIET_MS
from connectors.history.schema import (
    CHANNEL_MINUTES,
    CHANNEL_VERDICTS,
    INCIDENTS,
    HistoryTable,
    tables_of,
)
from connectors.history.topics import RETENTION_MS
from connectors.kafka.settings import INCIDENTS_TOPIC, MINUTES_TOPIC, VERDICTS_TOPIC
from sds_core.observer.histogram import BUCKETS_MS
from sds_core.observer.kinds import AnyKind
from sds_core.observer.mvds.kind import MVDS
from sds_core.observer.sds.kind import SDS

PAGE = Path(__file__).with_name("history.md")

_HEAD = """\
# History

What were the figures and incidents at an earlier time, and how do I query the history?

Made by `.venv/bin/python -m docs.make_history`; do not edit it by hand.

The history has three tables:

| table | rows | key | Kafka topic |
|---|---|---|---|
{tables}

The history contains ids of channels, participants and messages, so protect it like the topic of frames.

## Files

The files are Parquet with zstd compression, in one directory for each table and day:

```
history/incidents/day=2026-08-10/0000000000.parquet
history/channel_minutes/day=2026-08-10/0000000000.parquet
history/channel_verdicts/day=2026-08-10/0000000000.parquet
```

The day is the UTC day of the field `found` (incidents) or `minute` (the other tables). In `channel_verdicts`, `minute` is wall time; in the other tables, the field is event time.
A file is complete when it appears, and never changes. The file `.unfinished` and the directory `.expired` are not part of the history.

The files of a day are merged if the day has more than {file_limit} files, or if it has at least two files and the newest file is more than {quiet_minutes} minutes old.
The merged file has only the [valid row](#keys-and-duplicates) of each key; a crash during a merge loses no rows, but may duplicate some rows.
Expired days are deleted as a whole, even if some of their incidents have not ended.

## Keys and duplicates

**If several rows have the same key, the row with the greatest `told` is valid.**
The monitor may write the same row more than once: rows with the same key and the same `told` are identical duplicates.
Each change of an incident adds a complete row.

A minute's figures are totals from the checkpoint's first batch to the end of the minute.
A minute without a change has no row: the preceding row applies.
To get the figures between two minutes, subtract the earlier row from the later row, including the buckets of histograms.
If a [forgotten](figures.md#forgotten-channels) channel returns, its totals begin again at 0.

A [shown verdict](figures.md#verdict-over-time) applies from its minute until the next row of the channel, at most until the end of the day (UTC).
If a channel has no row on a day, the channel was not watched on that day.
The newest row of a channel applies at most until the last minute in which the monitor ran.

## Query

```sh
sds-monitor incidents --history ./history --since 2026-08-10T00:00:00Z
sds-monitor incidents --history ./history --standing --json
```

The command `incidents` works with and without a running monitor ([flags](incidents.md)).

[DuckDB](https://duckdb.org) reads the files directly; in Python, it needs the package `pytz`, which is installed with sds-monitor.
This query returns all unresolved incidents:

```sql
WITH latest AS (
    SELECT * FROM read_parquet('history/incidents/*/*.parquet', union_by_name = true)
    QUALIFY row_number() OVER (
        PARTITION BY channel, kind, message_id ORDER BY told DESC
    ) = 1
)
SELECT channel, kind, message_id, found, map_keys(lacking) AS lacked_by
FROM latest
WHERE ended IS NULL
ORDER BY found DESC;
```

This query returns the numbers of new and of lost messages on two days, by channel and hour:

```sql
WITH latest AS (
    SELECT * FROM read_parquet('history/channel_minutes/*/*.parquet', union_by_name = true)
    WHERE day <= '2026-08-11'
    QUALIFY row_number() OVER (PARTITION BY channel, minute ORDER BY told DESC) = 1
),
steps AS (
    SELECT
        channel,
        day,
        minute,
        messages,
        gaps_lost,
        lag(messages, 1, 0) OVER before AS messages_before,
        lag(gaps_lost, 1, 0) OVER before AS lost_before
    FROM latest
    WINDOW before AS (PARTITION BY channel ORDER BY minute)
),
new AS (
    SELECT
        *,
        CASE WHEN messages < messages_before OR gaps_lost < lost_before
            THEN 0 ELSE 1 END AS continues
    FROM steps
)
SELECT
    channel,
    date_trunc('hour', minute) AS hour,
    sum(messages - continues * messages_before) AS messages,
    sum(gaps_lost - continues * lost_before) AS lost
FROM new
WHERE day BETWEEN '2026-08-10' AND '2026-08-11'
GROUP BY channel, hour
ORDER BY channel, hour;
```

The query also reads the days before these two days, because it compares each channel's first row of the two days with the channel's previous row.
If a channel has no earlier row, the channel's figures begin at 0.
If a [forgotten](figures.md#forgotten-channels) channel has returned and its totals are smaller than before, the channel's figures begin at 0 too.
If all earlier rows of a channel have expired, the query adds the channel's earlier figures to the channel's first hour. To make this less likely, do not query the oldest stored days.
If a file disappears during your query because of a merge, repeat the query.

For each channel and each [shown verdict](figures.md#verdict-over-time), this query returns how many minutes of two days the channel had this verdict:

```sql
WITH latest AS (
    SELECT * FROM read_parquet('history/channel_verdicts/*/*.parquet', union_by_name = true)
    WHERE day BETWEEN '2026-08-10' AND '2026-08-11'
    QUALIFY row_number() OVER (PARTITION BY channel, minute ORDER BY told DESC) = 1
),
spans AS (
    SELECT
        *,
        lead(
            minute, 1, least((day::DATE + 1)::TIMESTAMP AT TIME ZONE 'UTC', now())
        ) OVER (PARTITION BY channel, day ORDER BY minute) AS until
    FROM latest
)
SELECT channel, verdict, sum(date_diff('minute', minute, until)) AS minutes
FROM spans
GROUP BY channel, verdict
ORDER BY channel, minutes DESC;
```

The last verdict of a day counts until the end of the day, on the present day until now, even if the monitor stopped earlier.

## Load into a warehouse

Most warehouses can read the Parquet files, with `day` as a Hive partition.
Create a table in your warehouse once:

```sql
CREATE TABLE IF NOT EXISTS incidents AS
SELECT * FROM read_parquet('history/incidents/*/*.parquet', union_by_name = true)
LIMIT 0;
```

Then merge new rows into this table by key and `told`:

```sql
MERGE INTO incidents AS kept
USING (
    SELECT * FROM read_parquet('history/incidents/*/*.parquet', union_by_name = true)
    QUALIFY row_number() OVER (
        PARTITION BY channel, kind, message_id ORDER BY told DESC
    ) = 1
) AS new
ON kept.channel = new.channel AND kept.kind = new.kind AND kept.message_id = new.message_id
WHEN MATCHED AND new.told > kept.told THEN UPDATE BY NAME
WHEN NOT MATCHED THEN INSERT BY NAME;
```

If a new release adds a field, first add a column with the field's name to your table (`ALTER TABLE incidents ADD COLUMN …`).

The Kafka topics have the same rows as the files, one row in each record:

| part | content |
|---|---|
| key | JSON array of the key's fields, such as `["town","lost","0x12"]` |
| value | JSON object with the fields below; times in Unix milliseconds |
| timestamp | wall time at which the record was written |

If a topic does not exist, the monitor creates it with compaction (the newest row of each key stays) and a retention of `--history-days` ({retention_days} days by default). The monitor does not change existing topics.

## Fields

Fields without a type are int64.
New releases only add fields. In rows of older releases, the added fields are null.
If the meaning of a field below is *Figures*, [figures.md](figures.md) defines the field. On that page, some names have `.` in place of `_`, such as `bytes.content` for `bytes_content`.
Each table also has the sequence number [`told`](#keys-and-duplicates).

Each histogram has three fields, whose names end in:

- `_count`: the number of durations;
- `_sum`: the sum of the durations in milliseconds;
- `_buckets` (list<int64>): the number of durations in each bucket, not cumulative, with the inclusive upper bounds {bounds} ms and a last, open bucket.

Groups of MVDS have the tables `group_incidents` (with the same fields as `incidents`), `group_verdicts` (with the same fields as `channel_verdicts`) and `group_minutes`.
In the tables of groups, the field `channel` contains the group id. The topics of these tables are `sds.incidents.groups`, `sds.channel-verdicts.groups` and `sds.channel-minutes.groups`.
"""  # noqa: E501 - one sentence per line

_TABLES = (
    (
        INCIDENTS,
        INCIDENTS_TOPIC,
        "one for each new incident and for each change of an incident",
    ),
    (
        CHANNEL_MINUTES,
        MINUTES_TOPIC,
        "one for each channel and each minute of event time in which the channel's "
        "figures changed",
    ),
    (
        CHANNEL_VERDICTS,
        VERDICTS_TOPIC,
        "one for each channel and each minute of wall time in which the channel's "
        "shown verdict changed; also one for the first minute of each day (UTC)",
    ),
)

_PARTS = ("count", "sum", "buckets")
"""Endings of the names of a histogram's fields."""


def page() -> str:
    """Return the whole page."""
    head = _HEAD.format(
        tables="\n".join(
            f"| `{table.name}` | {row} | {_names(table.key)} | `{topic}` |"
            for table, topic, row in _TABLES
        ),
        retention_days=RETENTION_MS // 86_400_000,
        file_limit=FILE_LIMIT,
        quiet_minutes=QUIET_MS // 60_000,
        bounds=", ".join(map(str, BUCKETS_MS)),
    )
    tables = [(table, SDS.kind) for table, _, _ in _TABLES]
    # Incidents and verdicts of groups have the fields of those of channels.
    tables.append((tables_of(MVDS.kind).minutes, MVDS.kind))
    parts = [
        f"### {table.name}\n\n{fields(table, _figures_of(kind))}"
        for table, kind in tables
    ]
    return "\n".join([head, *parts])


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _figures_of(kind: AnyKind) -> set[str]:
    """Return the figures of a report of a kind of view, as the fields name them."""
    return {
        path.replace(".", "_")
        for figure in kind.published.figures
        for path in figure.report or (figure.field,)
        if figure.report or figure.series
    }


_FIGURE = "Figures."


def fields(table: HistoryTable, figures: Set[str]) -> str:
    """Return the rows for a table's fields; figures share a row.

    Args:
        table: The table.
        figures: Names of the fields that figures.md explains.
    """

    def described(name: str, field: pa.Field) -> str:
        return _FIGURE if name in figures else field.metadata[b"description"].decode()

    plain: dict[tuple[str, str], list[str]] = {}
    histograms: dict[str, list[str]] = {}
    for field in table.schema:
        if field.name == "told":  # The page explains it once.
            continue
        stem, _, part = field.name.rpartition("_")
        if f"{stem}_buckets" not in table.schema.names or part not in _PARTS:
            meaning = described(field.name, field)
            plain.setdefault((meaning, str(field.type)), []).append(field.name)
        elif part == _PARTS[0]:
            meaning = described(stem, field)
            histograms.setdefault(meaning, []).append(stem)
    rows = [
        f"| {_names(names)}{_kind(kind)} | {meaning} |"
        for (meaning, kind), names in plain.items()
    ]
    text = "\n".join(["| field | meaning |", "|---|---|", *rows, ""])
    if histograms:
        rows = [
            f"| {_names(stems)} | {meaning} |" for meaning, stems in histograms.items()
        ]
        text += "\n".join(["", "| histogram | meaning |", "|---|---|", *rows, ""])
    return text


def _kind(type_: str) -> str:
    """Return the type to write after a field's name; empty for the usual type."""
    return "" if type_ == "int64" else f" ({type_})"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
