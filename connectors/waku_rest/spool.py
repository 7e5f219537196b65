"""The state of a mirror on disk: waiting records, and hashes of received messages.

A node deletes each page that it sends, so the mirror stores the page before it reads
the next page. One transaction stores the page with its sequence numbers and hashes. A
mirror that is killed loses at most the page that it was reading. If the mirror writes a
record to Kafka twice, both copies have the same `seq`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from connectors.kafka.producer import Headers
from connectors.storage.disk import (
    REMEDIES,
    cause_of,
    error_of_disk,
    locked,
    primary_code,
)
from sds_core.mirror.figures import Loss

# `sent` has the latest sender's time of the messages whose hashes have the same `at_ms`
# in `seen`. The time is not a third column of `seen`, because 1.0.0 cannot add rows to
# a table `seen` with three columns.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS mirror (
    observer TEXT NOT NULL,
    last_seq INTEGER NOT NULL,
    is_closed INTEGER NOT NULL,
    forgotten_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS spool (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    key BLOB,
    value BLOB NOT NULL,
    headers BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS seen (
    hash BLOB PRIMARY KEY,
    at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_by_time ON seen (at_ms);
CREATE TABLE IF NOT EXISTS sent (
    at_ms INTEGER PRIMARY KEY,
    latest_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS swept (
    node TEXT PRIMARY KEY,
    from_ms INTEGER NOT NULL,
    up_to_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS loss (
    cause TEXT PRIMARY KEY,
    number INTEGER NOT NULL
) WITHOUT ROWID;
"""

_SET_LAST_SEQ = "UPDATE mirror SET last_seq = ?"

_MAX_AHEAD_MS = 86_400_000
"""How far a sender's time may be ahead of the mirror's clock, ms, to count for how long
the message's hash is kept.

A clock that shows local time as UTC is wrong by at most 14 hours. Without a limit, a
sender whose times are years ahead could fill the disk with hashes.
"""

_UNKNOWN_AHEAD_MS = 60_000
"""How far a sender's time may be ahead of the mirror's clock, ms, if 1.0.0 stored or
deleted the hash, without the sender's time."""

_MAX_FAST_MS = 2_592_000_000
"""How fast the clock of 1.0.0 may have been, ms. If its state has a still later time,
the present clock is probably wrong instead. For example, it is not set after a boot,
and shows 1970. Without this limit, the mirror would write stored messages again."""

_LATEST_MS = 2**63 - 1
"""Latest time that a state can have, Unix ms."""

_ROW_BYTES = 64
"""Approximate size of a spooled record, bytes, without its value and headers."""

_QUESTION = 500
"""Maximum number of hashes in one query. Some builds of SQLite limit the number of
parameters."""


class Incoming(NamedTuple):
    """A record to add to the spool, without the headers `observer` and `seq`.

    `sent_ms` is the sender's time, Unix ms.
    """

    message_hash: bytes
    key: bytes | None
    value: bytes
    headers: Headers
    sent_ms: int


class Spooled(NamedTuple):
    """A record that waits for Kafka; a heartbeat has no value and no headers.

    Attributes:
        id: Position in the order in which records are written to Kafka.
        at_ms: Record time, Unix ms.
        seq: Sequence number of the frame. For a heartbeat, the last sequence number
            that was assigned before it.
        key: Channel id; None for a heartbeat, or if the value is not a frame.
        headers: Headers without `observer` and `seq`.
    """

    id: int
    at_ms: int
    seq: int
    key: bytes | None
    value: bytes
    headers: Headers

    @property
    def is_heartbeat(self) -> bool:
        """Whether the record is a heartbeat."""
        return not self.headers


class Swept(NamedTuple):
    """A time span, Unix ms; a node's store was read for messages sent in this span."""

    from_ms: int
    up_to_ms: int


class StateUnusable(OSError):
    """A mirror cannot use its state directory; the error's message has the remedy."""


class Spool:
    """State directory of one mirror; only one thread may use it at a time.

    Args:
        directory: The directory; created if it is missing.
        observer: Tap id that the directory must have. If None, the spool uses the tap
            id that the directory has, or `new_observer` if the directory is new.
        new_observer: Tap id for a new directory if `observer` is None.
        now_ms: Wall time, Unix ms. If 1.0.0 deleted hashes while the clock was fast,
            the state of 1.0.0 has a later `forgotten_ms`, which is then replaced.

    Attributes:
        observer: Tap id.
        last_seq: The last sequence number that was assigned or skipped.
        count: Number of waiting records, including heartbeats.
        size_bytes: Size of the waiting records, bytes.
        forgotten_ms: Hashes of messages that were sent before this time, Unix ms, may
            have been deleted; hashes of later messages have not been deleted.
        losses: Number of probable losses by cause, since the directory was created.

    Raises:
        StateUnusable: Another mirror uses the directory, or the directory belongs to
            another tap, is damaged or is not writable.
        OSError: The disk is full, or fails.
        sqlite3.Error: Another program has locked the database.
    """

    def __init__(
        self,
        directory: Path,
        observer: str | None,
        new_observer: str,
        now_ms: int = _LATEST_MS,
    ) -> None:
        with ExitStack() as opened:
            try:
                opened.enter_context(locked(directory / "lock"))
            except BlockingIOError:
                message = (
                    f"another mirror runs on {directory}: end that mirror, or use "
                    "another --state"
                )
                raise StateUnusable(message) from None
            except OSError as error:
                if error.errno in REMEDIES:
                    raise
                raise _unusable(directory, error.strerror or str(error)) from error
            try:
                self._path = directory / "mirror.sqlite"
                self._database = sqlite3.connect(self._path, check_same_thread=False)
                opened.callback(self._database.close)
                self._open(observer or new_observer, now_ms)
            except sqlite3.Error as error:
                if (failed := error_of_disk(error, self._path)) is not None:
                    raise failed from error
                if primary_code(error) == sqlite3.SQLITE_BUSY:
                    raise
                raise _unusable(directory, error) from error
            if observer not in (None, self.observer):
                message = (
                    f"{directory} belongs to observer {self.observer}, not "
                    f"{observer}: use another --state, or omit --observer"
                )
                raise StateUnusable(message)
            self._opened = opened.pop_all()

    def _open(self, new_observer: str, now_ms: int) -> None:
        database = self._database
        database.execute("PRAGMA journal_mode=WAL")
        # With FULL, a committed page survives a power failure.
        database.execute("PRAGMA synchronous=FULL")
        (had_senders_times,) = database.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = 'sent'"
        ).fetchone()
        database.executescript(_SCHEMA)
        with database:
            if not had_senders_times:
                # In a state of 1.0.0, `forgotten_ms` is a time of the mirror's clock.
                database.execute(
                    "UPDATE mirror SET forgotten_ms = ? + "
                    "CASE WHEN forgotten_ms - ? < ? THEN min(forgotten_ms, ?) "
                    "ELSE forgotten_ms END WHERE forgotten_ms > 0",
                    (_UNKNOWN_AHEAD_MS, now_ms, _MAX_FAST_MS, now_ms),
                )
            database.execute(
                "INSERT INTO mirror SELECT ?, 0, TRUE, 0 "
                "WHERE NOT EXISTS (SELECT * FROM mirror)",
                (new_observer,),
            )
        self.observer: str
        self.last_seq: int
        self.forgotten_ms: int
        row = database.execute(
            "SELECT observer, last_seq, forgotten_ms FROM mirror"
        ).fetchone()
        with self._told_damage():
            self.observer, self.last_seq, self.forgotten_ms = msgspec.convert(
                row, tuple[str, int, int]
            )
        self.count: int
        self.size_bytes: int
        self.count, self.size_bytes = database.execute(
            "SELECT count(*), coalesce(sum(length(value) + length(headers) + ?), 0) "
            "FROM spool",
            (_ROW_BYTES,),
        ).fetchone()
        rows = database.execute("SELECT cause, number FROM loss").fetchall()
        with self._told_damage():
            numbers = dict(msgspec.convert(rows, list[tuple[str, int]]))
        self.losses = {cause: numbers.get(cause.value, 0) for cause in Loss}

    @contextmanager
    def _told_damage(self) -> Iterator[None]:
        try:
            yield
        except (msgspec.DecodeError, TypeError) as error:
            # msgspec raises `TypeError` if a blob is a number or text.
            reason = f"a value in {self._path.name} is damaged: {error}"
            raise _unusable(self._path.parent, reason) from error

    def begin(self) -> bool:
        """Mark the spool as open; return whether it was already marked as open.

        If it was already marked, the last mirror was killed or ended with an error,
        before it called `end`.
        """
        with self._database as database:
            (was_closed,) = database.execute("SELECT is_closed FROM mirror").fetchone()
            database.execute("UPDATE mirror SET is_closed = FALSE")
        return not was_closed

    def skip_number(self, cause: Loss) -> None:
        """Count a probable loss, and skip one sequence number.

        The skipped number shows the loss as a sequence gap.
        """
        with self._database as database:
            database.execute(_SET_LAST_SEQ, (self.last_seq + 1,))
            database.execute(
                "INSERT OR REPLACE INTO loss VALUES (?, ?)",
                (cause.value, self.losses[cause] + 1),
            )
        self.last_seq += 1
        self.losses[cause] += 1

    def accept(
        self,
        messages: Sequence[Incoming],
        at_ms: int,
        unwanted: Mapping[bytes, int] = MappingProxyType({}),
    ) -> int:
        """Store messages durably unless they are known; return how many are stored.

        `at_ms` is the record time, Unix ms. `unwanted` has the hashes and sender's
        times, Unix ms, of messages that are not selected. These messages become known,
        but get no record.
        """
        known = self.known(message.message_hash for message in messages)
        new: dict[bytes, Incoming] = {}
        for message in messages:
            if message.message_hash not in known:
                new.setdefault(message.message_hash, message)
        if not new and not unwanted:
            return 0
        rows = [
            (at_ms, seq, one.key, one.value, msgspec.msgpack.encode(one.headers))
            for seq, one in enumerate(new.values(), self.last_seq + 1)
        ]
        last_seq = self.last_seq + len(rows)
        sent = {**{key: one.sent_ms for key, one in new.items()}, **unwanted}
        # A hash is kept by the later of both times. Stores are read by the sender's
        # time, which is the later one if the mirror's clock is slow. A node can deliver
        # a message long after this time, and another node soon after the first node.
        kept = [
            (key, max(at_ms, min(sent_ms, at_ms + _MAX_AHEAD_MS)))
            for key, sent_ms in sent.items()
        ]
        with self._database as database:
            database.executemany(
                "INSERT INTO spool (at_ms, seq, key, value, headers) "
                "VALUES (?, ?, ?, ?, ?)",
                rows,
            )
            database.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?)", kept)
            database.executemany(
                "INSERT INTO sent VALUES (?, ?) ON CONFLICT (at_ms) DO "
                "UPDATE SET latest_ms = max(latest_ms, excluded.latest_ms)",
                [(kept_ms, min(sent[key], kept_ms)) for key, kept_ms in kept],
            )
            database.execute(_SET_LAST_SEQ, (last_seq,))
        self.last_seq = last_seq
        self.count += len(rows)
        self.size_bytes += sum(len(row[3]) + len(row[4]) + _ROW_BYTES for row in rows)
        return len(rows)

    def beat(self, at_ms: int) -> None:
        """Spool a heartbeat after all frames that are already in the spool."""
        headers = msgspec.msgpack.encode(())
        with self._database as database:
            database.execute(
                "INSERT INTO spool (at_ms, seq, value, headers) VALUES (?, ?, ?, ?)",
                (at_ms, self.last_seq, b"", headers),
            )
        self.count += 1
        self.size_bytes += len(headers) + _ROW_BYTES

    def known(self, hashes: Iterable[bytes]) -> set[bytes]:
        """Return those of the given hashes that `accept` has stored."""
        wanted = list(hashes)
        found: set[bytes] = set()
        for first in range(0, len(wanted), _QUESTION):
            some = wanted[first : first + _QUESTION]
            marks = ",".join("?" * len(some))
            rows = self._database.execute(
                f"SELECT hash FROM seen WHERE hash IN ({marks})",  # noqa: S608 - marks
                some,
            )
            found.update(key for (key,) in rows)
        return found

    def pending(self, limit: int) -> list[Spooled]:
        """Return the `limit` oldest records, in the order in which to write them.

        Raises:
            StateUnusable: A stored value is damaged.
        """
        rows = self._database.execute(
            "SELECT id, at_ms, seq, key, value, headers FROM spool ORDER BY id LIMIT ?",
            (limit,),
        )
        with self._told_damage():
            return [
                # If `bytes` is not built in, msgspec decodes text as Base64.
                msgspec.convert(
                    (*columns, msgspec.msgpack.decode(packed, type=Headers)),
                    Spooled,
                    builtin_types=(bytes,),
                )
                for *columns, packed in rows
            ]

    def written(self, records: Sequence[Spooled]) -> None:
        """Delete records that Kafka has acknowledged or permanently refused.

        `records` must be the oldest records of the spool, in order.
        """
        with self._database as database:
            freed = database.execute(
                "DELETE FROM spool WHERE id <= ? "
                "RETURNING length(value) + length(headers) + ?",
                (records[-1].id, _ROW_BYTES),
            ).fetchall()
        self.count -= len(freed)
        self.size_bytes -= sum(size for (size,) in freed)

    def swept(self, node: str) -> Swept | None:
        """Return the time span for which a node's store was read; None if unknown."""
        row = self._database.execute(
            "SELECT from_ms, up_to_ms FROM swept WHERE node = ?", (node,)
        ).fetchone()
        return row and Swept(*row)

    def set_swept(self, node: str, swept: Swept) -> None:
        """Record the time span for which a node's store was read."""
        with self._database as database:
            database.execute(
                "INSERT OR REPLACE INTO swept VALUES (?, ?, ?)", (node, *swept)
            )

    def forget_before(self, at_ms: int) -> None:
        """Delete the hashes of messages that were sent and accepted before `at_ms`.

        `at_ms` is a Unix time in ms.
        """
        forgotten_ms = self.forgotten_ms
        with self._database as database:
            # `at_ms` may come from a fast clock. `forgotten_ms` therefore depends only
            # on the times of senders.
            (latest_ms,) = database.execute(
                "SELECT max(coalesce(latest_ms, at_ms + ?)) "
                "FROM seen LEFT JOIN sent USING (at_ms) WHERE at_ms < ?",
                (_UNKNOWN_AHEAD_MS, at_ms),
            ).fetchone()
            database.execute("DELETE FROM sent WHERE at_ms < ?", (at_ms,))
            if latest_ms is not None:
                forgotten_ms = max(forgotten_ms, latest_ms + 1)
                database.execute("DELETE FROM seen WHERE at_ms < ?", (at_ms,))
                database.execute("UPDATE mirror SET forgotten_ms = ?", (forgotten_ms,))
        self.forgotten_ms = forgotten_ms

    def failure(self, error: BaseException) -> str:
        """Describe an error in one line.

        For an error of SQLite, the line has the file, the reason, and the remedy if it
        is known.
        """
        if isinstance(error, sqlite3.Error):
            return f"{self._path}: {cause_of(error, self._path)}"
        return str(error)

    def end(self) -> None:
        """Mark the spool as closed: the mirror has stored all that it has read."""
        with self._database as database:
            database.execute("UPDATE mirror SET is_closed = TRUE")

    def close(self) -> None:
        """Close the files."""
        self._opened.close()


def _unusable(directory: Path, reason: object) -> StateUnusable:
    return StateUnusable(
        f"--state {directory} cannot be used ({reason}): use a directory of your own"
    )


@contextmanager
def open_spool(
    directory: Path,
    observer: str | None,
    new_observer: str,
    now_ms: int = _LATEST_MS,
) -> Iterator[Spool]:
    """Open a spool, and close it at the end of the `with` block; see `Spool`."""
    with closing(Spool(directory, observer, new_observer, now_ms)) as spool:
        yield spool
