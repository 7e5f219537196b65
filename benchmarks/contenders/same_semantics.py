"""One process with this project's own digests and views. No Spark.

It makes the same digests as the job, in chunks of the same size, and applies them to
views that stay in memory. It has no checkpoint, no batches and no restart. At the end
it writes the same report as the job.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from benchmarks.contenders.common import confluent_messages, options, print_result
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.kinds import View
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.record import RawRecord
from sds_core.observer.report import build_report
from sds_core.observer.snapshot import Snapshot, Views
from streaming.chunk import Chunk

_KINDS = kinds_of(PROTOCOLS)


class Observer:
    """All views of a topic.

    Args:
        admitted_ms: Wall time before which records count, Unix ms.
        partitions: All partitions that have records: time waits for each of them.
    """

    def __init__(self, admitted_ms: int, partitions: Iterable[int]) -> None:
        self._admitted_ms = admitted_ms
        self._chunks = {one: Chunk(one, 0) for one in partitions}
        # Up to which time each partition's records are in the views.
        self._reached_ms = dict.fromkeys(self._chunks, 0)
        self._views: dict[str, View[Any, Any, Any]] = {}

    def read(self, records: list[RawRecord]) -> None:
        """Read records of any partitions, each partition in order."""
        for record in records:
            chunk = self._chunks[record.partition]
            chunk.add(record, self._admitted_ms)
            if chunk.is_full:
                self._apply(record.partition)

    def finish(self) -> Snapshot:
        """Apply the rest, move clocks to the newest time, and return the figures."""
        for partition in self._chunks:
            self._apply(partition)
        clock_ms = max(self._reached_ms.values())
        totals: dict[str, dict[str, Any]] = {kind.prefix: {} for kind in _KINDS}
        for key, view in self._views.items():
            view.apply([], clock_ms)
            kind, name = _KINDS.split(key)
            totals[kind.prefix][name] = view.totals
        views = {kind.prefix: Views(kind, totals[kind.prefix]) for kind in _KINDS}
        return judge_blindness(Snapshot(clock_ms=clock_ms).with_views(views))

    def _apply(self, partition: int) -> None:
        """Apply a partition's digests, at the time that all partitions have reached."""
        chunk = self._chunks[partition]
        digests: defaultdict[str, list[bytes]] = defaultdict(list)
        for row in chunk.take_rows():
            digests[row.key].append(row.digest)
        self._reached_ms[partition] = chunk.clock_ms
        clock_ms = min(self._reached_ms.values())
        for key, packed in digests.items():
            kind, _ = _KINDS.split(key)
            view = self._views.get(key)
            if view is None:
                view = self._views[key] = kind.view()
            view.apply(
                [msgspec.msgpack.decode(one, type=kind.digest) for one in packed],
                clock_ms,
            )


@click.command()
@options
@click.option("--report", type=click.Path(path_type=Path), required=True)
def main(bootstrap: str, topic: str, ends: dict[int, int], report: Path) -> None:
    """Read the topic and write the report."""
    begun_s, begun_cpu_s = time.monotonic(), time.process_time()
    partitions = [partition for partition, end in ends.items() if end]
    observer, count = Observer(time.time_ns() // 1_000_000, partitions), 0
    for messages in confluent_messages(bootstrap, topic, ends):
        count += len(messages)
        observer.read(
            [
                RawRecord(
                    message.partition(),
                    message.offset(),
                    message.timestamp()[1],
                    message.key(),
                    message.value(),
                    message.headers() or (),
                )
                for message in messages
            ]
        )
    snapshot = observer.finish()
    print_result(count, begun_s, begun_cpu_s)
    report.write_bytes(msgspec.json.encode(build_report(snapshot, 0)))


if __name__ == "__main__":
    main()
