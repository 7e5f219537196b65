"""A batch in a job that knows many channels, of which some have news."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from benchmarks.context import Context
from benchmarks.data import MANY, records_of
from benchmarks.live import FLAGS
from benchmarks.processes import Monitor, monitor
from benchmarks.topics import Feed, Writer, heartbeats
from connectors.kafka.producer import TopicRecord

ROW = "many channels"
_BURSTS = 3
_PAST_MS = 600_000
"""How long ago the channels began, by the record times.

A view is called when a minute ends in which its figures changed, when the channel's
warm-up ends, 30 s after its first frame, and 120 s after a message without
acknowledgement. Thousands of channels that began just now would meet these deadlines
together, in a batch that is to have the news of a few."""


def touched(context: Context) -> None:
    """Let the job learn more and more channels; after each step, write to a few.

    The batch of the news is timed from its plan to its commit. Of a few such batches
    the quickest counts: another one may have the end of a minute in it.
    """
    shape = replace(MANY, channels=2_100) if context.is_quick else MANY
    # A few channels were silent.
    count = shape.channels * 20 // 21
    few = count // 100
    by_channel: defaultdict[bytes, list[TopicRecord]] = defaultdict(list)
    for record in records_of(shape):
        if record.key:
            by_channel[record.key].append(record)
    # The first frame of a channel makes it known, each later one is news.
    channels = [frames for frames in by_channel.values() if len(frames) > _BURSTS]
    channels = channels[:count]
    kafka = context.empty("touched")
    writer, alive = Writer(kafka), Feed(kafka, _heartbeats())
    with monitor(kafka, *FLAGS) as job:
        job.follow()
        with alive.running():
            known = 0
            for share in (20, 4, 1):
                total = len(channels) // share
                first = (frames.pop(0) for frames in channels[known:total])
                _write(writer, first, _PAST_MS)
                known = total
                _wait(job, writer)
                _measure(context, job, writer, channels[:total], few)
            many = len(channels) // 10
            _measure(context, job, writer, channels, many)


def _measure(
    context: Context,
    job: Monitor,
    writer: Writer,
    channels: Sequence[list[TopicRecord]],
    news: int,
) -> None:
    """Write one frame to each of some channels, a few times."""
    seconds = []
    waiting = [frames for frames in channels if frames]
    for number in range(_BURSTS):
        # Other channels each time, as far as there are any.
        begin = number * news % max(1, len(waiting) - news)
        some = waiting[begin : begin + news]
        before = len(job.watch.commits)
        _write(writer, (frames.pop(0) for frames in some if frames))
        _wait(job, writer)
        commits = job.watch.commits[before - 1 :]
        _, largest = max(
            itertools.pairwise(commits),
            key=lambda pair: pair[1].records - pair[0].records,
        )
        seconds.append(largest.seconds)
    what = f"batch with new frames in {news:,} of {len(channels):,} channels"
    context.say(ROW, what, "s", min(seconds))


def _wait(job: Monitor, writer: Writer) -> None:
    """Wait until all frames are in the figures, and a later batch has ended.

    Figures are shown before the batch's commit is written and seen.
    """
    job.wait_for_frames(len(writer.written_s))
    seen = len(job.watch.commits)
    while len(job.watch.commits) < seen + 2:
        time.sleep(0.1)


def _write(writer: Writer, records: Iterable[TopicRecord], ago_ms: int = 0) -> None:
    time_ms = time.time_ns() // 1_000_000 - ago_ms
    for record in records:
        writer.write(replace(record, timestamp_ms=time_ms))
    writer.flush()


def _heartbeats() -> Iterator[tuple[float, TopicRecord]]:
    for second in itertools.count():
        for one in heartbeats({"tap-alive": second + 1}):
            yield second, one
