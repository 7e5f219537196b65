"""Turns a chunk of records into one row per view: the view's key and an encoded digest.

The Python process that reads from Kafka makes the rows, so that whole frames never
reach the JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from sds_core.observer.dead_letter_view import (
    DEAD_LETTERS,
    DeadLetter,
    DeadLetterDigest,
)
from sds_core.observer.judgement import Dead, FrameRecord, Heartbeat, judge
from sds_core.observer.kinds import AnyProtocol, Digester, FrameReader
from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.record import (
    EARLIEST_MS,
    Arrival,
    BadHeader,
    RawRecord,
    is_future,
    read_headers,
)
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapDigester

CHUNK_RECORDS = 10_000
CHUNK_BYTES = 32 * 1024 * 1024
"""A chunk with this many records, or with records of this total size in bytes, is full.

The limits save memory of the reader. Smaller limits would make digests less compact,
because fewer ids and filters would repeat within a chunk.
"""

_TAP_BYTES = 1_000
"""Approximate memory of a chunk for each tap, bytes, without two copies of its name."""

_BY_NAME = by_name(PROTOCOLS)

CLOCK_KEY = "clock:"
"""Key of the row that carries a batch's admission time T; the row has no view."""

FORGET = b"forget"
"""Value of `DigestRow.digest` that requests that the view is forgotten.

The view's records of the same batch are processed afterwards.
"""

REVIEW = b"review"
"""Value of `DigestRow.digest` that requests that the view's deadline is set again.

The view first advances to the admission time T of the batch.
"""


class DigestRow(NamedTuple):
    """A row for the JVM: the key of a view (`Kind.key`) and the view's encoded digest.

    `digest` may be a request instead, `FORGET` or `REVIEW`. No digest equals a request,
    because every digest is an encoded array.
    """

    key: str
    digest: bytes


class Chunk:
    """Collects the records of one partition, and turns them into rows.

    Args:
        clock_ms: Maximum record time of the partition before the chunk, or the
            admission time T of the previous batch, whichever is later, Unix ms.
        protocols: See `protocols.by_name`.
    """

    def __init__(
        self,
        partition: int,
        clock_ms: int,
        protocols: Mapping[str, AnyProtocol] = _BY_NAME,
    ) -> None:
        self._partition = partition
        self._protocols = protocols
        self.clock_ms = clock_ms
        self._clear()

    @property
    def is_full(self) -> bool:
        """Whether the caller should call `take_rows` before it adds more records."""
        return self._records >= CHUNK_RECORDS or self._bytes >= CHUNK_BYTES

    def add(self, record: RawRecord, written_ms: int) -> None:
        """Judge one record, and add it to the digests of the views that it concerns.

        `written_ms` is the latest possible time at which the record was written, Unix
        ms.
        """
        self._records += 1
        if record.timestamp_ms < EARLIEST_MS:
            # A record can have any time, and -1 if its writer gave it none. If the time
            # were -2**63, a duration since that time would overflow the sums in a
            # view's state.
            record = record._replace(timestamp_ms=EARLIEST_MS)
        kept = self._add_unread(record, written_ms)
        if not kept:
            self._add_judged(record, written_ms)
        self._bytes += (
            min(kept, len(record.value or b"")) if kept else record.size_bytes
        )

    def _add_unread(self, record: RawRecord, written_ms: int) -> int:
        """Add a record without decoding its frame, if possible.

        Returns the approximate memory that the record needs, bytes; 0 if the record was
        not added, and must be judged instead.
        """
        _, offset, time_ms, key, value, raw_headers = record
        if not value or is_future(time_ms, written_ms):
            return 0
        try:
            headers = read_headers(raw_headers, self._protocols)
        except BadHeader:
            return 0
        observer, seq, waku_hash, waku_hash_bytes, is_heartbeat, protocol = headers
        reader = self._readers.get(protocol)
        if reader is None or is_heartbeat:
            return 0
        clock_ms = max(self.clock_ms, time_ms)
        arrival = Arrival(
            offset, time_ms, clock_ms, observer, seq, waku_hash, waku_hash_bytes
        )
        kept = reader.add(key, value, arrival)
        if not kept:
            return 0
        self.clock_ms = clock_ms
        if observer:
            self._tap(observer).add_frame(clock_ms, seq, time_ms)
        return kept

    def _add_judged(self, record: RawRecord, written_ms: int) -> None:
        judged = judge(record, written_ms, self._protocols)
        if type(judged) is Dead:
            letter = DeadLetter(record.partition, record.offset, judged.reason)
            self._letters.append(letter)
            if judged.is_future:
                return
        self.clock_ms = max(self.clock_ms, record.timestamp_ms)
        headers = judged.headers
        if headers.observer:
            tap = self._tap(headers.observer)
            if type(judged) is Heartbeat:
                tap.add_heartbeat(self.clock_ms, headers.seq, record.timestamp_ms)
            else:
                tap.add_frame(self.clock_ms, headers.seq, record.timestamp_ms)
        if type(judged) is FrameRecord:
            self._add_frame(record, judged)

    def take_rows(self) -> Iterator[DigestRow]:
        """Return the rows of the collected records, and empty the chunk."""
        for protocol, digesters in self._views.items():
            for name, digester in digesters.items():
                key = self._protocols[protocol].kind.key(name)
                yield _row(key, digester.finish())
        for observer, tap in self._taps.items():
            yield _row(TAPS.key(observer), tap.finish())
        if self._letters:
            key = DEAD_LETTERS.key(str(self._partition))
            yield _row(key, DeadLetterDigest(self._letters))
        self._clear()

    def _clear(self) -> None:
        self._records = self._bytes = 0
        # Name of a protocol -> name of a view -> digester for the view.
        self._views: dict[str, dict[str, Digester[Any, Any]]] = {
            name: {} for name in self._protocols
        }
        self._taps: dict[str, TapDigester] = {}
        self._letters: list[DeadLetter] = []
        self._readers: dict[str, FrameReader] = {
            name: protocol.new_reader(self._partition, self._views[name])
            for name, protocol in self._protocols.items()
            if protocol.new_reader is not None
        }

    def _tap(self, observer: str) -> TapDigester:
        tap = self._taps.get(observer)
        if tap is None:
            tap = self._taps[observer] = TapDigester()
            self._bytes += _TAP_BYTES + 2 * len(observer)
        return tap

    def _add_frame(self, record: RawRecord, judged: FrameRecord) -> None:
        headers, protocol, frame = judged
        digesters = self._views[protocol.name]
        if protocol.split is None:
            parts: Iterable[tuple[str, Any]] = ((protocol.view_name(frame), frame),)
        else:
            parts = protocol.split(frame)
        arrival = Arrival(
            record.offset,
            record.timestamp_ms,
            self.clock_ms,
            headers.observer,
            headers.seq,
            headers.waku_hash,
            headers.waku_hash_bytes,
        )
        for name, part in parts:
            digester = digesters.get(name)
            if digester is None:
                digester = digesters[name] = protocol.new_digester(self._partition)
            digester.add(part, record.value or b"", arrival)


def _row(key: str, digest: Any) -> DigestRow:
    return DigestRow(key, msgspec.msgpack.encode(digest))
