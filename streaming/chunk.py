"""A chunk of records becomes one row per channel, tap and partition of dead letters.

Runs inside the reader, so that whole frames never cross into the JVM.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from sds_core.observer.dead_letter_view import DeadLetter, DeadLetterDigest
from sds_core.observer.record import (
    BadHeader,
    RawRecord,
    TapHeaders,
    is_future,
    read_headers,
    read_tap,
)
from sds_core.observer.sds.digest import Arrival, ChannelDigester
from sds_core.observer.tap_view import TapDigest
from sds_core.wire import MAX_VALUE_BYTES, Frame, Reason, UndecodableFrame, decode
from streaming.keys import KeyKind, make_key

CHUNK_RECORDS = 5_000
CHUNK_BYTES = 32 * 1024 * 1024
"""What one chunk holds at most: bounds the reader's memory, and is long enough for
ids and filters to repeat."""


class DigestRow(NamedTuple):
    """What crosses into the JVM: the key of a view and its packed digest."""

    key: str
    digest: bytes


class _TapColumns(NamedTuple):
    """Times and numbers, of frames and of heartbeats."""

    times: array[int]
    seqs: array[int]
    heartbeat_times: array[int]
    heartbeat_seqs: array[int]


class Chunk:
    """Collects the records of one partition until it is time to pass them on.

    Args:
        partition: Kafka partition.
        clock_ms: Greatest record time of the partition before the chunk, or the
            admission time, whichever is later.
        admitted_ms: Wall time of the batch's admission.
    """

    def __init__(self, partition: int, clock_ms: int, admitted_ms: int) -> None:
        self._partition = partition
        self._admitted_ms = admitted_ms
        self.clock_ms = clock_ms
        self._clear()

    @property
    def is_full(self) -> bool:
        """Whether the chunk should be passed on now."""
        return self._records >= CHUNK_RECORDS or self._bytes >= CHUNK_BYTES

    def add(self, record: RawRecord) -> None:
        """Decode one record; whatever is wrong with it makes it a dead letter."""
        self._records += 1
        self._bytes += len(record.value or b"")
        future = is_future(record.timestamp_ms, self._admitted_ms)
        if not future:
            self.clock_ms = max(self.clock_ms, record.timestamp_ms)
        headers, bad_header = _headers(record)
        if headers.observer and not future:
            tap = self._taps.get(headers.observer)
            if tap is None:
                tap = _TapColumns(*(array("q") for _ in _TapColumns._fields))
                self._taps[headers.observer] = tap
            if headers.is_heartbeat:
                tap.heartbeat_times.append(self.clock_ms)
                tap.heartbeat_seqs.append(headers.seq)
            else:
                tap.times.append(self.clock_ms)
                tap.seqs.append(headers.seq)
        if headers.is_heartbeat:
            if future:
                self._dead(record, Reason.FUTURE_TIMESTAMP)
            return
        value = record.value or b""
        if bad_header and len(value) <= MAX_VALUE_BYTES:
            # What its value is meant to be is not known either.
            self._dead(record, Reason.BAD_HEADER)
            return
        try:
            frame = decode(value)
        except UndecodableFrame as error:
            self._dead(record, error.reason)
            return
        channel = frame.channel_id
        if record.key is not None and record.key != channel.encode():
            self._dead(record, Reason.CHANNEL_MISMATCH)
        elif future:
            self._dead(record, Reason.FUTURE_TIMESTAMP)
        else:
            self._add_frame(record, frame, headers)

    def take_rows(self) -> Iterator[DigestRow]:
        """The rows of what was collected; the chunk is empty again."""
        for channel, digester in self._channels.items():
            key = make_key(KeyKind.CHANNEL, channel)
            yield DigestRow(key, digester.finish().to_bytes())
        for observer, tap in self._taps.items():
            digest = TapDigest(*(column.tobytes() for column in tap))
            key = make_key(KeyKind.TAP, observer)
            yield DigestRow(key, msgspec.msgpack.encode(digest))
        if self._letters:
            key = make_key(KeyKind.DEAD_LETTERS, str(self._partition))
            yield DigestRow(
                key, msgspec.msgpack.encode(DeadLetterDigest(self._letters))
            )
        self._clear()

    def _clear(self) -> None:
        self._records = self._bytes = 0
        self._channels: dict[str, ChannelDigester] = {}
        self._taps: dict[str, _TapColumns] = {}
        self._letters: list[DeadLetter] = []

    def _add_frame(self, record: RawRecord, frame: Frame, headers: TapHeaders) -> None:
        digester = self._channels.get(frame.channel_id)
        if digester is None:
            digester = self._channels[frame.channel_id] = ChannelDigester(
                self._partition
            )
        arrival = Arrival(
            record.offset,
            record.timestamp_ms,
            self.clock_ms,
            headers.observer,
            headers.seq,
            headers.waku_hash,
            headers.waku_hash_bytes,
        )
        digester.add(frame, record.value or b"", arrival)

    def _dead(self, record: RawRecord, reason: Reason) -> None:
        self._letters.append(DeadLetter(record.partition, record.offset, reason.value))


def _headers(record: RawRecord) -> tuple[TapHeaders, bool]:
    """The record's headers, and whether they are bad."""
    try:
        return read_headers(record.headers), False
    except BadHeader:
        return read_tap(record.headers), True
