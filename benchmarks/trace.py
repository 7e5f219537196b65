"""How long ``sds-monitor trace`` takes for an hour of a busy channel.

``python -m benchmarks.trace`` simulates one channel with a message a second, writes it
to an embedded broker beside other channels, and traces one of its messages beside a
running job. Prints wall time and memory of each call.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.processes import cpu_s, memory_bytes
from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import TopicRecord, partition_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import KEEP_FOR_EVER, ensure_topic
from connectors.simulator.records import simulation_of
from sds_core.observer.judgement import FrameRecord, judge
from sds_core.observer.record import RawRecord
from sds_core.simulation.scenario import Scenario
from sds_core.text import byte_size, iso_time
from tests.support.streaming.command import page_of, started

_START_MS = 1_760_000_000_000
_HOUR_S = 3_600
_PARTITIONS = 4
_WALL_MS = 1 << 62
_POLL_S = 0.02


def _scenario(others: int) -> Scenario:
    busy = {"name": "busy", "traffic": {"mean_interval_s": 1}}
    other = {"name": "other", "count": others, "traffic": {"mean_interval_s": 10}}
    return Scenario.from_mapping(
        {
            "name": "trace",
            "description": "a busy channel beside others",
            "duration_s": _HOUR_S,
            "participants": 10,
            "network": {"loss": 0.02},
            "channels": [busy, other],
        }
    )


def _placed(records: Iterator[TopicRecord]) -> Iterator[TopicRecord]:
    """Yield the records in the partitions in which a Kafka producer puts them."""
    for one in records:
        to = one.partition
        if one.key is not None:
            to = partition_of(one.key, _PARTITIONS)
        yield TopicRecord(to, one.timestamp_ms, one.key, one.value, one.headers)


def _message_of(records: list[TopicRecord], channel: bytes) -> str:
    """Return the id of a message from the middle of a channel."""
    frames = [one for one in records if one.key == channel]
    one = frames[len(frames) // 2]
    raw = RawRecord(0, 0, one.timestamp_ms, one.key, one.value, one.headers)
    judged = judge(raw, _WALL_MS)
    assert isinstance(judged, FrameRecord)  # noqa: S101 - the simulation wrote it
    return str(judged.frame.message_id)


def _measure(kafka: KafkaSettings, message_id: str, *arguments: str) -> str:
    """Trace a message in a process of its own; return its cost."""
    begin = time.monotonic()
    peak = 0
    process = subprocess.Popen(  # noqa: S603 - our own command
        [
            *(sys.executable, "-m", "streaming.cli", "trace", message_id),
            *("--bootstrap", kafka.bootstrap, "--topic", kafka.topic, *arguments),
            *("--channel", "busy", "--format", "json"),
        ],
        stdout=subprocess.DEVNULL,
    )
    used_s = 0.0
    while process.poll() is None:
        peak = max(peak, memory_bytes(process.pid))
        used_s = max(used_s, cpu_s(process.pid))
        time.sleep(_POLL_S)
    wall_s = time.monotonic() - begin
    assert process.returncode == 0  # noqa: S101 - a trace of what was written
    return f"{wall_s:.1f} s, CPU time {used_s:.1f} s, {byte_size(peak)} at most"


def main() -> None:
    """Measure with the window given, and with a search, with and without a job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--others", type=int, default=10, help="further channels")
    others: int = parser.parse_args().others
    records, _ = simulation_of(_scenario(others), 1, _START_MS, _PARTITIONS)
    written = list(_placed(records))
    message_id = _message_of(written, b"busy")
    window = [
        *("--from", iso_time(_START_MS)),
        *("--to", iso_time(_START_MS + _HOUR_S * 1000)),
    ]
    with EmbeddedBroker() as broker:
        kafka = KafkaSettings(broker.bootstrap, timeout_s=60)
        ensure_topic(kafka, kafka.topic, _PARTITIONS, KEEP_FOR_EVER)
        write(written, kafka)
        busy = sum(one.key == b"busy" for one in written)
        size = sum(len(one.value) for one in written if one.key == b"busy")
        print(f"{busy:,} frames of the channel, {byte_size(size)}")
        for where in (window, []):
            name = "an hour given" if where else "searched"
            print(f"{name}: {_measure(kafka, message_id, *where)}")
        with (
            tempfile.TemporaryDirectory() as directory,
            started(kafka, Path(directory)) as job,
        ):
            page_of(job)
            found = _measure(kafka, message_id, *window)
            print(f"an hour given, beside a job: {found}")


if __name__ == "__main__":
    main()
