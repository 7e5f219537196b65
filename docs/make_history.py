"""Writes docs/history.md from the schemas: ``python -m docs.make_history``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from connectors.history.parquet import FILE_LIMIT, QUIET_MS
from connectors.history.schema import (
    CHANNEL_MINUTES,
    INCIDENTS,
    HistoryTable,
    description,
)
from connectors.history.topics import INCIDENTS_TOPIC, MINUTES_TOPIC, RETENTION_MS

PAGE = Path(__file__).with_name("history.md")

_HEAD = """\
# History

Made from `connectors/history/schema.py` by `.venv/bin/python -m docs.make_history`; do not edit it by hand.

The status page and the metrics show how things are; the history keeps how they were.
It has two tables:

| table | a row | key | Kafka topic |
|---|---|---|---|
{tables}

What the figures mean is in [figures.md](figures.md).
The history names channels, participants and messages: give it to nobody who may not see the topic of frames.

## Where it lies

The files are Parquet, compressed with zstd, one directory per table and day:

```
history/incidents/day=2026-08-10/0000000000.parquet
history/channel_minutes/day=2026-08-10/0000000000.parquet
```

The day is that of `found` and of `minute`, event time in UTC.
A file is there whole or not at all, and never changes.
Names that begin with a dot are unfinished, or on their way out.

## Keys, and rows that come twice

Rows leave the monitor at least once: after a crash some come again.
An incident has a row each time something about it changed, whole.
So **of the rows with one key the one with the greatest `told` counts**; rows with the same key and the same `told` are the same.

The figures of a minute are absolute, those since the checkpoint's first batch, as they were at the minute's end.
A minute in which nothing changed has no row: the row before it holds.
What happened between two minutes is the difference of their rows, of buckets too.

## Asking

```sh
sds-monitor incidents --history ./history --since 2026-08-10T00:00:00Z
sds-monitor incidents --history ./history --standing --json
```

This needs no running monitor, and may be done while one writes.
Incidents that still stand are shown with `--since` too, however long ago they were found.

[DuckDB](https://duckdb.org) reads the files as they lie.
All incidents that stand:

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

New and lost messages by channel and hour, of two days:

```sql
WITH latest AS (
    SELECT * FROM read_parquet('history/channel_minutes/*/*.parquet', union_by_name = true)
    WHERE day BETWEEN '2026-08-10' AND '2026-08-11'
    QUALIFY row_number() OVER (PARTITION BY channel, minute ORDER BY told DESC) = 1
),
new AS (
    SELECT
        channel,
        minute,
        messages - lag(messages) OVER before AS messages,
        gaps_lost - lag(gaps_lost) OVER before AS lost
    FROM latest
    WINDOW before AS (PARTITION BY channel ORDER BY minute)
)
SELECT channel, date_trunc('hour', minute) AS hour, sum(messages) AS messages, sum(lost) AS lost
FROM new
GROUP BY channel, hour
ORDER BY channel, hour;
```

The first row of a channel has none before it, and counts nothing.
A query of your own may find that a file which it was about to read is gone, because files were put together meanwhile: ask again.
`sds-monitor incidents` does so by itself.

## Into a warehouse

From the files: most warehouses read Parquet with `day` as a Hive partition.
Load what is new into a table of your own, by key and `told`:

```sql
MERGE INTO incidents AS kept
USING (
    SELECT * FROM read_parquet('history/incidents/*/*.parquet', union_by_name = true)
    QUALIFY row_number() OVER (
        PARTITION BY channel, kind, message_id ORDER BY told DESC
    ) = 1
) AS new
ON kept.channel = new.channel AND kept.kind = new.kind AND kept.message_id = new.message_id
WHEN MATCHED AND new.told > kept.told THEN UPDATE
WHEN NOT MATCHED THEN INSERT;
```

From Kafka: the topics carry the same rows.

| part | content |
|---|---|
| key | JSON array of the fields of the key, `["town","lost","0x12"]` |
| value | JSON object with the fields below; times are Unix milliseconds |
| timestamp | when the row was written, wall time; event times are in the value |

Topics that the monitor makes are compacted, so that of each key the newest row stays, and keep a record for {retention_days} days.
Topics that are there already are used as they are.

Fields are only ever added; those that a row was written without are null.

## Few files, and days that expire

The files of a day are put together when there are more than {file_limit}, or when there are several and none was added for {quiet_minutes} minutes.
Of each key only the row that counts is kept then.
The new file is durable before the old ones are removed, so a crash loses nothing and leaves at most rows twice.

Days expire whole, incidents that still stand too.

## Fields
"""  # noqa: E501 - one sentence per line

_TABLES = (
    (INCIDENTS, INCIDENTS_TOPIC, "each time an incident began or changed"),
    (
        CHANNEL_MINUTES,
        MINUTES_TOPIC,
        "for each minute of event time in which a channel's figures changed",
    ),
)


def page() -> str:
    """The whole page."""
    head = _HEAD.format(
        tables="\n".join(
            f"| `{table.name}` | {row} | {_names(table.key)} | `{topic}` |"
            for table, topic, row in _TABLES
        ),
        retention_days=RETENTION_MS // 86_400_000,
        file_limit=FILE_LIMIT,
        quiet_minutes=QUIET_MS // 60_000,
    )
    parts = [
        f"### {table.name}\n\n| field | type | meaning |\n|---|---|---|\n"
        + "\n".join(rows(table))
        + "\n"
        for table, _, _ in _TABLES
    ]
    return "\n".join([head, *parts])


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def rows(table: HistoryTable) -> Iterator[str]:
    """A row of the page for each field of a table."""
    for field in table.schema:
        yield f"| `{field.name}` | {field.type} | {description(field)} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
