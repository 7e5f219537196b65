"""Which views there are, which shall be forgotten, and what forgotten ones counted.

The file holds three things, for kinds with `Kind.remains`:

- The keys of all views, for commands that run without Spark.
- *Requests*: rows that the source adds to the next batch. They have numbers, and the
  position of each batch says up to which number it took them, so that a replayed batch
  takes the same ones.
- The *remainder*: sums over what forgotten views had counted. It is stored with the
  number of the batch that changed it, beside the one before. So a batch that Spark
  repeats adds to the same sum as the first time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from sds_core.observer import blob
from sds_core.observer.forgotten import Remainder
from sds_core.observer.kinds import AnyKind, Kinds
from streaming.database import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS views (key TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,
    digest BLOB NOT NULL
);

CREATE TABLE IF NOT EXISTS remainders (
    prefix TEXT NOT NULL,
    batch INTEGER NOT NULL,
    views INTEGER NOT NULL,
    totals BLOB NOT NULL,
    other BLOB,
    PRIMARY KEY (prefix, batch)
);
"""

_NEWEST_REMAINDER = """
SELECT batch, views, totals, other FROM remainders
WHERE prefix = ? AND batch < ? ORDER BY batch DESC LIMIT 1
"""

_STORE_REMAINDER = "INSERT OR REPLACE INTO remainders VALUES (?, ?, ?, ?, ?)"

_AFTER_ALL = 1 << 62
"""Greater than the number of any batch."""


_Rows = TypeVar("_Rows")


class ForgottenView(NamedTuple):
    """A view that a batch has forgotten.

    Attributes:
        kind: Its kind.
        totals: Its last figures.
        in_other: Whether it had no metric label of its own.
    """

    kind: AnyKind
    totals: Any
    in_other: bool


class ViewRegister:
    """The file of one checkpoint.

    What a method has written is durable when the method returns. A running job and a
    command may use it at the same time.

    Args:
        path: The file; it and its directory are made if they are missing.
        expected: Whether the file was made before; see `Database`.

    Raises:
        streaming.damage.DamagedCheckpoint: The file is damaged. Methods raise it too.
    """

    def __init__(self, path: Path, expected: bool = False) -> None:
        self._database = Database(path, _SCHEMA, expected)

    def begin(self, committed: int | None, taken: int) -> None:
        """Remove what a killed job has left of a batch that will be repeated.

        Args:
            committed: Number of the newest batch that was committed; None before the
                first.
            taken: Number of the last request up to that batch; 0 without one.
        """
        newest = -1 if committed is None else committed
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM remainders WHERE batch > ?", (newest,))
            connection.execute("DELETE FROM requests WHERE number <= ?", (taken,))
            # A new file must not give numbers that the position has passed already.
            connection.execute("DELETE FROM sqlite_sequence WHERE name = 'requests'")
            connection.execute(
                "INSERT INTO sqlite_sequence SELECT 'requests', "
                "max(?, (SELECT coalesce(max(number), 0) FROM requests))",
                (taken,),
            )

    def set_keys(self, keys: Iterable[str]) -> None:
        """Replace the keys of all views."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM views")
            _add_keys(connection, keys)

    def keys(self) -> list[str]:
        """The keys of all views, in order."""
        with self._database.transaction() as connection:
            rows = connection.execute("SELECT key FROM views ORDER BY key").fetchall()
        return [key for (key,) in self._checked(rows, list[tuple[str]])]

    def request(self, requests: Iterable[tuple[str, bytes]]) -> None:
        """Add requests: key of a view, and one of the digests in `keys.py`."""
        rows = list(requests)
        if not rows:
            return
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT INTO requests (key, digest) VALUES (?, ?)", rows
            )

    def newest_request(self) -> int:
        """Number of the newest request; 0 if there is none."""
        with self._database.transaction() as connection:
            row = connection.execute("SELECT max(number) FROM requests").fetchone()
        return int(row[0] or 0)

    def requests(self, after: int, until: int) -> list[tuple[str, bytes]]:
        """Requests with numbers in (after, until], in order."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT key, digest FROM requests WHERE number > ? AND number <= ? "
                "ORDER BY number",
                (after, until),
            ).fetchall()
        return self._checked(rows, list[tuple[str, bytes]])

    def record_batch(
        self,
        batch: int,
        new: Iterable[str],
        gone: Iterable[str],
        forgotten: Sequence[ForgottenView],
    ) -> None:
        """Store what a batch has changed. Repeating it changes nothing.

        Args:
            batch: Number of the batch.
            new: Keys of views that are new.
            gone: Keys of views that are forgotten and have not returned.
            forgotten: Views that were forgotten, whether or not they have returned.
        """
        new, gone = list(new), list(gone)
        if not (new or gone or forgotten):
            return
        kinds = {one.kind.prefix: one.kind for one in forgotten}
        with self._database.transaction() as connection:
            _add_keys(connection, new)
            connection.executemany(
                "DELETE FROM views WHERE key = ?", [(key,) for key in gone]
            )
            for prefix, kind in kinds.items():
                row = connection.execute(_NEWEST_REMAINDER, (prefix, batch)).fetchone()
                of_kind = [one for one in forgotten if one.kind.prefix == prefix]
                # Only the sum before this batch is needed if it is repeated.
                before = -1 if row is None else row[0]
                connection.execute(
                    "DELETE FROM remainders WHERE prefix = ? AND batch < ?",
                    (prefix, before),
                )
                stored = _with(kind, self._remainder(kind, row), of_kind)
                connection.execute(_STORE_REMAINDER, (prefix, batch, *stored))

    def remainders(self, kinds: Kinds) -> dict[str, Remainder[Any]]:
        """What forgotten views had counted, by the prefix of their kind."""
        found = {}
        with self._database.transaction() as connection:
            for kind in kinds:
                values = (kind.prefix, _AFTER_ALL)
                row = connection.execute(_NEWEST_REMAINDER, values).fetchone()
                remainder = self._remainder(kind, row)
                if remainder is not None:
                    found[kind.prefix] = remainder
        return found

    def _remainder(
        self, kind: AnyKind, row: tuple[int, int, bytes, bytes | None] | None
    ) -> Remainder[Any] | None:
        if row is None:
            return None
        _, views, totals, other = row
        try:
            return Remainder(
                int(views),
                blob.unpack_totals(totals, kind.totals),
                None if other is None else blob.unpack_totals(other, kind.totals),
            )
        # An error of msgspec, or one of bytes that are no text, is a ValueError too.
        except (ValueError, TypeError) as error:
            reason = f"a remainder cannot be decoded: {error}"
            raise self._database.damaged(reason) from error

    def _checked(self, rows: Any, type_: type[_Rows]) -> _Rows:
        """Return rows; a damaged page may give values of other types."""
        try:
            return msgspec.convert(rows, type_)
        except msgspec.ValidationError as error:
            raise self._database.damaged(error) from error


def _add_keys(connection: Any, keys: Iterable[str]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO views VALUES (?)", [(key,) for key in keys]
    )


def _with(
    kind: AnyKind, before: Remainder[Any] | None, forgotten: Sequence[ForgottenView]
) -> tuple[int, bytes, bytes | None]:
    """Return the columns of a remainder with further views."""
    assert kind.figures is not None  # noqa: S101 - kinds with `remains` have a table
    assert kind.remains is not None  # noqa: S101 - only their views are given
    remains = [(kind.remains(one.totals), one.in_other) for one in forgotten]
    totals = [one for one, _ in remains]
    other = [one for one, in_other in remains if in_other]
    views = len(forgotten)
    if before is not None:
        views += before.views
        totals.append(before.totals)
        if before.other is not None:
            other.append(before.other)
    return (
        views,
        blob.pack_totals(kind.figures.sum(totals)),
        blob.pack_totals(kind.figures.sum(other)) if other else None,
    )
