"""Stores incidents, and queues incidents and minutes for the history.

The table ``incidents`` has the newest state of each recent incident. The *outbox* is a
queue of rows for the lasting history (`connectors.history`): each change of an
incident, each minute and each change of a shown verdict. The transaction that stores
the change also adds a row to the outbox, with the next sequence number (column
``told``). When every destination has confirmed a row, the row is deleted. Each
destination thus gets every row at least once and in order. If the history has several
rows with the same key, the row with the highest sequence number counts.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec

from connectors.history.schema import (
    NumberedIncident,
    NumberedMinute,
    NumberedVerdict,
)
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentQuery
from sds_core.observer.kinds import AnyKind
from sds_core.observer.minutes import Minute
from sds_core.observer.shown_verdicts import ShownVerdict
from streaming.ledger.ledger import Ledger

# If the incident is stored already, its mark (`tap_hole`) stays unchanged.
_STORE_INCIDENT = """
INSERT INTO incidents VALUES (?, ?, ?, ?, ?, ?, FALSE, ?)
ON CONFLICT DO UPDATE SET
    found_ms = excluded.found_ms,
    standing = excluded.standing,
    incident = excluded.incident
"""

_MARK_INCIDENT = """
UPDATE incidents SET tap_hole = TRUE
WHERE (prefix, name, kind, message_id) = (?, ?, ?, ?)
"""

# Copies the stored incident and its mark into the outbox.
_QUEUE_INCIDENT = """
INSERT INTO outbox (prefix, name, finding, tap_hole)
SELECT prefix, name, incident, tap_hole FROM incidents
WHERE (prefix, name, kind, message_id) = (?, ?, ?, ?)
"""

QUEUE = """
INSERT INTO outbox (prefix, name, finding, tap_hole) VALUES (?, ?, ?, FALSE)
"""
"""Adds a minute or a shown verdict to the outbox."""

# An incident stays until the Parquet files have its latest change.
_FORGET_INCIDENTS = """
DELETE FROM incidents WHERE prefix = :prefix AND found_ms < :found_ms
AND (name, incident) NOT IN (
    SELECT name, finding FROM outbox WHERE prefix = :prefix AND told > coalesce((
        SELECT told FROM delivered WHERE (prefix, destination) = (:prefix, 'parquet')
    ), 0)
)
"""

# If the parameter of a condition is null, the condition holds for all incidents.
_FIND_INCIDENTS = """
SELECT name, incident, tap_hole FROM incidents
WHERE prefix = :prefix
    AND (:channel IS NULL OR name = :channel)
    AND (:kind IS NULL OR kind = :kind)
    AND (:since_ms IS NULL OR found_ms >= :since_ms OR standing)
    AND (standing OR NOT :standing)
    AND (NOT standing OR NOT :resolved)
    AND (
        :after_found_ms IS NULL OR found_ms < :after_found_ms
        OR (
            found_ms = :after_found_ms AND (name, kind, message_id)
            > (:after_channel, :after_kind, :after_message_id)
        )
    )
ORDER BY found_ms DESC, name, kind, message_id
"""

# For SQLite, a negative limit means no limit.
_PENDING = """
SELECT told, name, finding, tap_hole FROM outbox
WHERE prefix = :prefix
    AND told > coalesce((
        SELECT told FROM delivered
        WHERE (prefix, destination) = (:prefix, :destination)
    ), 0)
    AND (:channel IS NULL OR name = :channel)
ORDER BY told
LIMIT coalesce(:limit, -1)
"""

OutboxRow = NumberedIncident | NumberedMinute | NumberedVerdict

Coincides = Callable[[str, Incident], bool]
"""Function of a channel and an incident of this channel.

Returns whether the incident coincides with a capture gap of the channel's taps.
"""


def number_rows_from(ledger: Ledger, first_sequence: int) -> None:
    """Give later rows of the outbox sequence numbers of at least `first_sequence`.

    This number must exceed all numbers in the history: those of other jobs, and those
    of this job after a backup, if the ledger was restored from the backup. Otherwise,
    those rows would count instead of the new rows.
    """
    ledger.write(
        "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'outbox'",
        first_sequence - 1,
    )


class Destination(enum.StrEnum):
    """A destination that gets every row of the outbox."""

    TOPICS = "topics"
    PARQUET = "parquet"


class Findings:
    """Incidents of one kind of view, and the kind's rows in the outbox.

    In this class, "channel" means a view or group of any kind.
    """

    def __init__(self, ledger: Ledger, kind: AnyKind) -> None:
        self._type: Any = Incident | ShownVerdict
        if kind.minute is not None:
            self._type |= kind.minute
        self.ledger = ledger
        self.prefix = kind.prefix

    def record_incidents(self, incidents: Mapping[str, Iterable[Incident]]) -> None:
        """Store the incidents of each channel, and add them to the outbox.

        An incident that is stored already keeps its mark.
        """
        rows = [
            (
                self.prefix,
                channel,
                *incident.key,
                incident.found_ms,
                incident.ended_ms is None,
                msgspec.msgpack.encode(incident),
            )
            for channel, changed in incidents.items()
            for incident in changed
        ]
        with self.ledger.transaction():
            self.ledger.write_all(_STORE_INCIDENT, rows)
            self.ledger.write_all(_QUEUE_INCIDENT, [row[:4] for row in rows])

    def record_minutes(self, minutes: Mapping[str, Iterable[Minute[Any]]]) -> None:
        """Add the minutes of each channel to the outbox."""
        rows = [
            (self.prefix, channel, msgspec.msgpack.encode(minute))
            for channel, ended in minutes.items()
            for minute in ended
        ]
        self.ledger.write_all(QUEUE, rows)

    def mark_incidents(self, coincides: Coincides, since_ms: int) -> None:
        """Mark incidents that coincide with a capture gap, and add them to the outbox.

        A mark is never removed. Incidents that were found before `since_ms`, event time
        in Unix ms, are skipped.
        """
        with self.ledger.transaction():
            unmarked = self.ledger.rows(
                "SELECT name, incident FROM incidents "
                "WHERE prefix = ? AND found_ms >= ? AND NOT tap_hole",
                self.prefix,
                since_ms,
            )
            incidents = [
                (channel, self._decode(packed, Incident))
                for channel, packed in unmarked
            ]
            keys = [
                (self.prefix, channel, *incident.key)
                for channel, incident in incidents
                if coincides(channel, incident)
            ]
            self.ledger.write_all(_MARK_INCIDENT, keys)
            self.ledger.write_all(_QUEUE_INCIDENT, keys)

    def find_incidents(self, query: IncidentQuery) -> list[ChannelIncident]:
        """Incidents that match a query; the most recently found incident is first."""
        values = query.sql_values | {"prefix": self.prefix}
        who = query.participant
        with self.ledger.transaction() as connection:
            found = (
                ChannelIncident(channel, self._decode(packed, Incident), bool(tap_hole))
                for channel, packed, tap_hole in connection.execute(
                    _FIND_INCIDENTS, values
                )
            )
            wanted = (
                one for one in found if who is None or one.incident.is_lacked(who)
            )
            return list(islice(wanted, query.limit))

    def forget_before(self, found_ms: int) -> None:
        """Remove incidents that were found before an event time, Unix ms.

        An incident stays longer if the Parquet files do not have its latest change yet.
        """
        with self.ledger.transaction() as connection:
            before = {"prefix": self.prefix, "found_ms": found_ms}
            if connection.execute(_FORGET_INCIDENTS, before).rowcount:
                connection.execute(
                    "INSERT OR REPLACE INTO forgotten VALUES (?, ?)",
                    (self.prefix, found_ms),
                )

    def expire_before(self, found_ms: int) -> None:
        """Remove incidents found before an event time, Unix ms.

        Their rows in the outbox stay.
        """
        delete = "DELETE FROM incidents WHERE prefix = ? AND found_ms < ?"
        self.ledger.write(delete, self.prefix, found_ms)

    @property
    def forgotten_before_ms(self) -> int | None:
        """The last event time before which `forget_before` removed incidents, Unix ms.

        None if it has removed no incident.
        """
        query = "SELECT before_ms FROM forgotten WHERE prefix = ?"
        before_ms: int | None = self.ledger.value(query, self.prefix)
        return before_ms

    def pending(
        self,
        destination: Destination,
        limit: int | None = None,
        channel: str | None = None,
    ) -> list[OutboxRow]:
        """The first outbox rows that a destination has not confirmed, in order.

        `limit` is the maximum number of rows; None means no limit. `channel` selects
        the rows of one channel; None means all channels.
        """
        asked = {
            "prefix": self.prefix,
            "destination": destination,
            "channel": channel,
            "limit": limit,
        }
        with self.ledger.transaction() as connection:
            rows = connection.execute(_PENDING, asked).fetchall()
        return [
            _outbox_row(sequence, channel, self._decode(packed, self._type), tap_hole)
            for sequence, channel, packed, tap_hole in rows
        ]

    def confirm_delivered(self, destination: Destination, sequence: int) -> None:
        """Record that a destination has all rows up to a sequence number."""
        store = "INSERT OR REPLACE INTO delivered VALUES (?, ?, ?)"
        query = "SELECT destination, told FROM delivered WHERE prefix = ?"
        delete = "DELETE FROM outbox WHERE prefix = ? AND told <= ?"
        with self.ledger.transaction():
            self.ledger.write(store, self.prefix, destination, sequence)
            delivered = dict(self.ledger.rows(query, self.prefix))
            everywhere = min(delivered.get(one, 0) for one in Destination)
            self.ledger.write(delete, self.prefix, everywhere)

    def count_pending(self) -> int:
        """Number of rows that at least one destination has not confirmed."""
        query = "SELECT count(*) FROM outbox WHERE prefix = ?"
        return int(self.ledger.value(query, self.prefix))

    def _decode(self, packed: bytes, type_: Any) -> Any:
        with self.ledger.decoding("a finding"):
            return msgspec.msgpack.decode(packed, type=type_)


def _outbox_row(
    sequence: int,
    channel: str,
    finding: Incident | Minute[Any] | ShownVerdict,
    tap_hole: int,
) -> OutboxRow:
    if isinstance(finding, Minute):
        return NumberedMinute(sequence, channel, finding.minute_ms, finding.totals)
    if isinstance(finding, ShownVerdict):
        return NumberedVerdict(sequence, channel, finding)
    return NumberedIncident(sequence, ChannelIncident(channel, finding, bool(tap_hole)))
