"""Stores which verdicts were shown, for the page's strips and for the history.

The stored verdicts are the verdicts that the page showed at the time (docs/figures.md,
8). One transaction adds the rows here and to the outbox of the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from sds_core.observer.shown_verdicts import DAY_MS, ShownVerdict, day_begin_ms
from streaming.ledger.findings import QUEUE, Findings

_CHUNK_ROWS = 5_000
"""Maximum rows of one transaction; a batch of the job waits until it is committed."""

_STORE = "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?)"

_NEWEST = """
SELECT name, max(minute_ms), verdict, reason FROM verdicts
WHERE prefix = ? AND minute_ms >= ? GROUP BY name
"""

_OF_VIEW = """
SELECT minute_ms, verdict, reason FROM verdicts
WHERE prefix = ? AND name = ? AND minute_ms >= ? AND minute_ms < ? ORDER BY minute_ms
"""


def kept_since_ms(observed_ms: int) -> int:
    """Return the start of the day before the observation.

    The store keeps all rows after this time.
    """
    return day_begin_ms(observed_ms - DAY_MS)


class VerdictStore:
    """The shown verdicts of one kind of view, or of the kind's groups."""

    def __init__(self, findings: Findings, with_history: bool) -> None:
        self._ledger = findings.ledger
        self._prefix = findings.prefix
        self._with_history = with_history

    def record(
        self, rows: Sequence[tuple[str, ShownVerdict]], observed_ms: int
    ) -> None:
        """Store rows by view, and the time of the observation, Unix ms.

        After an error, some rows may be stored, so the caller must store all rows
        again.
        """
        for begin in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[begin : begin + _CHUNK_ROWS]
            with self._ledger.transaction() as connection:
                connection.executemany(
                    _STORE,
                    [
                        (self._prefix, name, *msgspec.structs.astuple(row))
                        for name, row in chunk
                    ],
                )
                if self._with_history:
                    encoded = [
                        (self._prefix, name, msgspec.msgpack.encode(row))
                        for name, row in chunk
                    ]
                    connection.executemany(QUEUE, encoded)
        self._ledger.write(
            "INSERT OR REPLACE INTO observed VALUES (?, ?)", self._prefix, observed_ms
        )

    def find(
        self, names: Iterable[str], since_ms: int, until_ms: int
    ) -> dict[str, list[ShownVerdict]]:
        """Return the rows of some views in [since_ms, until_ms), Unix ms, in order.

        The rows of the whole first day are included.
        """
        begin_ms = day_begin_ms(since_ms)
        with self._ledger.transaction():
            return {
                name: [
                    ShownVerdict(*row)
                    for row in self._ledger.rows(
                        _OF_VIEW, self._prefix, name, begin_ms, until_ms
                    )
                ]
                for name in names
            }

    @property
    def observed_ms(self) -> int | None:
        """Stored time of the last observation of verdicts; None if none is stored."""
        query = "SELECT observed_ms FROM observed WHERE prefix = ?"
        found: int | None = self._ledger.value(query, self._prefix)
        return found

    def newest(self, observed_ms: int) -> dict[str, ShownVerdict]:
        """Return the newest row of each view on the day of `observed_ms`."""
        rows = self._ledger.rows(_NEWEST, self._prefix, day_begin_ms(observed_ms))
        return {name: ShownVerdict(*row) for name, *row in rows}

    def expire(self, before_ms: int) -> None:
        """Remove the rows before a time, Unix ms."""
        delete = "DELETE FROM verdicts WHERE prefix = ? AND minute_ms < ?"
        self._ledger.write(delete, self._prefix, before_ms)

    def take_back(self, after_ms: int) -> None:
        """Remove the rows after a time, Unix ms, because the clock was wrong."""
        delete = "DELETE FROM verdicts WHERE prefix = ? AND minute_ms > ?"
        self._ledger.write(delete, self._prefix, after_ms)
