"""Measures what a job of some size needs: CPU time, memory, bytes of the checkpoint.

    python -m benchmarks.scaling [--quick] [--publish]

The command reads simulated small frames from the embedded broker in batches of 1,000,
as many as 1,000 frames per second give with a trigger of a second. It runs once for
each number of channels, of cores, of partitions of the state and of executors, with a
row of the table for each. The first batches, in which programs start, do not count.

CPU time is that of all processes of the job, and depends little on what else the
machine does; frames per second do. Memory is the sum of proportional set sizes after
the last batch, and the heap of each JVM, the driver's first, is what a collection left
of it. Broker, master, workers and job share the machine.

A full run takes about six minutes on two idle cores; it needs a JDK, for `jcmd`.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import click
import psutil

from benchmarks.data import Shape, records_of
from benchmarks.disturbance import adopt_orphans, watched
from benchmarks.measured import runs, store
from benchmarks.processes import (
    TIMEOUT_S,
    ContenderFailed,
    Monitor,
    heap_bytes,
    is_java,
    memory_bytes,
    monitor,
    tree_of,
)
from benchmarks.results import MOST_DISTURBED, machine
from benchmarks.topics import load, new_topic
from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from sds_core.planning.measured import Runs
from tests.support.streaming.cluster import Cluster, standalone_cluster

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
BEGIN = "<!-- Made by .venv/bin/python -m benchmarks.scaling --publish. -->"
END = "<!-- End of the figures. -->"

_BATCH = 1_000
_COLD = 4
"""Batches that do not count."""
_PARTICIPANTS = 3
_HEAD = (
    *("channels", "cores", "state partitions", "executors", "frames/s"),
    *("JVM, us/frame", "Python, us/frame", "memory, MB", "heap, MB"),
    *("state written per 1,000 frames, kB", "checkpoint, MB", "files per batch"),
)


class Size(NamedTuple):
    """A job and its traffic.

    Attributes:
        channels: Number of channels.
        cores: Cores of the job, on one machine.
        state_partitions: Partitions of the state.
        executors: Executors with a core each; 0 for a job on one machine.
    """

    channels: int
    cores: int = 2
    state_partitions: int = 2
    executors: int = 0


SIZES = (
    *(Size(100), Size(1_000), Size(4_000)),
    *(Size(1_000, cores=1), Size(1_000, state_partitions=8)),
    *(Size(1_000, cores=1, executors=1), Size(1_000, executors=2)),
)


class Spent(NamedTuple):
    """CPU time of the job's processes up to a moment, seconds."""

    java_s: float
    python_s: float


@contextmanager
def running(kafka: KafkaSettings, size: Size) -> Iterator[tuple[Monitor, list[int]]]:
    """Run the job over a topic, its first batches done.

    Yields:
        The job, and the process ids of its driver and its executors.
    """
    options = {
        "--master": f"local[{size.cores}]",
        "--read-tasks": str(size.cores),
        "--shuffle-partitions": str(size.state_partitions),
        "--max-batch-records": str(_BATCH),
        "--trigger": "0",
    }
    with ExitStack() as stack:
        environment = {}
        cluster: Cluster | None = None
        if size.executors:
            place = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="sds-monitor-bench-")
            )
            cluster = stack.enter_context(standalone_cluster(Path(place)))
            with (cluster.directory / "conf" / "spark-defaults.conf").open("a") as file:
                file.write(f"spark.cores.max {size.executors}\n")
            options["--master"] = cluster.master
            environment = cluster.environment
        words = [word for pair in options.items() for word in pair]
        job = stack.enter_context(
            monitor(kafka, *words, "--no-history-topics", environment=environment)
        )
        job.follow()
        _wait_for_batches(job, _COLD)
        executors = [one.pid for one in cluster.executors()] if cluster else []
        yield job, [job.process.pid, *executors]


def measure(kafka: KafkaSettings, size: Size, batches: int) -> tuple[str, ...]:
    """Run the job over a topic; returns its row of the table."""
    with running(kafka, size) as (job, roots):
        before, cold = spent(roots), len(job.watch.commits)
        _wait_for_batches(job, batches)
        after, last = spent(roots), len(job.watch.commits)
        first, final = job.watch.commits[cold - 1], job.watch.commits[last - 1]
        frames = final.records - first.records
        memory = sum(map(memory_bytes, roots))
        family = itertools.chain.from_iterable(map(tree_of, roots))
        heaps = [heap_bytes(one.pid) for one in family if is_java(one)]
        checkpoint = job.directory / "checkpoint"
        # Of batch N the changelog is N + 1.
        written = sum(
            one.stat().st_size
            for one in (checkpoint / "state" / "0").rglob("*.changelog")
            if cold < int(one.stem) <= last
        )
        stored = [one for one in checkpoint.rglob("*") if one.is_file()]
        stored_bytes = sum(one.stat().st_size for one in stored)
        files = len(stored) / len(job.watch.commits)
        job.process.terminate()
        job.wait_for_end()
    return (
        *(f"{value:,}" for value in size),
        f"{frames / (final.at_s - first.at_s):,.0f}",
        f"{(after.java_s - before.java_s) / frames * 1e6:,.0f}",
        f"{(after.python_s - before.python_s) / frames * 1e6:,.0f}",
        f"{memory / 1e6:,.0f}",
        " + ".join(f"{one / 1e6:,.0f}" for one in heaps),
        f"{written / frames:,.0f}",
        f"{stored_bytes / 1e6:,.1f}",
        f"{files:,.1f}",
    )


def spent(roots: Sequence[int]) -> Spent:
    """Return the CPU time of some processes and all that they started."""
    java_s = python_s = 0.0
    for one in itertools.chain.from_iterable(map(tree_of, roots)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            if is_java(one):
                java_s += times.user + times.system
            else:
                python_s += times.user + times.system
            # What has ended was a Python worker.
            python_s += times.children_user + times.children_system
    return Spent(java_s, python_s)


def _wait_for_batches(job: Monitor, count: int) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while len(job.watch.commits) < count:
        if time.monotonic() > deadline_s or job.process.poll() is not None:
            raise ContenderFailed((job.directory / "stderr").read_text()[-2_000:])
        time.sleep(0.05)


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Six batches instead of 24.")
@click.option(
    "--publish",
    is_flag=True,
    help="Write the figures to docs/scaling.md and `plan size`.",
)
def main(quick: bool, publish: bool) -> None:
    """Print a row for each size, as a table in Markdown."""
    adopt_orphans()
    batches = 6 if quick else 24
    today = datetime.datetime.now(datetime.UTC).date()  # noqa: TID251 - the day of the run
    rows = []
    lines = [
        BEGIN,
        "",
        f"sds-monitor {version('sds-monitor')}, {today}, {machine()}.",
        "",
        f"| {' | '.join(_HEAD)} |",
        "|---" * len(_HEAD) + "|",
    ]
    click.echo("\n".join(lines[2:]))
    with watched() as others, EmbeddedBroker() as broker:
        topics: dict[int, KafkaSettings] = {}
        for size in SIZES:
            count = size.channels
            if count not in topics:
                topics[count] = new_topic(broker, f"scaling-{count}")
                shape = Shape(
                    "scaling",
                    count,
                    30,
                    interval_s=count / _BATCH,
                    participants=_PARTICIPANTS,
                )
                load(
                    topics[count],
                    itertools.islice(records_of(shape), (batches + 1) * _BATCH),
                )
            rows.append(measure(topics[count], size, batches))
            lines.append(f"| {' | '.join(rows[-1])} |")
            click.echo(lines[-1])
    click.echo(f"other programs: {others.share:.1%} of the cores", err=True)
    if not publish:
        return
    if quick or others.share > MOST_DISTURBED:
        message = "not published: end other programs, and run again without --quick"
        raise click.ClickException(message)
    page = PAGE.read_text(encoding="utf-8")
    old = page[page.index(BEGIN) : page.index(END) + len(END)]
    PAGE.write_text(page.replace(old, "\n".join([*lines, "", END])), encoding="utf-8")
    measured = Runs(
        version("sds-monitor"),
        str(today),
        machine(),
        _BATCH,
        batches,
        _COLD,
        _PARTICIPANTS,
        runs(_HEAD, rows),
    )
    store("runs", measured)


if __name__ == "__main__":
    main()
