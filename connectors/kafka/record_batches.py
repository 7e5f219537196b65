"""Lets kafka-python read record batches with any codec and any header name.

If one header name is not UTF-8, kafka-python refuses the whole batch. For codecs other
than gzip, kafka-python needs further packages. This module decompresses these codecs
with pyarrow, which the job needs anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import decode_varint

from sds_core.observer.record import header_name, header_name_bytes

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_SIZE_BYTES = 4


class HeaderName(str):
    """A name from `header_name`, which kafka-python writes as the original bytes."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """Return the name's bytes; the arguments have no effect."""
        return header_name_bytes(self)


def read_any_batch(consumer: KafkaConsumer) -> None:
    """Let a consumer read all codecs, and header names that are not UTF-8.

    If a name in a record is not UTF-8, all names in this record become a `HeaderName`.
    """
    consumer._fetcher.PartitionRecords = _PartitionRecords  # noqa: SLF001 - no option


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    _buffer: bytearray
    _pos: int
    _decompressed: bool

    def _maybe_uncompress(self) -> None:
        unpack = _UNPACK.get(self.compression_type)
        if unpack is None:
            super()._maybe_uncompress()
        elif not self._decompressed:
            self._buffer = bytearray(unpack(bytes(self._buffer[self._pos :])))
            self._pos = 0
            self._decompressed = True

    def _read_msg(self) -> DefaultRecord:
        try:
            return super()._read_msg()
        except UnicodeDecodeError:
            return self._read_with_any_names()

    def _read_with_any_names(self) -> DefaultRecord:
        buffer = self._buffer
        length, begin = decode_varint(buffer, self._pos)
        _attributes, pos = decode_varint(buffer, begin)
        time_delta, pos = decode_varint(buffer, pos)
        offset_delta, pos = decode_varint(buffer, pos)
        key, pos = _read_bytes(buffer, pos)
        value, pos = _read_bytes(buffer, pos)
        count, pos = decode_varint(buffer, pos)
        headers = []
        for _ in range(count):
            name, pos = _read_bytes(buffer, pos)
            content, pos = _read_bytes(buffer, pos)
            headers.append((HeaderName(header_name(name or b"")), content))
        if pos - begin != length:
            message = f"the record has {pos - begin} bytes, not {length}"
            raise CorruptRecordError(message)
        self._pos = pos
        timestamp = self.first_timestamp + time_delta
        if self.timestamp_type == self.LOG_APPEND_TIME:
            timestamp = self.max_timestamp
        return DefaultRecord(
            length,
            self.base_offset + offset_delta,
            timestamp,
            self.timestamp_type,
            key,
            value,
            headers,
        )


class _Records(MemoryRecords):  # type: ignore[misc]
    def next_batch(self, *arguments: Any) -> Any:
        """Return the next batch; None after the last one."""
        batch = super().next_batch(*arguments)
        if isinstance(batch, DefaultRecordBatch):
            return _Batch(batch._buffer)  # noqa: SLF001 - no public name for it
        return batch


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def __init__(
        self, fetch_offset: int, tp: Any, records: MemoryRecords, **options: Any
    ) -> None:
        readable = _Records(records._buffer)  # noqa: SLF001 - no public name for it
        super().__init__(fetch_offset, tp, readable, **options)


def _read_bytes(buffer: bytearray, pos: int) -> tuple[bytes | None, int]:
    """Read a length and that many bytes; return the bytes and the next position.

    If the length is negative, return None instead of the bytes.
    """
    length, pos = decode_varint(buffer, pos)
    if length < 0:
        return None, pos
    return bytes(buffer[pos : pos + length]), pos + length


def _unpack_stream(codec: str) -> Callable[[bytes], bytes]:
    def unpack(packed: bytes) -> bytes:
        import pyarrow as pa

        with pa.CompressedInputStream(pa.BufferReader(packed), codec) as stream:
            return bytes(stream.read())

    return unpack


def _unpack_snappy(packed: bytes) -> bytes:
    """Decompress Snappy data: one block, or blocks of Java's library xerial."""
    if not packed.startswith(_XERIAL_MAGIC):
        return _unpack_snappy_block(packed)
    blocks = []
    pos = _XERIAL_HEADER_BYTES
    while pos < len(packed):
        size = int.from_bytes(packed[pos : pos + _SIZE_BYTES])
        pos += _SIZE_BYTES
        blocks.append(_unpack_snappy_block(packed[pos : pos + size]))
        pos += size
    return b"".join(blocks)


def _unpack_snappy_block(packed: bytes) -> bytes:
    import pyarrow as pa

    # A Snappy block begins with its size after decompression: 7 bits per byte, lowest
    # bits first.
    size = shift = 0
    for byte in packed:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return bytes(pa.decompress(packed, size, codec="snappy", asbytes=True))


_UNPACK: Mapping[int, Callable[[bytes], bytes]] = {
    DefaultRecordBatch.CODEC_SNAPPY: _unpack_snappy,
    DefaultRecordBatch.CODEC_LZ4: _unpack_stream("lz4"),
    DefaultRecordBatch.CODEC_ZSTD: _unpack_stream("zstd"),
}
