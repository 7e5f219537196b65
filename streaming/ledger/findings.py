"""Stores incidents, and queues incidents and minutes for the history.

The table ``incidents`` has the newest state of each recent incident. The *outbox* is a
queue of rows for the lasting history (`connectors.history`): each change of an
incident, each minute and each change of a shown verdict. The transaction that stores
the change also adds a row to the outbox, with the next sequence number (column
``told``). When every destination has confirmed a row, the row is deleted. Each
destination thus gets every row at least once. If the history has several rows with the
same key, the row with the highest sequence number counts.

Each type of row has its own order and is confirmed by itself, so a topic or directory
that fails delays only its own rows.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar

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
from streaming.ledger.schema import OUTBOX_TYPE, outbox_type

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
    SELECT name, finding FROM outbox WHERE prefix = :prefix AND told > :delivered
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

# Releases up to 1.3 stored one number for all types of row.
_DELIVERED = """
SELECT coalesce(max(told), 0) FROM delivered
WHERE prefix = ? AND destination IN (?, ?)
"""

# For SQLite, a negative limit means no limit.
_PENDING = f"""
SELECT told, name, finding, tap_hole FROM outbox
WHERE prefix = :prefix AND {OUTBOX_TYPE} = :type AND told > :delivered
    AND (:channel IS NULL OR name = :channel)
ORDER BY told
LIMIT coalesce(:limit, -1)
"""  # noqa: S608 - ours

_DELETE = f"""
DELETE FROM outbox WHERE prefix = ? AND {OUTBOX_TYPE} = ? AND told <= ?
"""  # noqa: S608 - ours

OutboxRow = NumberedIncident | NumberedMinute | NumberedVerdict
_Row = TypeVar("_Row", bound=OutboxRow)

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
        self._findings: dict[type, Any] = {
            NumberedIncident: Incident,
            NumberedMinute: kind.minute or Minute,
            NumberedVerdict: ShownVerdict,
        }
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
            before = {
                "prefix": self.prefix,
                "found_ms": found_ms,
                "delivered": self._delivered(Destination.PARQUET, NumberedIncident),
            }
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
        row: type[_Row],
        limit: int | None = None,
        channel: str | None = None,
    ) -> list[_Row]:
        """The first rows of a type that a destination has not confirmed, in order.

        `limit` is the maximum number of rows; None means no limit. `channel` selects
        the rows of one channel; None means all channels.
        """
        with self.ledger.transaction() as connection:
            asked = {
                "prefix": self.prefix,
                "type": self._stored_type(row),
                "delivered": self._delivered(destination, row),
                "channel": channel,
                "limit": limit,
            }
            rows = connection.execute(_PENDING, asked).fetchall()
        finding = self._findings[row]
        return [
            _outbox_row(sequence, channel, self._decode(packed, finding), tap_hole)
            for sequence, channel, packed, tap_hole in rows
        ]

    def confirm_delivered(
        self, destination: Destination, row: type[OutboxRow], sequence: int
    ) -> None:
        """Record that a destination has all rows of a type up to a sequence number."""
        store = "INSERT OR REPLACE INTO delivered VALUES (?, ?, ?)"
        with self.ledger.transaction():
            name = self._stored_name(destination, row)
            self.ledger.write(store, self.prefix, name, sequence)
            everywhere = min(self._delivered(one, row) for one in Destination)
            self.ledger.write(_DELETE, self.prefix, self._stored_type(row), everywhere)

    def _delivered(self, destination: Destination, row: type) -> int:
        name = self._stored_name(destination, row)
        return int(self.ledger.value(_DELIVERED, self.prefix, destination, name))

    def _stored_name(self, destination: Destination, row: type) -> str:
        return f"{destination} {self._stored_type(row).decode()}"

    def _stored_type(self, row: type) -> bytes:
        return outbox_type(self._findings[row])

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
) -> Any:
    if isinstance(finding, Minute):
        return NumberedMinute(sequence, channel, finding.minute_ms, finding.totals)
    if isinstance(finding, ShownVerdict):
        return NumberedVerdict(sequence, channel, finding)
    return NumberedIncident(sequence, ChannelIncident(channel, finding, bool(tap_hole)))
