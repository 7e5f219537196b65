"""Follows a running job: how old is what its figures do not have yet?"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from benchmarks.context import Context
from benchmarks.processes import ContenderFailed, Monitor, cpu_s, memory_bytes
from benchmarks.results import quantile
from benchmarks.topics import Feed

_SAMPLE_S = 0.1
_MIB = 2**20

FLAGS = ("--no-history-topics", "--label-budget", "10")
"""A page of metrics with few channels is quick to make: it is read ten times a second,
not every 15 seconds as by Prometheus. The figures of all others are in `other`."""


@dataclass
class Followed:
    """What was seen of a job while it followed a topic.

    Attributes:
        ages_s: Age of the oldest frame that `/metrics` did not include, each tenth of
            a second; 0 if there was none.
        batch_s: Mean duration of a batch, by the job's own figure, seconds.
        share: Processor time per second of all processes of the job.
        memory_bytes: Their memory at the end.
        state_bytes: Memory of the state store at the end.
    """

    ages_s: list[float] = field(default_factory=list)
    batch_s: float = 0.0
    share: float = 0.0
    memory_bytes: int = 0
    state_bytes: float = 0.0

    def say_ages(self, context: Context, row: str, what: str) -> None:
        """Add the percentiles of the ages."""
        for percent in (50, 95, 99):
            age_s = quantile(self.ages_s, percent)
            context.say(row, f"{what}, p{percent}", "s", age_s)

    def say_costs(self, context: Context, row: str, what: str) -> None:
        """Add the duration of batches, the share of the processor and the memory."""
        context.say(row, f"{what}, batch", "s", self.batch_s)
        context.say(row, f"{what}, processor", "cores", self.share)
        context.say(row, f"{what}, memory", "MiB", self.memory_bytes / _MIB)
        context.say("state", f"store: {what}", "MiB", self.state_bytes / _MIB)


def follow(job: Monitor, feed: Feed, seconds: float, before: int = 0) -> Followed:
    """Watch a job while its topic is fed.

    Args:
        job: The job.
        feed: Writes to the topic.
        seconds: How long.
        before: Frames in the topic before the feed began.

    Raises:
        ContenderFailed: The feed ended, or no batch did.
    """
    seen = Followed()
    begun_s, begun_cpu_s = time.monotonic(), cpu_s(job.process.pid)
    first = job.sums()
    while (now_s := time.monotonic()) < begun_s + seconds:
        if not feed.is_running:
            message = "the data set is too short for this machine"
            raise ContenderFailed(message)
        known = job.frames() - before
        waiting = feed.written_s[max(0, known) :][:1]
        now_s = time.monotonic()
        seen.ages_s.append(now_s - waiting[0] if waiting else 0.0)
        time.sleep(_SAMPLE_S)
    last = job.sums()
    took_s = time.monotonic() - begun_s
    seen.share = (cpu_s(job.process.pid) - begun_cpu_s) / took_s
    seen.memory_bytes = memory_bytes(job.process.pid)
    seen.state_bytes = last["sds_monitor_state_bytes"]
    name = "sds_monitor_batch_duration_seconds"
    batches = last[f"{name}_count"] - first.get(f"{name}_count", 0.0)
    if not batches:
        message = f"no batch ended within {seconds:g} s"
        raise ContenderFailed(message)
    spent_s = last[f"{name}_sum"] - first.get(f"{name}_sum", 0.0)
    seen.batch_s = spent_s / batches
    return seen
