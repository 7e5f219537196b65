"""Measures what a job of some size needs: processor, memory, bytes of the checkpoint.

    python -m benchmarks.scaling --help

The command reads simulated traffic from the embedded broker in batches of 1,000 frames,
as many as 1,000 frames per second give with a trigger of a second. It runs once for
each number of channels, of cores, and of partitions of the state. The first batches,
in which programs start, do not count.

Limits of the result: processor time is that of the command's processes, by user and
system, and does not depend on what else the machine does; frames per second do. Memory
is the largest sum of proportional set sizes. Broker and job share the machine.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import psutil

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.simulator.records import simulated_records
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth

_START_MS = 1_760_000_000_000
_BATCH = 1_000
_COLD = 4
"""Batches that do not count."""


class _Moment(NamedTuple):
    """The job's processes at one moment.

    Attributes:
        at_s: Wall time, Unix seconds.
        java_s, python_s: Processor time since their start, seconds.
        memory_bytes: Memory of all.
    """

    at_s: float
    java_s: float
    python_s: float
    memory_bytes: int


class _Result(NamedTuple):
    """Figures of one run, of the batches that count."""

    frames_s: float
    java_us: float
    python_us: float
    memory_mb: float
    batch_kb: float
    stored_mb: float
    files: float


def traffic(channels: int, frames: int, partitions: int) -> Iterator[TopicRecord]:
    """Yield records of so many channels, 1,000 frames per second in all."""
    duration_s = frames / _BATCH
    scenario = Scenario.from_mapping(
        {
            "name": "scaling",
            "description": "so many channels",
            "duration_s": duration_s * 1.2 + 1,
            "participants": 3,
            "channels": [
                {
                    "name": "channel",
                    "count": channels,
                    "traffic": {"mean_interval_s": channels / _BATCH},
                }
            ],
            "taps": [{"name": "tap"}],
        }
    )
    records = simulated_records(
        scenario, 1, _START_MS, partitions, Truth("scaling", partitions)
    )
    return itertools.islice(records, frames)


def run(kafka: KafkaSettings, cores: int, state_partitions: int) -> _Result:
    """Run the job over a topic."""
    with tempfile.TemporaryDirectory(prefix="sds-monitor-scaling-") as directory:
        checkpoint = Path(directory, "checkpoint")
        arguments = {
            "--bootstrap": kafka.bootstrap,
            "--topic": kafka.topic,
            "--checkpoint": str(checkpoint),
            "--master": f"local[{cores}]",
            "--read-tasks": str(cores),
            "--shuffle-partitions": str(state_partitions),
            "--max-batch-records": str(_BATCH),
            "--metrics-port": "0",
            "--trigger": "0",
        }
        words = [word for pair in arguments.items() for word in pair]
        words += ["--until-caught-up", "--no-history-topics"]
        with subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "streaming.cli", "run", *words],
            stdout=subprocess.DEVNULL,
        ) as job:
            moments = _observe(job)
            if job.returncode:
                message = f"the job ended with code {job.returncode}"
                raise click.ClickException(message)
        return _result(checkpoint, moments)


def _observe(job: subprocess.Popen[bytes]) -> list[_Moment]:
    """Return moments of a job until it has ended."""
    spent: dict[psutil.Process, tuple[bool, float]] = {}
    found = []
    process = psutil.Process(job.pid)
    while job.poll() is None:
        memory = 0
        try:
            family = [process, *process.children(recursive=True)]
        except psutil.Error:
            break
        for one in family:
            try:
                times = one.cpu_times()
                spent[one] = ("java" in one.name(), times.user + times.system)
                memory += one.memory_full_info().pss
            except psutil.Error:
                continue
        java, python = (
            sum(s for is_java, s in spent.values() if is_java is wanted)
            for wanted in (True, False)
        )
        found.append(_Moment(time.time_ns() / 1e9, java, python, memory))
        time.sleep(0.2)
    job.wait()
    return found


def _result(checkpoint: Path, moments: list[_Moment]) -> _Result:
    commits = checkpoint / "commits"
    ends = {
        int(one.name): one.stat().st_mtime
        for one in commits.iterdir()
        if one.name.isdigit()
    }
    last = max(ends)
    if last <= _COLD:
        message = f"only {last + 1} batches: give more --frames"
        raise click.ClickException(message)
    first_s, last_s = ends[_COLD - 1], ends[last]
    frames = (last - _COLD + 1) * _BATCH
    begin = min(moments, key=lambda one: abs(one.at_s - first_s))
    end = min(moments, key=lambda one: abs(one.at_s - last_s))
    # Of batch N the changelog is N + 1.
    changes = [
        one
        for one in (checkpoint / "state" / "0").rglob("*.changelog")
        if int(one.stem) > _COLD
    ]
    changed = sum(one.stat().st_size for one in changes)
    stored = [one for one in checkpoint.rglob("*") if one.is_file()]
    return _Result(
        frames / (last_s - first_s),
        (end.java_s - begin.java_s) / frames * 1e6,
        (end.python_s - begin.python_s) / frames * 1e6,
        max(one.memory_bytes for one in moments) / 1e6,
        changed / (last - _COLD + 1) / 1e3,
        sum(one.stat().st_size for one in stored) / 1e6,
        len(stored) / (last + 1),
    )


@click.command(help=__doc__)
@click.option("--channels", type=int, multiple=True, default=(100, 1_000))
@click.option("--cores", type=int, multiple=True, default=(1, 2))
@click.option("--state-partitions", type=int, multiple=True, default=(2, 8))
@click.option("--frames", default=12_000, help="Frames of each run.")
@click.option("--partitions", default=4, help="Partitions of the topic.")
def main(
    channels: tuple[int, ...],
    cores: tuple[int, ...],
    state_partitions: tuple[int, ...],
    frames: int,
    partitions: int,
) -> None:
    """Print a row for each run, as a table in Markdown."""
    click.echo(
        "| channels | cores | state partitions | frames/s | JVM, us/frame | "
        "Python, us/frame | memory, MB | state written per 1,000 frames, kB | "
        "checkpoint at the end, MB | files per batch |\n" + "|---" * 10 + "|"
    )
    most = max(cores)
    runs = [(count, most, state_partitions[0]) for count in channels]
    runs += [(channels[-1], one, state_partitions[0]) for one in cores if one != most]
    runs += [(channels[-1], most, one) for one in state_partitions[1:]]
    with EmbeddedBroker() as broker:
        topics = {}
        for count in channels:
            topics[count] = KafkaSettings(broker.bootstrap, f"scaling-{count}")
            ensure_frames_topic(topics[count], partitions)
            write(traffic(count, frames, partitions), topics[count])
        for count, cores_, state in runs:
            found = run(topics[count], cores_, state)
            click.echo(
                f"| {count:,} | {cores_} | {state} | {found.frames_s:,.0f} | "
                f"{found.java_us:,.0f} | {found.python_us:,.0f} | "
                f"{found.memory_mb:,.0f} | {found.batch_kb:,.0f} | "
                f"{found.stored_mb:,.1f} | {found.files:,.1f} |"
            )


if __name__ == "__main__":
    main()
