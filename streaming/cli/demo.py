"""``sds-monitor demo``."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from connectors.kafka.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from connectors.recording.player import make_topic, play
from connectors.recording.recording import (
    Comparison,
    RecordedRecord,
    compare,
    load_recording,
    load_truth,
    opening_of,
    restamped,
)
from connectors.web.server import PortInUse
from streaming.cli.run import as_click_error, served, wall_ms, write_report
from streaming.cli.settings import config_option, setting
from streaming.cli.signals import end_requested
from streaming.query import Job, JobFailed, JobSettings, running_job
from streaming.session import SessionSettings, make_session
from streaming.source import SourceSettings

_SCENARIOS = ("recorded",)
_PATIENCE_S = 120
"""What the job may take beyond the playing before the demo gives up, seconds."""


@click.command("demo", epilog="Example: sds-monitor demo --duration 60")
@config_option
@setting(
    "--scenario",
    type=click.Choice(_SCENARIOS),
    default="recorded",
    help="Traffic to play: 'recorded' is of real @waku/sds participants.",
)
@setting(
    "--duration",
    type=click.FloatRange(0),
    default=20.0,
    help="Seconds over which the traffic is played.",
)
@setting(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report here at the end.",
)
@setting(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=9108,
    help="Port of metrics and page, 0 for any free one.",
)
@setting("--keep", is_flag=True, help="Keep the page up at the end, until Ctrl-C.")
def command(
    scenario: str,
    duration: float,
    report: Path | None,
    metrics_port: int,
    keep: bool,
) -> None:
    """Show everything on this machine: Kafka, traffic, the job, metrics and page.

    Ends with a table of the traffic's truth beside what the monitor found; exit code
    1 if they differ.
    """
    console = Console()
    records = list(restamped(load_recording(), end_ms=wall_ms()))
    with (
        tempfile.TemporaryDirectory(prefix="sds-monitor-demo-") as directory,
        EmbeddedBroker() as broker,
    ):
        console.print(f"Kafka listens on {broker.bootstrap}")
        kafka = KafkaSettings(broker.bootstrap)
        make_topic(records, kafka)
        # A partition without any record yet does not hold the clock back. Played
        # faster than life, its first one would come late.
        opening = opening_of(records)
        play(records[:opening], kafka)
        settings = JobSettings(
            SourceSettings(kafka), Path(directory) / "checkpoint", trigger_s=0.5
        )
        spark = make_session(SessionSettings(shuffle_partitions=2))
        try:
            with (
                end_requested() as ending,
                running_job(spark, settings) as job,
                served(job, "127.0.0.1", metrics_port),
            ):
                _play(console, job, records, opening, duration, ending)
                if ending.is_set():
                    console.print("ended before the comparison")
                    return
                found = job.report(wall_ms())
                if report is not None:
                    write_report(job, report)
                same = _show(console, list(compare(load_truth(), found)))
                if keep:
                    console.print("the page stays up until Ctrl-C")
                    while not (ending.is_set() or job.wait(1.0)):
                        pass
        except PortInUse as error:
            message = f"{error}: --metrics-port 0 takes any free one"
            raise click.UsageError(message) from error
        except JobFailed as error:
            raise as_click_error(error) from error
        finally:
            spark.stop()
    if not same:
        raise click.exceptions.Exit(1)


def _play(
    console: Console,
    job: Job,
    records: Sequence[RecordedRecord],
    opening: int,
    duration_s: float,
    ending: threading.Event,
) -> None:
    """Play the rest and follow the job until it is through, or the event."""
    kafka = job.settings.source.kafka
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        playing = pool.submit(play, records[opening:], kafka, duration_s, stop)
        try:
            _follow(console, job, records, playing, duration_s, ending)
        finally:
            stop.set()


def _follow(
    console: Console,
    job: Job,
    records: Sequence[RecordedRecord],
    playing: Future[None],
    duration_s: float,
    ending: threading.Event,
) -> None:
    """Wait until the job has read every record and fired every deadline before T."""
    end_ms = records[-1].timestamp_ms
    give_up = time.monotonic() + duration_s + _PATIENCE_S
    said = 0
    with _progress(console) as progress:
        task = progress.add_task("records read", total=len(records))
        while not (ending.is_set() or job.wait(1.0)):
            if playing.done():
                playing.result()
            read = job.board.snapshot.job.records
            progress.update(task, completed=read)
            if not console.is_terminal and read - said >= len(records) // 10:
                said = read
                console.print(f"{read:,} of {len(records):,} records read")
            if job.progress.fired_ms >= end_ms and read >= len(records):
                return
            if time.monotonic() > give_up:
                message = (
                    f"the job has not caught up {_PATIENCE_S} s after the traffic's end"
                )
                raise click.ClickException(message)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def _show(console: Console, comparisons: Sequence[Comparison]) -> bool:
    """Print the table; returns whether everything is the same."""
    table = Table(title="Recording of real SDS traffic, all channels together")
    for heading, justify in (
        ("figure", "left"),
        ("truth", "right"),
        ("monitor", "right"),
        ("same?", "left"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for one in comparisons:
        if not one.channel:
            table.add_row(*_row(one))
    console.print(table)
    by_channel = [one for one in comparisons if one.channel]
    channels = {one.channel for one in by_channel}
    equal = sum(one.same for one in by_channel)
    console.print(
        f"by channel: {equal} of {len(by_channel)} figures of {len(channels)} "
        "channels are the same"
    )
    for one in by_channel:
        if not one.same:
            console.print(
                f"  {one.channel}: {one.figure} is {one.found}, truth {one.truth}",
                markup=False,
            )
    return all(one.same for one in comparisons)


def _row(one: Comparison) -> tuple[Any, ...]:
    same = "yes" if one.same else "[bold red]NO[/]"
    return one.figure, _number(one.truth), _number(one.found), same


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
