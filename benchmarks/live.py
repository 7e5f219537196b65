"""Follows a running job: how old are its figures, and what does it cost?"""

from __future__ import annotations

import time

from benchmarks.context import Context
from benchmarks.processes import ContenderFailed, Monitor, cpu_s, memory_bytes
from benchmarks.results import quantile
from benchmarks.topics import Feed

COSTS_S = 15
"""How long costs are measured: some 15 batches, of which each is like the others."""
_SAMPLE_S = 0.1
_MIB = 2**20

FLAGS = ("--no-history-topics", "--label-budget", "10")
"""A page of metrics with few channels is quick to make: it is read ten times a second,
not every 15 seconds as by Prometheus. The figures of all others are in `other`."""


def say_ages(
    context: Context,
    row: str,
    what: str,
    job: Monitor,
    feed: Feed,
    *,
    seconds: float,
    before: int = 0,
) -> None:
    """Measure how old the oldest frame is that `/metrics` does not include.

    It is asked each tenth of a second; the age is 0 if there is no such frame.

    Args:
        context: Gets the percentiles.
        row: Row of the measures.
        what: Their names begin with it.
        job: The job.
        feed: Writes to the topic.
        seconds: How long.
        before: Frames in the topic before the feed began.

    Raises:
        ContenderFailed: The feed ended.
    """
    ages_s = []
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        _check(feed)
        known = job.frames() - before
        waiting = feed.written_s[max(0, known) :][:1]
        ages_s.append(time.monotonic() - waiting[0] if waiting else 0.0)
        time.sleep(_SAMPLE_S)
    for percent in (50, 95):
        age_s = quantile(ages_s, percent)
        context.say(row, f"{what}, age p{percent}", "s", age_s)


def say_costs(
    context: Context, row: str, what: str, job: Monitor, feed: Feed, *, seconds: float
) -> None:
    """Measure batches, CPU time and memory of a job, all processes together.

    Nobody reads its page meanwhile: to make it costs CPU time too.

    Args:
        context: Gets the measures.
        row: Row of the measures.
        what: Their names begin with it.
        job: The job.
        feed: Writes to the topic.
        seconds: How long.

    Raises:
        ContenderFailed: The feed ended, or no batch did.
    """
    begun_s, begun_cpu_s = time.monotonic(), cpu_s(job.process.pid)
    first = job.sums()
    time.sleep(seconds)
    spent_s = cpu_s(job.process.pid) - begun_cpu_s
    took_s = time.monotonic() - begun_s
    last = job.sums()
    _check(feed)
    name = "sds_monitor_batch_duration_seconds"
    batches = last[f"{name}_count"] - first.get(f"{name}_count", 0.0)
    if not batches:
        message = f"no batch ended within {seconds:g} s"
        raise ContenderFailed(message)
    batch_s = (last[f"{name}_sum"] - first.get(f"{name}_sum", 0.0)) / batches
    context.say(row, f"{what}, batch", "s", batch_s)
    context.say(row, f"{what}, CPU", "cores", spent_s / took_s)
    context.say(row, f"{what}, memory", "MiB", memory_bytes(job.process.pid) / _MIB)


def _check(feed: Feed) -> None:
    if not feed.is_running:
        message = "the data set is too short for this machine"
        raise ContenderFailed(message)
