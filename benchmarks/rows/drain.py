"""How fast the contenders read a topic that holds everything already.

One after the other, in turns: each repetition runs all contenders. Batches of the Spark
jobs have the same number of records. The first batches do not count: Java compiles and
workers start in them; from then on the time from commit to commit counts, until the
last batch. The single processes start in well under a second, so all of their time
counts.

CPU time is that of all processes of a contender, without the broker's. Its ratios vary
less than those of the wall time: a batch waits for the slowest of its tasks, and for
the broker.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.context import Context, ends_of
from benchmarks.data import BIG, SMALL, Shape
from benchmarks.processes import (
    TIMEOUT_S,
    CommitWatch,
    ContenderFailed,
    Drain,
    monitor,
    run_contender,
    warm,
)
from connectors.kafka.settings import KafkaSettings

_BATCHES = 8
_LEFT_OUT = 2
"""Batches at the start that do not count."""

JOB = "this job"
FIGURES = "Spark job with three figures"
COUNTS = "Spark job that only counts"
SAME = "one process, same semantics, no Spark"
NAIVE = "one process, naive"
RAW = "raw read"


def cpu(data: str) -> str:
    """Return the row of the CPU times of a data set."""
    return f"drain {data}, CPU"


def shapes(is_quick: bool) -> dict[str, Shape]:
    """Return the data sets by name."""
    if is_quick:
        return {"big": BIG.shortened(40), "small": SMALL.shortened(10)}
    return {"big": BIG, "small": SMALL}


def drain(context: Context, data: str) -> None:
    """Measure all contenders on one data set."""
    kafka = context.loaded(data, shapes(context.is_quick)[data])
    ends = ends_of(kafka)
    batch = -(-sum(ends.values()) // _BATCHES)
    for _ in range(context.repeat):
        ours: dict[str, Any] = {}
        contenders: dict[str, Callable[[], Drain]] = {
            JOB: partial(_job, kafka, batch, ours),
            FIGURES: partial(_spark, kafka, batch, "spark_figures"),
            COUNTS: partial(_spark, kafka, batch, "spark_counts"),
            SAME: partial(_same, kafka, ends, ours),
            NAIVE: partial(_naive, kafka, ends),
            RAW: partial(_naive, kafka, ends, "--raw"),
        }
        for name, measure in contenders.items():
            result = measure()
            context.say(cpu(data), name, "µs/record", result.cpu_us)
            context.say(f"drain {data}", name, "records/s", result.per_second)


def _job(kafka: KafkaSettings, batch: int, ours: dict[str, Any]) -> Drain:
    """Run this job to the end of the topic; `ours` gets its report."""
    words = ["--until-caught-up", "--trigger", "0", "--no-history-topics"]
    words += ["--max-batch-records", str(batch), "--max-batch-bytes", str(1 << 40)]
    with monitor(kafka, *words) as job:
        job.wait_for_end()
        ours |= job.report
    return warm(job.watch.commits, _LEFT_OUT)


def _spark(kafka: KafkaSettings, batch: int, module: str) -> Drain:
    """Run a Spark job of `benchmarks.contenders` to the end of the topic."""
    with tempfile.TemporaryDirectory(prefix="sds-monitor-bench-") as name:
        checkpoint = Path(name) / "checkpoint"
        words = ["--bootstrap", kafka.bootstrap, "--topic", kafka.topic]
        words += ["--checkpoint", str(checkpoint), "--batch", str(batch)]
        with (Path(name) / "stderr").open("w") as stderr:
            process = subprocess.Popen(  # noqa: S603 - fixed words
                [sys.executable, "-m", f"benchmarks.contenders.{module}", *words],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        watch = CommitWatch(checkpoint, process.pid)
        try:
            with watch.running():
                if process.wait(TIMEOUT_S):
                    raise ContenderFailed((Path(name) / "stderr").read_text()[-3000:])
        finally:
            process.kill()
        return warm(watch.commits, _LEFT_OUT)


def _naive(kafka: KafkaSettings, ends: dict[int, int], *flags: str) -> Drain:
    result = run_contender("naive", *_what(kafka, ends), *flags)
    return Drain(result["records"], result["seconds"], result["cpu_s"])


def _same(kafka: KafkaSettings, ends: dict[int, int], ours: dict[str, Any]) -> Drain:
    """Run our views without Spark; their report must be that of the job.

    Raises:
        ContenderFailed: The reports differ.
    """
    with tempfile.TemporaryDirectory(prefix="sds-monitor-bench-") as name:
        file = Path(name) / "report.json"
        words = [*_what(kafka, ends), "--report", str(file)]
        result = run_contender("same_semantics", *words)
        report = msgspec.json.decode(file.read_bytes())
    compared = ("schema", "window", "totals", "channels")
    different = [key for key in compared if report[key] != ours[key]]
    if different:
        wrong = [
            channel
            for channel, figures in ours["channels"].items()
            if figures != report["channels"].get(channel)
        ]
        message = f"the reports differ in {different}, channels {wrong[:5]}"
        raise ContenderFailed(message)
    return Drain(result["records"], result["seconds"], result["cpu_s"])


def _what(kafka: KafkaSettings, ends: dict[int, int]) -> list[str]:
    words = {
        "--bootstrap": kafka.bootstrap,
        "--topic": kafka.topic,
        "--ends": json.dumps(ends),
    }
    return [word for option in words.items() for word in option]
