"""Stores the figures of each channel minute by minute for the last hour, in SQLite.

The page has them without a history, and without reading the history's files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from connectors.history.schema import Row
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.growth import CountedValue, Recorded, counted_values
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.sds.channel_minute import ChannelMinute
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from streaming.database import Database

RECENT_MS = 66 * MINUTE_MS
"""Time for which all minutes of a channel are stored, counted from its newest one: an
hour, and the five minutes by which the page's begin is rounded down."""

# `fields` names the values in `figures`, which have no names.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS minutes (
    channel TEXT NOT NULL,
    end_ms INTEGER NOT NULL,
    figures BLOB NOT NULL,
    PRIMARY KEY (channel, end_ms)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fields (names TEXT NOT NULL);
"""

_STORE = "INSERT OR REPLACE INTO minutes VALUES (?, ?, ?)"

# The newest minute that is older stays: it has the figures at the begin of the rest.
_PRUNE = """
DELETE FROM minutes WHERE channel = :channel AND end_ms < (
    SELECT max(end_ms) FROM minutes WHERE channel = :channel AND end_ms <= :before_ms
)
"""

_AT = """
SELECT end_ms, figures FROM minutes WHERE channel = :channel AND end_ms <= :at_ms
ORDER BY end_ms DESC LIMIT 1
"""

_OLDEST = """
SELECT end_ms, figures FROM minutes WHERE channel = :channel ORDER BY end_ms LIMIT 1
"""

# Of several rows of a group, SQLite returns the columns of the one with the maximum.
_STEPS = """
SELECT max(end_ms), figures FROM minutes WHERE channel = :channel AND end_ms > :since_ms
GROUP BY (end_ms - :since_ms - 1) / :step_ms ORDER BY 1
"""

_ROWS = """
SELECT end_ms, figures FROM minutes WHERE channel = :channel
AND end_ms - :minute_ms >= :since_ms AND end_ms - :minute_ms < :until_ms ORDER BY 1
"""


class RecentMinutes:
    """The figures of each channel at the end of each minute in which they changed.

    What a method has written is durable when the method returns. A replayed batch
    overwrites its own minutes.

    Args:
        path: The file; it and its directory are made if they are missing.
        expected: Whether the file was made before; see `Database`.
        table: The figures of channels. If a release stored other ones, its minutes are
            dropped.

    Raises:
        streaming.damage.DamagedCheckpoint: The file is damaged. Methods raise it too.
    """

    def __init__(
        self,
        path: Path,
        expected: bool = False,
        table: FigureTable[Any] = CHANNEL_FIGURES,
    ) -> None:
        self._database = Database(path, _SCHEMA, expected)
        self._table = table
        self._values = msgspec.msgpack.Decoder(list[CountedValue])
        names = " ".join(table.counted)
        with self._database.transaction() as connection:
            known = connection.execute("SELECT names FROM fields").fetchall()
            if known != [(names,)]:
                connection.execute("DELETE FROM minutes")
                connection.execute("DELETE FROM fields")
                connection.execute("INSERT INTO fields VALUES (?)", (names,))

    def record(self, minutes: Mapping[str, Sequence[ChannelMinute]]) -> None:
        """Store minutes by channel, of each channel in order; drop those too old."""
        rows, ends = [], []
        for channel, ended in minutes.items():
            before_ms = ended[-1].minute_ms + MINUTE_MS - RECENT_MS
            ends.append({"channel": channel, "before_ms": before_ms})
            # A batch that catches up has minutes of hours.
            first = max(
                (n for n, one in enumerate(ended) if _end_ms(one) <= before_ms),
                default=0,
            )
            rows += [
                (channel, _end_ms(one), self._packed(one.totals))
                for one in ended[first:]
            ]
        if not rows:
            return
        with self._database.transaction() as connection:
            connection.executemany(_STORE, rows)
            connection.executemany(_PRUNE, ends)

    def begin(self, totals: Mapping[str, Any], clock_ms: int) -> None:
        """Store the figures of channels of which no minute is stored, as of now.

        Args:
            totals: Figures by channel.
            clock_ms: Event time of the figures, Unix ms.
        """
        end_ms = clock_ms // MINUTE_MS * MINUTE_MS
        with self._database.transaction() as connection:
            known = {
                channel
                for (channel,) in connection.execute(
                    "SELECT DISTINCT channel FROM minutes"
                )
            }
            connection.executemany(
                _STORE,
                [
                    (channel, end_ms, self._packed(one))
                    for channel, one in totals.items()
                    if channel not in known
                ],
            )

    def forget(self, channel: str) -> None:
        """Drop all minutes of a channel."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM minutes WHERE channel = ?", (channel,))

    def at(self, channels: Iterable[str], at_ms: int) -> dict[str, Recorded]:
        """Return the figures of channels at a moment.

        Args:
            channels: Channel ids.
            at_ms: The moment, Unix ms of event time.

        Returns:
            By channel, the last minute that ended at the moment or before; without one
            the oldest minute; nothing for a channel without any minute.
        """
        found: dict[str, Recorded] = {}
        with self._database.transaction() as connection:
            for channel in channels:
                asked = {"channel": channel, "at_ms": at_ms}
                row = (
                    connection.execute(_AT, asked).fetchone()
                    or connection.execute(_OLDEST, asked).fetchone()
                )
                if row is not None:
                    found[channel] = self._recorded(row)
        return found

    def steps(
        self, channels: Collection[str], since_ms: int, step_ms: int
    ) -> dict[str, list[Recorded]]:
        """Return the last minute in each step after a moment, in order.

        Args:
            channels: Channel ids.
            since_ms: The moment, Unix ms of event time: begin of the first step.
            step_ms: Length of a step; a minute belongs to the step in which it ended,
                the end of a step included.
        """
        with self._database.transaction() as connection:
            return {
                channel: [
                    self._recorded(row)
                    for row in connection.execute(
                        _STEPS,
                        {
                            "channel": channel,
                            "since_ms": since_ms,
                            "step_ms": step_ms,
                        },
                    )
                ]
                for channel in channels
            }

    def rows(self, channel: str, since_ms: int, until_ms: int) -> list[Row]:
        """Return the minutes of a channel that begin in [since_ms, until_ms), in order.

        Rows are like those of the history, with the fields `FigureTable.grown`.
        """
        columns = {one.field: self._table.column_of(one) for one in self._table.grown}
        asked = {"channel": channel, "since_ms": since_ms, "until_ms": until_ms}
        with self._database.transaction() as connection:
            found = [
                self._recorded(row)
                for row in connection.execute(_ROWS, asked | {"minute_ms": MINUTE_MS})
            ]
        return [
            {"channel": channel, "minute": one.end_ms - MINUTE_MS}
            | {
                columns[field]: value
                for field, value in zip(self._table.counted, one.values, strict=True)
                if field in columns
            }
            for one in found
        ]

    def _packed(self, totals: Any) -> bytes:
        return msgspec.msgpack.encode(counted_values(self._table, totals))

    def _recorded(self, row: tuple[int, bytes]) -> Recorded:
        end_ms, packed = row
        try:
            values = self._values.decode(packed)
        except (ValueError, TypeError) as error:
            reason = f"figures cannot be decoded: {error}"
            raise self._database.damaged(reason) from error
        if len(values) != len(self._table.counted):
            reason = f"{len(values)} figures instead of {len(self._table.counted)}"
            raise self._database.damaged(reason)
        return Recorded(end_ms, values)


def _end_ms(minute: ChannelMinute) -> int:
    return minute.minute_ms + MINUTE_MS
