"""Stores the verdicts that the page has shown (docs/figures.md, 8).

The page draws its strips from the stored verdicts. If the job has a history, the
transaction that stores rows also adds them to the outbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from sds_core.observer.shown_verdicts import DAY_MS, ShownVerdict, day_begin_ms
from streaming.ledger.findings import QUEUE, Findings

_CHUNK_ROWS = 5_000
"""Maximum number of rows that are stored in one transaction.

A batch of the job must wait until the transaction is committed.
"""

_STORE = "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?)"

_NEWEST = """
SELECT name, max(minute_ms), verdict, reason FROM verdicts
WHERE prefix = ? AND minute_ms >= ? AND minute_ms <= ? GROUP BY name
"""

_OF_VIEW = """
SELECT minute_ms, verdict, reason FROM verdicts
WHERE prefix = ? AND name = ? AND minute_ms >= ? AND minute_ms < ? ORDER BY minute_ms
"""


_AHEAD = """
SELECT name, minute_ms FROM verdicts
WHERE prefix = ? AND minute_ms > ? ORDER BY name, minute_ms
"""


def kept_since_ms(observed_ms: int) -> int:
    """Return the start of the day before the day of an observation, Unix ms.

    The store keeps all rows from this time on.
    """
    return day_begin_ms(observed_ms - DAY_MS)


class VerdictStore:
    """The shown verdicts of one kind's views, or of its groups if it has groups."""

    def __init__(self, findings: Findings, with_history: bool) -> None:
        self._ledger = findings.ledger
        self._prefix = findings.prefix
        self._with_history = with_history

    def record(
        self, rows: Sequence[tuple[str, ShownVerdict]], observed_ms: int
    ) -> None:
        """Store rows, each with its view's name, and the time of their observation.

        The time is in Unix ms. After an error, only some rows may be stored, so the
        caller must store all rows again.
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

        The result also has the earlier rows of the day of `since_ms`. It has no rows
        after the last observation: the clock was ahead when these rows were stored.
        """
        begin_ms = day_begin_ms(since_ms)
        with self._ledger.transaction():
            until_ms = min(until_ms, (self.observed_ms or 0) + 1)
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
        """When verdicts were last observed, Unix ms; None if no time is stored."""
        query = "SELECT observed_ms FROM observed WHERE prefix = ?"
        found: int | None = self._ledger.value(query, self._prefix)
        return found

    def newest(self, observed_ms: int) -> dict[str, ShownVerdict]:
        """Return each view's newest row at `observed_ms`, if it is of the same day."""
        rows = self._ledger.rows(
            _NEWEST, self._prefix, day_begin_ms(observed_ms), observed_ms
        )
        return {name: ShownVerdict(*row) for name, *row in rows}

    def expire(self, before_ms: int) -> None:
        """Remove the rows before a time, Unix ms."""
        delete = "DELETE FROM verdicts WHERE prefix = ? AND minute_ms < ?"
        self._ledger.write(delete, self._prefix, before_ms)

    def ahead(self, observed_ms: int) -> dict[str, list[int]]:
        """Return, by view, the minutes of rows after an observation, in order.

        Times are in Unix ms. Such rows exist if the clock was set back.
        """
        found: dict[str, list[int]] = {}
        for name, minute_ms in self._ledger.rows(_AHEAD, self._prefix, observed_ms):
            found.setdefault(name, []).append(minute_ms)
        return found
