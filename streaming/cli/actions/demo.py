"""Plays traffic to a job, and compares the job's report with the known truth."""

from __future__ import annotations

import functools
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import TopicRecord, opening_of, partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording, load_truth, restamped
from connectors.simulator.records import simulation_of
from connectors.sockets.listener import PortInUse
from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.snapshot import Snapshot
from sds_core.simulation.comparison import Comparison, compare
from sds_core.text import counted, number
from streaming.cli.actions.simulate import read_scenario, start_of
from streaming.cli.actions.trace_worker import tracing
from streaming.cli.exit_codes import ExitCode, Failed
from streaming.cli.live import Display, progress_display
from streaming.cli.log import LogFormat
from streaming.cli.output import wall_ms
from streaming.cli.serving import PendingJob, current_snapshot, status_server
from streaming.cli.serving_options import LOOPBACK
from streaming.cli.starting import (
    every_second,
    refusals_explained,
    started_job,
    write_report,
)
from streaming.history import locked_history
from streaming.job import Job
from streaming.settings import (
    HistorySettings,
    JobSettings,
    SessionSettings,
    SourceSettings,
)

_PARTITIONS = 4
_PATIENCE_S = 120
"""Maximum time from the end of the traffic until the job has processed it, seconds."""


class Traffic(NamedTuple):
    """Traffic to play; `truth` is the report that a correct monitor gives about it.

    Records are roughly in order of time. The last record's time is about now.
    """

    title: str
    records: Sequence[TopicRecord]
    truth: Mapping[str, Any]


def recorded_traffic() -> Traffic:
    """Return recorded traffic of real participants, with times shifted to end now."""
    return Traffic(
        "Recording of real SDS traffic",
        list(restamped(load_recording(), end_ms=wall_ms())),
        load_truth(),
    )


def simulated_traffic(name: str, seed: int) -> Traffic:
    """Return the simulated traffic of a scenario; the traffic ends now.

    Raises:
        click.UsageError: The scenario does not exist, or its traffic has no records.
    """
    scenario = read_scenario(name)
    start_ms = start_of(scenario, 0.0, wall_ms())
    simulation = simulation_of(scenario, seed, start_ms, _PARTITIONS)
    records = list(simulation.records)
    if not records:
        message = f"scenario {scenario.name} has no traffic: give another --scenario"
        raise click.UsageError(message)
    title = f"Simulated scenario {scenario.name}, seed {seed}"
    return Traffic(title, records, simulation.truth.document())


@dataclass(frozen=True, slots=True)
class Demo:
    """A demonstration that plays traffic in `duration_s` seconds.

    If `duration_s` is 0, the traffic is played as fast as possible. `history` is the
    directory in which the demo keeps Parquet files; if None, the demo uses a temporary
    directory. `keep` determines whether the status page is still served after the
    comparison; if None, it is served if the output is a terminal.
    """

    traffic: Traffic
    duration_s: float
    report: Path | None
    history: Path | None
    port: int
    keep: bool | None
    table: ChannelTable
    log_format: LogFormat

    @refusals_explained()
    def run(self) -> None:
        """Play the traffic, and print the job's figures beside the true figures.

        Raises:
            click.ClickException: The port or the history cannot be used, or the job
                failed.
        """
        if self.history is not None:
            # If the directory cannot be used, the demo ends before anything starts.
            with locked_history(self.history.absolute()):
                pass
        try:
            same = self._run()
        except PortInUse as error:
            message = f"{error}: --metrics-port 0 selects a free one"
            raise click.UsageError(message) from error
        if self.history is not None:
            click.echo(f"the history is in {self.history}")
        if not same:
            raise click.exceptions.Exit(ExitCode.FINDING)

    def _run(self) -> bool:
        """Play the traffic; return False if the job's findings differ from the truth.

        If a signal ends the demo before the comparison, return True.
        """
        console = Console()
        keep = console.is_interactive if self.keep is None else self.keep
        pending = PendingJob()
        with (
            tempfile.TemporaryDirectory(prefix="sds-monitor-demo-") as directory,
            EmbeddedBroker() as broker,
            tracing(kafka := KafkaSettings(broker.bootstrap)) as trace,
            status_server(
                pending, LOOPBACK, self.port, trace=trace, played=True
            ) as url,
        ):
            console.print(f"Kafka listens on {broker.bootstrap}")
            opening = self._write_opening(kafka)
            settings = self._job_settings(kafka, Path(directory))
            session = SessionSettings(shuffle_partitions=2)
            with started_job(session, settings, pending.board) as (job, ending):
                pending.job = job
                line = functools.partial(_progress_line, len(self.traffic.records))
                with progress_display(console, self.log_format, url, line) as display:
                    self._play(job, opening, ending, display)
                if ending.is_set():
                    console.print("ended before the comparison")
                    return True
                same = self._compare(job, console, url if keep else None)
                if keep:
                    click.echo(f"the page is served until Ctrl-C: {url}/")
                    while not (ending.is_set() or job.wait(1.0, ending)):
                        pass
        return same

    def _write_opening(self, kafka: KafkaSettings) -> int:
        """Write records until no partition is empty, and return their number.

        The job's clock does not wait for an empty partition. If traffic is played
        faster than real time, the first record of a partition that was empty so far
        would seem late.
        """
        records = self.traffic.records
        ensure_frames_topic(kafka, partitions_of(records))
        opening = opening_of(records)
        write(records[:opening], kafka)
        return opening

    def _job_settings(self, kafka: KafkaSettings, directory: Path) -> JobSettings:
        history = (self.history or directory / "history").absolute()
        return JobSettings(
            SourceSettings(kafka),
            directory / "checkpoint",
            trigger_s=0.5,
            history=HistorySettings(history, has_topics=False),
            channel_table=self.table,
        )

    def _play(
        self, job: Job, opening: int, ending: threading.Event, display: Display
    ) -> None:
        records = self.traffic.records
        kafka = job.settings.source.kafka
        stop = threading.Event()
        length_s = (records[-1].timestamp_ms - records[0].timestamp_ms) / 1000
        speed = length_s / self.duration_s if self.duration_s else 0.0
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write, records[opening:], kafka, speed, stop)
            try:
                self._follow(job, writing, ending, display)
            finally:
                stop.set()

    def _follow(
        self, job: Job, writing: Future[int], ending: threading.Event, display: Display
    ) -> None:
        records = self.traffic.records
        end_ms = max(record.timestamp_ms for record in records)
        give_up_s = time.monotonic() + self.duration_s + _PATIENCE_S
        for _ in every_second(job, ending):
            if writing.done():
                writing.result()
            snapshot = current_snapshot(job.board, played=True)
            # Verdicts need the time that the page shows: the time of the traffic, which
            # may pass faster than real time.
            job.verdicts.look(snapshot, snapshot.clock_ms, wall_ms())
            display(snapshot)
            all_read = snapshot.job.records >= len(records)
            if all_read and job.progress.fired_ms >= end_ms:
                return
            if time.monotonic() > give_up_s:
                message = (
                    f"the job has not caught up within {_PATIENCE_S} s after the end "
                    "of the traffic"
                )
                raise Failed(message)

    def _compare(self, job: Job, console: Console, url: str | None) -> bool:
        """Print and write the job's report; return whether it equals the truth."""
        report = job.report(wall_ms())
        if self.report is not None:
            write_report(job, self.report)
        same = show_comparison(
            console, self.traffic.title, list(compare(self.traffic.truth, report))
        )
        if lost := lost_line(report["totals"]["gaps"], url):
            click.echo(lost)
        return same


def _progress_line(records: int, snapshot: Snapshot) -> str:
    return f"{number(snapshot.job.records)} of {counted(records, 'record')} read"


def lost_line(gaps: Mapping[str, int], url: str | None) -> str:
    """Return a line about lost messages and where to find them; "" if none was lost.

    A lost message counts even if it arrived later. `url` is the address of the status
    page; None if the page is not served after the comparison.
    """
    lost, later = gaps["lost"], gaps["retracted"]
    if not lost:
        return ""
    is_single = lost == 1
    after = f", of which {number(later)} came later" if later else ""
    if is_single and later:
        after = ", and came later"
    where = f"{url}/incidents?kind=lost"
    if not url:
        where = (
            f"--keep leaves the page up, which names {'it' if is_single else 'them'}"
        )
    verb = "was" if is_single else "were"
    return f"{counted(lost, 'message')} {verb} lost{after}: {where}"


def show_comparison(
    console: Console, title: str, comparisons: Sequence[Comparison]
) -> bool:
    """Print the comparisons; return whether every figure equals the truth."""
    table = Table(title=Text(f"{title}, all channels together", "table.title"))
    table.add_column("figure")
    table.add_column("truth", justify="right")
    table.add_column("monitor", justify="right")
    table.add_column("same?")
    for comparison in comparisons:
        if not comparison.channel:
            figures = (
                f"{value:,}" if isinstance(value, int) else str(value)
                for value in (comparison.truth, comparison.found)
            )
            same = "yes" if comparison.same else "[bold red]NO[/]"
            table.add_row(comparison.figure, *figures, same)
    console.print(table)
    by_channel = [comparison for comparison in comparisons if comparison.channel]
    channels = {comparison.channel for comparison in by_channel}
    equal = sum(comparison.same for comparison in by_channel)
    console.print(
        f"by channel: {equal} of {len(by_channel)} figures of {len(channels)} "
        "channels are the same"
    )
    for comparison in by_channel:
        if not comparison.same:
            console.print(
                f"  {comparison.channel}: {comparison.figure} is {comparison.found}, "
                f"truth {comparison.truth}",
                markup=False,
            )
    return all(comparison.same for comparison in comparisons)
