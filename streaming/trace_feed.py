"""Turns records into digests for a trace, in the same way as the job's reader does."""

from __future__ import annotations

from sds_core.observer.ahead import Foresight
from sds_core.observer.record import DEFAULT_PROTOCOL, RawRecord
from sds_core.trace.trace import Trace, TraceReader
from streaming.chunk import Chunk

_DEFAULT = DEFAULT_PROTOCOL.encode()

_PASSED_RECORDS = 500
"""Maximum number of records that the feed collects before the `TraceReader` gets their
digests.

With default filters, the records take 10 MB.
"""


class TraceFeed:
    """Processes the records of all partitions that may contain the traced channel.

    The feed needs memory for `_PASSED_RECORDS` records, even if it processes many more.

    Args:
        reader: Gets the digests.
        protocol: Name of the channel's protocol.
        key: Key of all records of the channel; None if the records may have several
            keys.
        admitted_ms: Wall time at which the records are read, Unix ms. Records far ahead
            of it are from the future.
    """

    def __init__(
        self,
        reader: TraceReader,
        protocol: str,
        key: bytes | None,
        admitted_ms: int,
    ) -> None:
        self._reader = reader
        self._protocol = protocol.encode()
        self._key = key
        self._admitted_ms = admitted_ms
        self._chunks: dict[int, Chunk] = {}
        self._foresights: dict[int, Foresight[RawRecord]] = {}
        self._records = self._waiting = 0
        self._from_ms: int | None = None
        self._to_ms: int | None = None

    def add(self, record: RawRecord) -> None:
        """Add the next record of a partition."""
        partition = record.partition
        if partition not in self._chunks:
            self._chunks[partition] = Chunk(partition, 0)
        if partition not in self._foresights:
            clock_ms = self._chunks[partition].clock_ms
            self._foresights[partition] = Foresight(clock_ms, self._admitted_ms)
        for settled, written_ms in self._foresights[partition].add(record):
            self._add(settled, written_ms)

    def admit(self, wall_ms: int) -> None:
        """Set the wall time at which the next records are read, Unix ms.

        The caller must have called `traces` after the last `add`, because `admit` drops
        records that still wait for later records.
        """
        self._admitted_ms = wall_ms
        self._foresights.clear()

    def traces(self, clock_ms: int = 0) -> list[Trace]:
        """Return the traces that follow from all records added so far.

        The caller must have added all records up to `clock_ms`, event time in Unix ms.
        """
        for foresight in self._foresights.values():
            for settled, written_ms in foresight.finish():
                self._add(settled, written_ms)
        self._pass_on()
        to_ms = max(clock_ms, self._to_ms or 0)
        self._reader.take((), to_ms)
        return self._reader.traces(self._records, self._from_ms, to_ms or None)

    def _add(self, record: RawRecord, written_ms: int) -> None:
        if self._concerns(record):
            self._records += 1
        elif record.value:
            # A frame of another channel affects only its tap's figures and the clock. A
            # record without a value has the same effect, so the value is removed.
            # Otherwise, the frame would be decoded, which would take as much time as
            # decoding a frame of the traced channel.
            record = record._replace(value=None)
        chunk = self._chunks[record.partition]
        chunk.add(record, written_ms)
        if self._from_ms is None:
            self._from_ms = record.timestamp_ms
        self._to_ms = max(self._to_ms or 0, chunk.clock_ms)
        self._waiting += 1
        if chunk.is_full or self._waiting >= _PASSED_RECORDS:
            self._pass_on()

    def _concerns(self, record: RawRecord) -> bool:
        headers = dict(record.headers)
        if headers.get("protocol", _DEFAULT) != self._protocol or "kind" in headers:
            return False
        return self._key is None or record.key in (None, self._key)

    def _pass_on(self) -> None:
        self._waiting = 0
        rows = [row for chunk in self._chunks.values() for row in chunk.take_rows()]
        if rows:
            clock_ms = min(chunk.clock_ms for chunk in self._chunks.values())
            self._reader.take(rows, clock_ms)
