"""The latest incidents, beside the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from sds_core.observer.incidents import ChannelIncident, Incident, IncidentQuery
from streaming.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS incidents (
    channel TEXT NOT NULL,
    kind TEXT NOT NULL,
    message_id TEXT NOT NULL,
    found_ms INTEGER NOT NULL,
    standing INTEGER NOT NULL,
    tap_hole INTEGER NOT NULL,
    incident BLOB NOT NULL,
    PRIMARY KEY (channel, kind, message_id)
);
CREATE INDEX IF NOT EXISTS incidents_by_time ON incidents (found_ms);
CREATE TABLE IF NOT EXISTS forgotten (before_ms INTEGER NOT NULL);
"""

_PUT = """
INSERT INTO incidents VALUES (?, ?, ?, ?, ?, FALSE, ?)
ON CONFLICT DO UPDATE SET
    found_ms = excluded.found_ms,
    standing = excluded.standing,
    incident = excluded.incident
"""

# As it is now, with its mark.
_TELL = """
INSERT INTO outbox (channel, finding, tap_hole)
SELECT channel, incident, tap_hole FROM incidents
WHERE (channel, kind, message_id) = (?, ?, ?)
"""

# The history must have what is forgotten here.
_FORGET = """
DELETE FROM incidents WHERE found_ms < ? AND (channel, incident) NOT IN (
    SELECT channel, finding FROM outbox WHERE told > coalesce(
        (SELECT told FROM delivered WHERE destination = 'parquet'), 0
    )
)
"""

# A null is a condition that was not asked for; a negative limit is none.
_FIND = """
SELECT channel, incident, tap_hole FROM incidents
WHERE (:channel IS NULL OR channel = :channel)
    AND (:kind IS NULL OR kind = :kind)
    AND (:since_ms IS NULL OR found_ms >= :since_ms OR standing)
    AND (standing OR NOT :standing)
ORDER BY found_ms DESC, channel, kind, message_id
LIMIT coalesce(:limit, -1)
"""

Coincides = Callable[[str, Incident], bool]
"""Whether an incident of a channel coincides with a hole of its taps."""


class IncidentStore:
    """A table keyed by channel, kind and message id, each incident as told last.

    A replayed batch overwrites its own rows. Whatever changes is told to the outbox as
    well (`streaming.outbox`).

    Args:
        database: Of `SCHEMA` and that of the outbox.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, told: Mapping[str, Iterable[Incident]]) -> None:
        """Store incidents by channel, durable when this returns.

        One that is known keeps its mark.
        """
        rows = [
            (
                channel,
                *incident.key,
                incident.found_ms,
                incident.ended_ms is None,
                msgspec.msgpack.encode(incident),
            )
            for channel, incidents in told.items()
            for incident in incidents
        ]
        if not rows:
            return
        with self._database.transaction() as connection:
            connection.executemany(_PUT, rows)
            connection.executemany(_TELL, [row[:3] for row in rows])

    def mark(self, coincides: Coincides, since_ms: int) -> None:
        """Mark the incidents that coincide with a tap hole; a mark stays.

        Args:
            coincides: Judges one incident.
            since_ms: Those found earlier are as they will stay.
        """
        with self._database.transaction() as connection:
            unmarked = connection.execute(
                "SELECT channel, incident FROM incidents "
                "WHERE found_ms >= ? AND NOT tap_hole",
                (since_ms,),
            ).fetchall()
            incidents = [(channel, _decoded(packed)) for channel, packed in unmarked]
            marked = [(one[0], *one[1].key) for one in incidents if coincides(*one)]
            connection.executemany(
                "UPDATE incidents SET tap_hole = TRUE "
                "WHERE (channel, kind, message_id) = (?, ?, ?)",
                marked,
            )
            connection.executemany(_TELL, marked)

    def find(self, query: IncidentQuery) -> list[ChannelIncident]:
        """Those that were asked for, found last first."""
        with self._database.transaction() as connection:
            rows = connection.execute(_FIND, msgspec.structs.asdict(query)).fetchall()
        return [
            ChannelIncident(channel, _decoded(packed), bool(tap_hole))
            for channel, packed, tap_hole in rows
        ]

    def forget_before(self, found_ms: int) -> None:
        """Remove those found before a time, Unix ms, once the history has them."""
        with self._database.transaction() as connection:
            if connection.execute(_FORGET, (found_ms,)).rowcount:
                connection.execute("DELETE FROM forgotten")
                connection.execute("INSERT INTO forgotten VALUES (?)", (found_ms,))

    @property
    def forgotten_before_ms(self) -> int | None:
        """All that was found at this time, Unix ms, or later is here; None for all."""
        with self._database.transaction() as connection:
            row = connection.execute("SELECT before_ms FROM forgotten").fetchone()
        return None if row is None else int(row[0])


def _decoded(packed: bytes) -> Incident:
    return msgspec.msgpack.decode(packed, type=Incident)
