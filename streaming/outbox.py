"""What leaves the job for good, on its way to the lasting history.

A row is added in the transaction that stores what it tells, and kept until each
destination has it: at least once, in order. A later row with the same key replaces the
earlier one (`connectors.history`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from connectors.history.schema import ToldIncident, ToldMinute
from sds_core.observer.incidents import ChannelIncident, Incident
from sds_core.observer.sds.channel_minute import ChannelMinute
from streaming import incidents
from streaming.database import Database
from streaming.incidents import IncidentStore

SCHEMA = """
CREATE TABLE IF NOT EXISTS outbox (
    told INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    finding BLOB NOT NULL,
    tap_hole INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS delivered (
    destination TEXT PRIMARY KEY,
    told INTEGER NOT NULL
);
"""

Told = ToldIncident | ToldMinute


class Destination(enum.StrEnum):
    """Where the rows go."""

    TOPICS = "topics"
    PARQUET = "parquet"


class Outbox:
    """Rows in the order in which they were told.

    Args:
        database: Of `SCHEMA` and that of the incidents.
        first_told: Where a new outbox begins to count. Greater than what another job
            ever counted to, so that in a history they share the newer rows count.
    """

    def __init__(self, database: Database, first_told: int) -> None:
        self._database = database
        with database.transaction() as connection:
            known = connection.execute(
                "SELECT 1 FROM sqlite_sequence WHERE name = 'outbox'"
            ).fetchone()
            if known is None:
                connection.execute(
                    "INSERT INTO sqlite_sequence VALUES ('outbox', ?)",
                    (first_told - 1,),
                )
                # What an earlier version found belongs into the history as well.
                connection.execute(
                    "INSERT INTO outbox (channel, finding, tap_hole) "
                    "SELECT channel, incident, tap_hole FROM incidents "
                    "ORDER BY found_ms, channel, kind, message_id"
                )

    def put_minutes(self, minutes: Mapping[str, Iterable[ChannelMinute]]) -> None:
        """Add the minutes of some channels; durable when this returns."""
        rows = [
            (channel, msgspec.msgpack.encode(minute))
            for channel, told in minutes.items()
            for minute in told
        ]
        if not rows:
            return
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT INTO outbox (channel, finding, tap_hole) VALUES (?, ?, FALSE)",
                rows,
            )

    def pending(self, destination: Destination, limit: int) -> list[Told]:
        """The next rows that a destination does not have, in order."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT told, channel, finding, tap_hole FROM outbox WHERE told > "
                "coalesce((SELECT told FROM delivered WHERE destination = ?), 0) "
                "ORDER BY told LIMIT ?",
                (destination, limit),
            ).fetchall()
        return [_told(*row) for row in rows]

    def waiting_minutes(
        self, destination: Destination, channel: str
    ) -> list[ToldMinute]:
        """The minutes of one channel that a destination does not have, in order."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT told, channel, finding, tap_hole FROM outbox WHERE told > "
                "coalesce((SELECT told FROM delivered WHERE destination = ?), 0) "
                "AND channel = ? ORDER BY told",
                (destination, channel),
            ).fetchall()
        return [one for row in rows if isinstance(one := _told(*row), ToldMinute)]

    def delivered(self, destination: Destination, told: int) -> None:
        """A destination has all rows up to this one."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO delivered VALUES (?, ?)", (destination, told)
            )
            known = dict(connection.execute("SELECT destination, told FROM delivered"))
            everywhere = min(known.get(one, 0) for one in Destination)
            connection.execute("DELETE FROM outbox WHERE told <= ?", (everywhere,))

    def __len__(self) -> int:
        """How many rows some destination does not have."""
        with self._database.transaction() as connection:
            # Counted by their numbers, which have no holes: the rows themselves may
            # be gigabytes.
            (count,) = connection.execute(
                "SELECT coalesce((SELECT max(told) FROM outbox) "
                "- (SELECT min(told) FROM outbox) + 1, 0)"
            ).fetchone()
        return int(count)


def _told(told: int, channel: str, packed: bytes, tap_hole: int) -> Told:
    finding = msgspec.msgpack.decode(packed, type=Incident | ChannelMinute)
    if isinstance(finding, ChannelMinute):
        return ToldMinute(told, channel, finding.minute_ms, finding.totals)
    return ToldIncident(told, ChannelIncident(channel, finding, bool(tap_hole)))


def open_findings(path: Path, first_told: int) -> tuple[IncidentStore, Outbox]:
    """What a checkpoint keeps of its findings, in one file.

    Args:
        path: The file.
        first_told: See `Outbox`.
    """
    database = Database(path, incidents.SCHEMA + SCHEMA)
    return IncidentStore(database), Outbox(database, first_told)
