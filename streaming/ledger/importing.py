"""Opens the ledger of a checkpoint, and imports files of releases up to 0.15.

Releases up to 0.15 had no ledger, but one file for each type of data and kind of view.
The import has three steps:

1. One transaction copies the files into the ledger, and sets the ledger's version.
2. The start is recorded in the checkpoint's identity, which then names the ledger.
3. The files are removed.

If the process ends before step 2, the next start copies the files again. If the process
ends later, the next start only removes the files.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sds_core.observer.kinds import Kinds
from sds_core.observer.protocols import ROOT_KIND
from streaming.checkpoint import CheckpointIdentity, own_files, record_start
from streaming.damage import LEDGER, decoding, do_without, read_file
from streaming.ledger import schema
from streaming.ledger.ledger import Ledger, check_database, told_damage

_SEQUENCE = "SELECT seq FROM sqlite_sequence WHERE name = 'outbox'"


class _Copy(NamedTuple):
    """A table of an older file, and how its rows are read.

    The rows are copied into the ledger's table of the same name.

    Attributes:
        file: Name of the file; for a file of one kind, without the kind's prefix.
        table: Name of the table, which a file of an early release may lack.
        columns: Columns of the older table, in the order of the ledger's columns. A
            file of one kind has no column for the prefix, so the import adds the
            prefix as the first column.
        rest: End of the query, after the table's name. Releases up to 0.15 stored a
            separate row for each of the newest batches, because Spark may repeat the
            last batch. The query selects the row of the newest committed batch.
    """

    file: str
    table: str
    columns: str
    rest: str = ""


_INCIDENTS, _MINUTES = "incidents.sqlite", "minutes.sqlite"
_OF_COMMITTED = "WHERE batch <= :committed GROUP BY prefix{} HAVING max(batch) >= 0"

_OF_KIND = (
    _Copy(
        _INCIDENTS,
        "incidents",
        "channel, kind, message_id, found_ms, standing, tap_hole, incident",
    ),
    _Copy(_INCIDENTS, "forgotten", "before_ms"),
    _Copy(_INCIDENTS, "verdicts", "channel, minute_ms, verdict, reason"),
    _Copy(_INCIDENTS, "observed", "observed_ms"),
    _Copy(_MINUTES, "minutes", "end_ms, channel, figures"),
    _Copy(_MINUTES, "baseline", "channel, end_ms, figures"),
    _Copy(_MINUTES, "fields", "names"),
)
_AT_ROOT = _Copy(
    "acknowledgements.sqlite",
    "acknowledgements",
    "channel, message_id, t0_ms, latency_ms",
)
_OF_ALL = (
    _Copy("views.sqlite", "views", "key"),
    _Copy("views.sqlite", "requests", "number, key, digest"),
    _Copy(
        "views.sqlite",
        "remainders",
        "prefix, views, totals, other",
        _OF_COMMITTED.format(""),
    ),
    _Copy(
        "groups.sqlite",
        "parts",
        "prefix, name, view, minute_ms, part",
        _OF_COMMITTED.format(", name, view"),
    ),
)


def open_ledger(
    checkpoint: Path,
    identity: CheckpointIdentity,
    kinds: Kinds,
    committed: int | None,
    first_sequence: int,
) -> tuple[CheckpointIdentity, Ledger]:
    """Open the ledger of a checkpoint, and record the start in the identity.

    If the ledger is missing, it is created. The caller must have locked the checkpoint.
    In a new outbox, sequence numbers begin at `first_sequence`; see
    `findings.number_rows_from`.

    Raises:
        DamagedCheckpoint: A file is damaged.
        sds_core.observer.blob.UnknownBlobVersion: A newer release wrote the ledger.
    """
    directory = own_files(checkpoint)
    older = list(_older_paths(directory, kinds))
    if LEDGER not in identity.files and any(path.exists() for path in older):
        # If a ledger exists, a start created the ledger, but failed before it recorded
        # the ledger in the identity. The older files are still valid, so they are
        # imported again.
        _remove(directory / LEDGER)
    ledger = Ledger(directory / LEDGER, expected=LEDGER in identity.files)
    with ledger.transaction() as connection:
        if not schema.stored_version(connection):
            files = _OlderFiles(directory, identity.files, kinds, connection)
            files.copy(-1 if committed is None else committed, first_sequence)
            connection.execute(f"PRAGMA user_version = {schema.VERSION}")
    started = record_start(checkpoint, identity, [LEDGER])
    for path in older:
        _remove(path)
    return started, ledger


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _older_paths(directory: Path, kinds: Kinds) -> Iterator[Path]:
    for file in sorted({one.file for one in (*_OF_ALL, _AT_ROOT)}):
        yield directory / file
    for kind in kinds:
        yield _path(directory, kind.prefix, _INCIDENTS)
        yield _path(directory, kind.prefix, _MINUTES)
        if kind.label_file:
            yield directory / kind.label_file


def _path(directory: Path, prefix: str, name: str) -> Path:
    at_root = prefix == ROOT_KIND.prefix
    return directory / (name if at_root else f"{prefix}-{name}")


class _OlderFiles(NamedTuple):
    """Copies older files into the ledger.

    The `known` files must exist and be undamaged.
    """

    directory: Path
    known: Collection[str]
    kinds: Kinds
    connection: sqlite3.Connection

    def copy(self, committed: int, first_sequence: int) -> None:
        paths = {
            kind.prefix: _path(self.directory, kind.prefix, _INCIDENTS)
            for kind in self.kinds
            if kind.has_findings
        }
        newest = [first_sequence - 1]
        for path in paths.values():
            with self._opened(path) as old:
                if _has(old, "outbox"):
                    newest += [number for (number,) in old.execute(_SEQUENCE)]
        self.connection.execute(
            "INSERT INTO sqlite_sequence VALUES ('outbox', ?)", (max(newest),)
        )
        for prefix, path in paths.items():
            for one in _OF_KIND:
                self._rows(_path(self.directory, prefix, one.file), one, (prefix,))
            self._outbox(path, prefix)
        path = self.directory / _AT_ROOT.file
        self._rows(path, _AT_ROOT, (ROOT_KIND.prefix,))
        for one in _OF_ALL:
            self._rows(self.directory / one.file, one, committed=committed)
        for kind in self.kinds:
            path = self.directory / kind.label_file
            if kind.label_file and path.exists():
                self.connection.execute(
                    "INSERT INTO labels VALUES (?, ?)",
                    (kind.prefix, json.dumps(read_labels(path))),
                )

    def _rows(
        self, path: Path, one: _Copy, first: tuple[str, ...] = (), committed: int = 0
    ) -> None:
        with self._opened(path) as old:
            if not _has(old, one.table):
                return
            rows = old.execute(
                f"SELECT {one.columns} FROM {one.table} {one.rest}",  # noqa: S608 - ours
                {"committed": committed},
            )
            values = ", ".join("?" * (len(first) + one.columns.count(",") + 1))
            self.connection.executemany(
                f"INSERT INTO {one.table} VALUES ({values})",  # noqa: S608 - ours
                (first + row for row in rows),
            )

    def _outbox(self, path: Path, prefix: str) -> None:
        with self._opened(path) as old:
            if _has(old, "outbox"):
                ((before,),) = self.connection.execute(_SEQUENCE)
                rows: Any = old.execute(
                    "SELECT channel, finding, tap_hole FROM outbox ORDER BY told"
                )
                delivered = old.execute(
                    "SELECT destination, (SELECT count(*) FROM outbox "
                    "WHERE outbox.told <= delivered.told) FROM delivered"
                ).fetchall()
                self.connection.executemany(
                    "INSERT INTO delivered VALUES (?, ?, ?)",
                    [(prefix, to, before + count) for to, count in delivered],
                )
            elif _has(old, "incidents"):
                # Version 0.3.0 had no outbox. So that the history gets the incidents of
                # this version, all of them are added to the outbox.
                rows = old.execute(
                    "SELECT channel, incident, tap_hole FROM incidents "
                    "ORDER BY found_ms, channel, kind, message_id"
                )
            else:
                return
            self.connection.executemany(
                "INSERT INTO outbox (prefix, name, finding, tap_hole) "
                "VALUES (?, ?, ?, ?)",
                ((prefix, *row) for row in rows),
            )

    @contextmanager
    def _opened(self, path: Path) -> Iterator[sqlite3.Connection]:
        place = path if path.exists() else Path(":memory:")
        with told_damage(path), closing(sqlite3.connect(place)) as connection:
            if path.name in self.known:
                check_database(connection, path)
            yield connection


def read_labels(path: Path) -> list[str]:
    """Return the names in an older release's label file, in the order of labelling."""
    remedy = do_without(path)
    data = read_file(path, remedy)
    with decoding(path, remedy):
        return msgspec.json.decode(data, type=list[str])


def _has(connection: sqlite3.Connection, table: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    return row is not None
