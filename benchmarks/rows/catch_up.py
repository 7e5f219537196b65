"""The job catches up with an hour of traffic, then follows with it in memory."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.context import Context
from benchmarks.data import HOUR, START_MS, records_of
from benchmarks.live import COSTS_S, FLAGS, say_ages, say_costs
from benchmarks.processes import monitor
from benchmarks.topics import Feed, Writer
from connectors.kafka.producer import TopicRecord

ROW = "an hour"


def catch_up(context: Context) -> None:
    """Write the past, then the present, and start the job beside it."""
    shape, past_s, seconds = HOUR, 3_600, 30
    if context.is_quick:
        shape, past_s, seconds = replace(HOUR, channels=40, seconds=600), 300, 20
    records = iter(records_of(shape))
    kafka = context.empty("hour")
    past, first = _past(records, time.time_ns() // 1_000_000 - past_s * 1000, past_s)
    writer = Writer(kafka)
    for record in past:
        writer.write(record)
    writer.flush()
    before = len(writer.written_s)
    feed = Feed(kafka, _present(itertools.chain(first, records), past_s))
    with monitor(kafka, *FLAGS) as job, feed.running():
        job.follow()
        job.wait_for_frames(before)
        took_s = time.monotonic() - job.started_s
        what = f"{past_s / 60:g} min of {shape.channels} channels"
        context.say(ROW, f"catch-up of {what}, with the start", "s", took_s)
        context.say(ROW, f"catch-up of {what}", "frames/s", before / took_s)
        # What came meanwhile.
        job.wait_for_frames(before + len(feed.written_s))
        time.sleep(10)
        what = (
            f"{shape.channels} channels at one message/s, "
            f"{past_s / 60:g} min remembered"
        )
        say_ages(context, ROW, what, job, feed, seconds=seconds, before=before)
        say_costs(context, ROW, what, job, feed, seconds=COSTS_S)


def _past(
    records: Iterator[TopicRecord], start_ms: int, past_s: float
) -> tuple[Iterator[TopicRecord], list[TopicRecord]]:
    """Return the records of the past, with times of the past, and a list.

    The list has the first record of the present once the past is read.
    """
    first: list[TopicRecord] = []

    def past() -> Iterator[TopicRecord]:
        for record in records:
            since_ms = record.timestamp_ms - START_MS
            if since_ms >= past_s * 1000:
                first.append(record)
                return
            yield replace(record, timestamp_ms=start_ms + since_ms)

    return past(), first


def _present(
    records: Iterator[TopicRecord], past_s: float
) -> Iterator[tuple[float, TopicRecord]]:
    for record in records:
        yield (record.timestamp_ms - START_MS) / 1000 - past_s, record
