"""Queries a history's Parquet files with DuckDB, even while a monitor writes files.

DuckDB is not allowed to open files. It gets a dataset of the files that this module
lists. Untrusted text is passed only as query parameters.

Each function takes the directory of a history, and the tables of one kind of view.
`channel` is the id of a channel, or the name of a view of another kind. Ranges of time
are [since_ms, until_ms), Unix ms. `config` contains settings of DuckDB, such as
`SPARING`. The functions raise `NoHistory` if the directory has no history, and
`DamagedHistory` if a file cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from itertools import dropwhile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from connectors.history.errors import NoHistory
from connectors.history.layout import LOCK, days, files, settled, span_of
from connectors.history.parquet import batches, check, dataset_of
from connectors.history.schema import (
    CHANNEL_TABLES,
    TABLES,
    HistoryTable,
    KindTables,
    Row,
    channel_incident,
)
from sds_core.observer.incidents import ChannelIncident, IncidentQuery

_Config = Mapping[str, str | bool | int | float | list[str]]

_SETTINGS: _Config = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # PyArrow would apply the filters to a file's statistics. If these are damaged,
    # PyArrow can end the process.
    "disabled_optimizers": "filter_pushdown",
    "enable_external_access": False,
}

SPARING: _Config = {"threads": 1, "memory_limit": "512MB"}
"""Settings of DuckDB that limit the CPU cores and the memory of a query, because a job
on the same machine needs them."""

# If a parameter is NULL, the condition with this parameter does not apply.
_FIND = """
WITH latest AS (
    SELECT * FROM {table}
    WHERE ($channel IS NULL OR {label} = $channel)
        AND ($kind IS NULL OR kind = $kind)
    QUALIFY row_number() OVER (
        PARTITION BY {label}, kind, message_id ORDER BY told DESC
    ) = 1
)
SELECT * FROM latest
WHERE ($since_ms IS NULL OR epoch_ms(found) >= $since_ms OR ended IS NULL)
    AND (ended IS NULL OR NOT $standing)
    AND (ended IS NOT NULL OR NOT $resolved)
    AND (
        $participant IS NULL OR (
            kind = 'undelivered' AND ended IS NULL
            AND list_contains(map_keys(lacking), $participant)
        )
    )
    AND (
        $after_found_ms IS NULL OR epoch_ms(found) < $after_found_ms
        OR (
            epoch_ms(found) = $after_found_ms AND ({label}, kind, message_id)
                > ($after_channel, $after_kind, $after_message_id)
        )
    )
ORDER BY found DESC, {label}, kind, message_id
LIMIT $limit
"""

_ROWS_BY_MINUTE = """
SELECT * FROM {table}
WHERE {label} = $channel
    AND epoch_ms(minute) >= $since_ms AND epoch_ms(minute) < $until_ms
QUALIFY row_number() OVER (PARTITION BY minute ORDER BY told DESC) = 1
ORDER BY minute
"""

# If a field was added after a row was written, the field is null in that row.
# Aggregates ignore nulls.
_ROWS_BY_HOUR = """
FROM {table}
WHERE ($channels IS NULL OR list_contains($channels, {label}))
    AND epoch_ms(minute) >= $since_ms AND epoch_ms(minute) < $until_ms
GROUP BY {label}, epoch_ms(minute) // 3600000
ORDER BY {label}, minute
"""

_NEWEST = """
SELECT max(minute) AS minute FROM {table} WHERE epoch_ms(minute) <= $until_ms
HAVING count(*) > 0
"""

_Days = Mapping[date, list[Path]]
"""A table's files by day; days and files are in order of time, oldest first."""


def find_incidents(
    directory: Path, query: IncidentQuery, tables: KindTables = CHANNEL_TABLES
) -> list[ChannelIncident]:
    """Return the matching incidents, newest incident first."""
    rows = incident_rows(directory, query, tables)
    return [channel_incident(row, tables.label) for row in rows]


def incident_rows(
    directory: Path, query: IncidentQuery, tables: KindTables
) -> list[Row]:
    """Return the latest row of each matching incident, newest incident first."""
    select = partial(_relevant, tables.incidents, since_ms=query.since_ms)
    return _query(directory, tables.incidents, _FIND, query.sql_values, select)


def channels(directory: Path, tables: KindTables = CHANNEL_TABLES) -> list[str]:
    """Return the ids of all channels that have incidents or figures, sorted."""
    found: set[str] = set()
    label = tables.label
    for table in (tables.incidents, tables.minutes):
        only = replace(table, schema=pa.schema([table.schema.field(label)]))
        rows = _query(directory, only, "SELECT DISTINCT {label} FROM {table}", {})
        found.update(row[label] for row in rows)
    return sorted(found)


def channel_minutes(
    directory: Path,
    channel: str,
    since_ms: int,
    until_ms: int,
    fields: Collection[str] | None = None,
    tables: KindTables = CHANNEL_TABLES,
) -> list[Row]:
    """Return a channel's rows for the minutes that began in a range, oldest first.

    Each row has the key, `told`, and the fields that `fields` names. If `fields` is
    None, each row has all fields.
    """
    table = tables.minutes if fields is None else _narrowed(tables.minutes, fields)
    return _by_minute(directory, table, channel, since_ms, until_ms)


def hourly_rows(
    directory: Path,
    channels: Sequence[str] | None,
    since_ms: int,
    until_ms: int,
    counters: Collection[str],
    gauges: Collection[str],
    tables: KindTables = CHANNEL_TABLES,
    config: _Config = _SETTINGS,
) -> dict[str, list[Row]]:
    """Return for each channel a row per hour in which a figure changed, oldest first.

    In such a row, ``minute`` is the hour's last minute with a changed figure.
    Each counter has its last value in the hour, and each gauge its maximum. If
    `channels` is None, all channels are returned.
    """
    table = _narrowed(tables.minutes, [*counters, *gauges])
    greatest = {"minute", "told", *gauges}
    fields = {
        name: f'max("{name}")'
        if name in greatest
        else f'arg_max("{name}", (minute, told))'
        for name in table.schema.names
    }
    fields[tables.label] = f'"{tables.label}"'
    selected = ", ".join(f'{value} AS "{name}"' for name, value in fields.items())
    sql = f"SELECT {selected}{_ROWS_BY_HOUR}"
    values = {"channels": channels, "since_ms": since_ms, "until_ms": until_ms}
    found: dict[str, list[Row]] = {}
    between = _days_between(since_ms, until_ms)
    for row in _query(directory, table, sql, values, between, config):
        found.setdefault(row[tables.label], []).append(row)
    return found


def newest_minute_ms(
    directory: Path,
    until_ms: int,
    tables: KindTables = CHANNEL_TABLES,
    config: _Config = _SETTINGS,
) -> int | None:
    """Return the start of the last minute that has a row and began by `until_ms`.

    The times are in Unix ms. If no such row exists, None is returned.
    """
    table = tables.minutes
    only = replace(table, schema=pa.schema([table.schema.field("minute")]))
    rows = _query(directory, only, _NEWEST, {"until_ms": until_ms}, config=config)
    return rows[0]["minute"] if rows else None


def channel_verdicts(
    directory: Path,
    channel: str,
    since_ms: int,
    until_ms: int,
    tables: KindTables = CHANNEL_TABLES,
) -> list[Row]:
    """Return a channel's verdicts for the minutes that began in a range, oldest first.

    Each verdict is a row of the table of verdicts.
    """
    return _by_minute(directory, tables.verdicts, channel, since_ms, until_ms)


def greatest_told(directory: Path, tables: Iterable[HistoryTable]) -> int:
    """Return the greatest `told` of all rows of some tables; 0 without rows.

    Damaged files are skipped.
    """
    greatest = 0
    for table in tables:
        for path in _all(_listed(directory / table.name)):
            with suppress(OSError, pa.ArrowException, ValueError):
                for told in _column(table, path, "told"):
                    greatest = max(greatest, pc.max(told).as_py() or 0)
    return greatest


def _by_minute(
    directory: Path, table: HistoryTable, channel: str, since_ms: int, until_ms: int
) -> list[Row]:
    values = {"channel": channel, "since_ms": since_ms, "until_ms": until_ms}
    between = _days_between(since_ms, until_ms)
    return _query(directory, table, _ROWS_BY_MINUTE, values, between)


def _days_between(since_ms: int, until_ms: int) -> Callable[[_Days], _Days]:
    def select(listed: _Days) -> _Days:
        spans = {day: span_of(day) for day in listed}
        return {
            day: paths
            for day, paths in listed.items()
            if spans[day].stop > since_ms and spans[day].start < until_ms
        }

    return select


def _narrowed(table: HistoryTable, fields: Collection[str]) -> HistoryTable:
    wanted = {*table.key, "told", *fields}
    schema = pa.schema([field for field in table.schema if field.name in wanted])
    return replace(table, schema=schema)


def _query(
    directory: Path,
    table: HistoryTable,
    template: str,
    values: Mapping[str, Any],
    select: Callable[[_Days], _Days] = lambda listed: listed,
    config: _Config = _SETTINGS,
) -> list[Row]:
    if not _is_history(directory):
        inner = directory / "history"
        raise NoHistory(directory, inner if _is_history(inner) else None)
    # Names of tables and fields may be inserted into the SQL text, because they come
    # from this program, not from users. They are quoted, because a name may be a
    # keyword of SQL.
    sql = template.format(table=f'"{table.name}"', label=f'"{table.key[0]}"')
    while True:
        listed = _listed(directory / table.name)
        paths = _all(listed)
        try:
            paths = _all(select(listed))
            with duckdb.connect(":memory:", config={**config, **_SETTINGS}) as database:
                database.register(table.name, dataset_of(table, paths))
                found = database.sql(sql, params=dict(values)).to_arrow_table()
            return table.rows(found)
        except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError):
            # If files were compacted or expired after they were listed, try again.
            if _listed(directory / table.name) == listed:
                check(paths)
                raise


def _is_history(directory: Path) -> bool:
    """Return whether a monitor has used a directory.

    Before a monitor writes files, it creates the lock file.
    """
    return (directory / LOCK).is_file() or any(
        (directory / table.name).is_dir() for table in TABLES
    )


def _listed(table: Path) -> _Days:
    return settled(lambda: {day: files(path) for day, path in days(table).items()})


def _all(listed: _Days) -> list[Path]:
    return [path for paths in listed.values() for path in paths]


def _relevant(table: HistoryTable, listed: _Days, since_ms: int | None) -> _Days:
    # Days that end before `since_ms` are skipped up to the day before the first day
    # with a row of an open incident. If a row of an incident is read, the latest row is
    # read too. It is in the same day or, if the incident was found again, in a later
    # day. A job with a shorter deadline may find the incident again in the day before;
    # deadlines are not longer than a day.
    if since_ms is None:
        return listed
    needed = dropwhile(
        lambda day: (
            span_of(day).stop <= since_ms
            and not any(_has_open(table, path) for path in listed[day])
        ),
        listed,
    )
    first = next(needed, date.max) - timedelta(days=1)
    return {day: paths for day, paths in listed.items() if day >= first}


def _has_open(table: HistoryTable, path: Path) -> bool:
    return any(ended.null_count for ended in _column(table, path, "ended"))


def _column(table: HistoryTable, path: Path, field: str) -> Iterator[pa.Array]:
    """Yield the values of a field in a file.

    PyArrow's statistics would be faster, but if they are damaged, PyArrow can end the
    process.
    """
    for batch in batches(dataset_of(table, [path]), [field]):
        yield batch.column(0)
