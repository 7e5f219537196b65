"""How fast the contenders read a topic that holds everything already.

One after the other, in turns: each repetition runs all contenders. Batches of the Spark
jobs have the same number of records. The first batches do not count: Java compiles and
workers start in them; from then on the time from commit to commit counts, until the
last batch. The single processes start in well under a second, so all of their time
counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.context import Context, ends_of
from benchmarks.data import BIG, MIX_BIG, MIX_SMALL, SMALL, Shape
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

LEFT_OUT = 2
"""Batches at the start that do not count."""

JOB = "this job"
OBVIOUS = "obvious Spark job"
DIGEST = "the same with a digest per channel"
KAFKA_PYTHON = "one process, kafka-python, naive"
CONFLUENT = "one process, confluent-kafka, naive"
SAME = "one process, same semantics, no Spark"
RAW = "raw read, confluent-kafka"


@dataclass(frozen=True)
class Set:
    """A data set.

    Attributes:
        name: Its name, the last word of the row's.
        shapes: What is in it.
        batches: Batches of the Spark jobs.
    """

    name: str
    shapes: tuple[Shape, ...]
    batches: int = 8


def sets(is_quick: bool) -> tuple[Set, ...]:
    """Return the data sets big, small and mix."""
    mix = (MIX_BIG, MIX_SMALL)
    if is_quick:
        mix = (MIX_BIG.shortened(20), MIX_SMALL.shortened(8))
        return (
            Set("big", (BIG.shortened(40),)),
            Set("small", (SMALL.shortened(10),)),
            Set("mix", mix),
        )
    return Set("big", (BIG,)), Set("small", (SMALL,)), Set("mix", mix)


def drain(context: Context, wanted: Set) -> None:
    """Measure all contenders on one data set."""
    row = f"drain {wanted.name}"
    kafka = context.loaded(wanted.name, *wanted.shapes)
    ends = ends_of(kafka)
    batch = -(-sum(ends.values()) // wanted.batches)
    for _ in range(context.repeat):
        ours: dict[str, Any] = {}
        contenders: dict[str, Callable[[], Drain]] = {
            JOB: partial(_job, kafka, batch, ours),
            OBVIOUS: partial(_spark, kafka, batch),
            DIGEST: partial(_spark, kafka, batch, "--digest"),
            KAFKA_PYTHON: partial(_naive, kafka, ends, "kafka-python"),
            CONFLUENT: partial(_naive, kafka, ends, "confluent"),
            SAME: partial(_same, kafka, ends, ours),
            RAW: partial(_naive, kafka, ends, "raw"),
        }
        for name, measure in contenders.items():
            result = measure()
            context.say(row, name, "records/s", result.per_second)
            context.say(f"{row}, processor", name, "µs/record", result.cpu_us)


def _job(kafka: KafkaSettings, batch: int, ours: dict[str, Any], *flags: str) -> Drain:
    """Run this job to the end of the topic; `ours` gets its report."""
    words = ["--until-caught-up", "--trigger", "0", "--no-history-topics"]
    words += ["--max-batch-records", str(batch), "--max-batch-bytes", str(1 << 40)]
    with monitor(kafka, *words, *flags) as job:
        job.wait_for_end()
        ours |= job.report
    return warm(job.watch.commits, LEFT_OUT)


def _spark(kafka: KafkaSettings, batch: int, *flags: str) -> Drain:
    """Run the obvious Spark job to the end of the topic."""
    with tempfile.TemporaryDirectory(prefix="sds-monitor-bench-") as name:
        checkpoint = Path(name) / "checkpoint"
        words = ["--bootstrap", kafka.bootstrap, "--topic", kafka.topic]
        words += ["--checkpoint", str(checkpoint), "--batch", str(batch)]
        module = "benchmarks.contenders.spark_rows"
        with (Path(name) / "stderr").open("w") as stderr:
            process = subprocess.Popen(  # noqa: S603 - fixed words
                [sys.executable, "-m", module, *words, *flags],
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
        return warm(watch.commits, LEFT_OUT)


def _naive(kafka: KafkaSettings, ends: dict[int, int], client: str) -> Drain:
    result = run_contender("naive", *_what(kafka, ends), "--client", client)
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
