"""What the job costs when there is little to do: start, end, idle batch, memory."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from benchmarks.context import Context
from benchmarks.data import FEW, records_of
from benchmarks.live import FLAGS, follow
from benchmarks.processes import monitor
from benchmarks.topics import Feed, Writer, at_rate, heartbeats
from connectors.kafka.producer import TopicRecord
from connectors.kafka.settings import KafkaSettings

ROW = "little to do"
_SETTLED_S = 75
"""After a minute Spark ends the processes with which it planned the query."""
_BEFORE = 100
"""Frames in the topic when the command starts."""


def floor(context: Context) -> None:
    """Start, follow 3 frames a second on 8 channels, then heartbeats only, and end."""
    seconds = 20 if context.is_quick else 30
    for _ in range(context.repeat):
        kafka = context.empty("floor")
        frames = (record for record in records_of(FEW) if record.value)
        _write(kafka, itertools.islice(frames, _BEFORE))
        with monitor(kafka, *FLAGS) as job:
            job.follow()
            feed = Feed(kafka, at_rate(frames, 3))
            idle = Feed(kafka, _idle())
            with feed.running():
                job.wait_for_frames(_BEFORE)
                started_s = time.monotonic() - job.started_s
                context.say(ROW, "command to first figures", "s", started_s)
                time.sleep(_SETTLED_S)
                seen = follow(job, feed, seconds, _BEFORE)
            seen.say_costs(context, ROW, "3 frames/s on 8 channels")
            with idle.running():
                time.sleep(3)
                seen = follow(job, idle, seconds, _BEFORE)
            context.say(ROW, "idle batch", "s", seen.batch_s)
            context.say(ROW, "idle batches, processor", "cores", seen.share)
            ended_s = time.monotonic()
            job.process.terminate()
            job.wait_for_end()
            context.say(ROW, "SIGTERM to end", "s", time.monotonic() - ended_s)


def _write(kafka: KafkaSettings, frames: Iterable[TopicRecord]) -> None:
    """Write frames, then a heartbeat to each partition, so that all can be read."""
    writer = Writer(kafka)
    for frame in itertools.chain(frames, heartbeats({"tap-idle": 0})):
        now_ms = time.time_ns() // 1_000_000
        writer.write(replace(frame, timestamp_ms=now_ms))
    writer.flush()


def _idle() -> Iterator[tuple[float, TopicRecord]]:
    """Yield a heartbeat per second and partition, without an end."""
    for second in itertools.count():
        for one in heartbeats({"tap-idle": second + 1}):
            yield second, one
