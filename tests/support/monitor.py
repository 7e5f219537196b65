"""The monitor without Kafka and Spark: records in, report out, in one batch."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from connectors.kafka.producer import TopicRecord
from connectors.kafka.record import RawRecord
from sds_core.observer.channel_view import ChannelView
from sds_core.observer.digest import ChannelDigest
from sds_core.observer.report import build_report
from sds_core.observer.snapshot import Snapshot
from streaming.chunk import Chunk
from streaming.keys import KeyKind, split_key
from tests.support.identities import assert_identities


def report_of(records: Iterable[TopicRecord]) -> dict[str, Any]:
    """What the monitor reports of a topic that it has read to its end."""
    offsets: defaultdict[int, itertools.count[int]] = defaultdict(itertools.count)
    chunks: dict[int, Chunk] = {}
    packed: defaultdict[str, list[bytes]] = defaultdict(list)
    newest_ms = 0
    for record in records:
        newest_ms = max(newest_ms, record.timestamp_ms)
        chunk = chunks.setdefault(record.partition, Chunk(record.partition, 0, 1 << 60))
        chunk.add(
            RawRecord(
                record.partition,
                next(offsets[record.partition]),
                record.timestamp_ms,
                record.key,
                record.value,
                record.headers,
            )
        )
        if chunk.is_full:
            _keep(chunk, packed)
    for chunk in chunks.values():
        _keep(chunk, packed)
    channels = {
        channel: _totals(digests, newest_ms) for channel, digests in packed.items()
    }
    report = build_report(Snapshot(clock_ms=newest_ms, channels=channels), newest_ms)
    assert_identities(report)
    return report


def _keep(chunk: Chunk, packed: defaultdict[str, list[bytes]]) -> None:
    for row in chunk.take_rows():
        kind, name = split_key(row.key)
        if kind is KeyKind.CHANNEL:
            packed[name].append(row.digest)


def _totals(digests: Iterable[bytes], clock_ms: int) -> Any:
    view = ChannelView()
    view.apply(
        [msgspec.msgpack.decode(one, type=ChannelDigest) for one in digests], clock_ms
    )
    return view.totals
