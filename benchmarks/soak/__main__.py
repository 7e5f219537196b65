"""Runs a monitor for hours and finds what grows: docs/soak.md.

    python -m benchmarks.soak --minutes 60 [--seed 1] [--out artifacts/soak]

A job, a mirror and a broker run as in production. 200 frames a second arrive, of
channels, groups, participants and taps that come and go; a client reads metrics, pages
and the API. Each 20 seconds memory, threads, descriptors, state and files are measured.
At the end the figures are compared with those of a job that read the same topic at
once. The exit code is 1 if a measure grows beyond its limit, a request failed, or the
figures differ.

Needs a JDK, for `jcmd`, 2 GB of disk, and 70 MB more for each minute.
"""

from __future__ import annotations

import datetime
import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from benchmarks.context import ends_of
from benchmarks.results import machine
from benchmarks.soak.samples import Sampler, Scraper
from benchmarks.soak.traffic import (
    DAY_MS,
    PARTITIONS,
    mirrored,
    traffic,
    traffic_before,
)
from benchmarks.soak.trends import HEAD, Soak, rows
from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from sds_core.simulation.log import PUBSUB_TOPIC
from streaming.cli.output import wall_ms
from streaming.cli.tables import print_table
from tests.support.chaos.play import differing
from tests.support.history.stored import Kept, in_files
from tests.support.soak.commands import Command, sample
from tests.support.soak.stage import Stage
from tests.support.waiting import wait_for
from tests.support.waku_node import ConformanceNode

_SAMPLE_S = 20.0
_PATIENCE_S = 1_800.0
"""Reading what fills the state, and the rest at the end, takes no longer."""
_MORE_GENERATIONS = 4
"""Of the day before: reading them takes some minutes, by which they end earlier."""
_MOST_LINES = 20
_JOBS = ("disturbed", "undisturbed")
"""Names of both jobs: of their directories and topics."""


class Play:
    """A broker, a node, a mirror and a job.

    Args:
        directory: For all files.
        minutes: Length of the traffic.
        run: Gets samples and findings; has the seed.
    """

    def __init__(self, directory: Path, minutes: float, run: Soak) -> None:
        self._directory = directory
        self._minutes = minutes
        self._run = run
        self._temporary = directory / "tmp"
        self._temporary.mkdir()

    def run(self) -> None:
        """Play, measure, and compare."""
        with (
            EmbeddedBroker(self._directory / "kafka") as broker,
            ConformanceNode() as node,
        ):
            self._kafka = KafkaSettings(broker.bootstrap)
            ensure_frames_topic(self._kafka, PARTITIONS)
            generations = int(self._minutes) + _MORE_GENERATIONS
            click.echo(f"writing {generations} min of traffic of the day before")
            records = traffic_before(self._run.seed, wall_ms() - DAY_MS, generations)
            write(records, self._kafka)
            stage = Stage(mirrored(60 * self._minutes), self._run.seed, node)
            self._play(node, stage)
            reports = [self._report(name) for name in _JOBS]
            self._run.differences += differing("report", *reports)
            self._run.records = sum(ends_of(self._kafka).values())
            kept = [in_files(self._directory / one / "history") for one in _JOBS]
            for one in kept:
                for row in one.incidents.values():
                    # It can be missing if a batch spans hours (docs/figures.md, 12).
                    del row["tap_hole"]
            for part, *both in zip(Kept._fields, *kept, strict=True):
                self._run.differences += differing(f"history.{part}", *both)
            self._run.channels = len(reports[0]["channels"])
            self._run.forgotten = reports[0]["forgotten"]["count"]

    def _play(self, node: ConformanceNode, stage: Stage) -> None:
        mirror = Command(
            "mirror",
            self._directory / "mirror.log",
            bootstrap=self._kafka.bootstrap,
            rest=node.url,
            pubsub_topic=PUBSUB_TOPIC,
            state=self._directory / "mirror",
            metrics_port=0,
        )
        with mirror, self._monitor(_JOBS[0]) as job:
            url = job.metrics_url()
            click.echo("the job reads it")
            wait_for(lambda: sample(url, "sds_monitor_records_total"), _PATIENCE_S)
            self._wait_until_read(url)
            scraper = Scraper(url.removesuffix("metrics"))
            sampler = Sampler(
                job.process.pid,
                mirror.process.pid,
                self._directory / _JOBS[0],
                self._temporary,
                scraper,
            )
            with self._playing(stage):
                with scraper.running():
                    self._measure(sampler)
                # Both jobs that write a report have something left to read: their last
                # batch ends at the same time, and the same deadlines have passed.
                assert job.end() == 0, "the job did not end in order"  # noqa: S101
                time.sleep(_SAMPLE_S)
            assert mirror.end() == 0, "the mirror did not end in order"  # noqa: S101
            self._run.requests = scraper.requests
            self._run.failures += scraper.failures

    @contextmanager
    def _playing(self, stage: Stage) -> Iterator[None]:
        """Play the traffic in the background, both that of the node and the other."""
        ending = threading.Event()
        records = traffic(self._run.seed, wall_ms() // 1_000 * 1_000)
        writing = threading.Thread(
            target=write, args=(records, self._kafka, 1.0, ending), daemon=True
        )
        writing.start()
        playing = stage.begin()
        try:
            yield
            if not writing.is_alive():
                self._run.failures.append("the traffic ended early")
        finally:
            ending.set()
            stage.ending.set()
            writing.join()
            playing.join()

    def _measure(self, sampler: Sampler) -> None:
        begun_s = time.monotonic()
        number = 1
        while number * _SAMPLE_S <= 60 * self._minutes:
            due_s = begun_s + number * _SAMPLE_S
            time.sleep(max(0.0, due_s - time.monotonic()))
            at_s = time.monotonic() - begun_s
            values = sampler.sample()
            self._run.add(at_s, values)
            click.echo(
                f"{at_s:6.0f} s  heap {values['heap'] / 1e6:6.1f} MB  "
                f"JVM {values['JVM memory'] / 1e6:6.1f} MB  "
                f"driver {values['driver memory'] / 1e6:6.1f} MB  "
                f"{values['channels']:6.0f} channels  age {values['age']:.1f} s"
            )
            number += 1

    def _wait_until_read(self, url: str) -> None:
        wait_for(lambda: sample(url, "sds_monitor_records_behind") == 0, _PATIENCE_S)

    def _monitor(self, name: str, **options: object) -> Command:
        return Command(
            "run",
            self._directory / f"{name}.log",
            environment={"TMPDIR": str(self._temporary)},
            bootstrap=self._kafka.bootstrap,
            checkpoint=self._directory / name,
            incidents_topic=f"{name}.incidents",
            minutes_topic=f"{name}.minutes",
            verdicts_topic=f"{name}.verdicts",
            metrics_port=0,
            forget_days=1,
            label_budget=50,
            **options,
        )

    def _report(self, name: str) -> dict[str, Any]:
        """Let a job read the rest of the topic, or all of it, and return its report."""
        click.echo(f"the report of the {name} job")
        path = self._directory / f"{name}.json"
        with self._monitor(name, until_caught_up=True, report=path) as command:
            assert command.process.wait(_PATIENCE_S) == 0, f"{name}: no report"  # noqa: S101
        report: dict[str, Any] = json.loads(path.read_text())
        del report["generated_at"]
        return report


@click.command(help=__doc__)
@click.option("--minutes", type=click.FloatRange(5), default=60.0, show_default=True)
@click.option(
    "--warm-up",
    type=click.FloatRange(0),
    help="Minutes that do not count; by default a third, at most 70.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the traffic.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("artifacts/soak"),
    show_default=True,
    help="Directory of all files; a run before is removed from it.",
)
def main(minutes: float, warm_up: float | None, seed: int, out: Path) -> None:
    """Run the soak, write its samples, and print its trends."""
    if warm_up is None:
        warm_up = min(70.0, minutes / 3)
    out = out.absolute()
    work = out / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    today = datetime.datetime.now(datetime.UTC).date()  # noqa: TID251 - the day of the run
    run = Soak(version("sds-monitor"), str(today), machine(), seed, 60 * warm_up)
    try:
        Play(work, minutes, run).run()
    finally:
        (out / "soak.json").write_bytes(msgspec.json.encode(run))
    print_table(Console(), HEAD, rows(run), is_whole=True)
    click.echo(
        f"{run.records:,} records, {run.requests:,} requests, "
        f"{len(run.failures)} failures, {len(run.differences)} differences"
    )
    for line in [*run.failures, *run.differences][:_MOST_LINES]:
        click.echo(line)
    if run.problems():
        raise SystemExit(1)
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
