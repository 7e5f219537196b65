"""``sds-monitor demo``."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from connectors.kafka.broker import EmbeddedBroker
from connectors.kafka.producer import (
    TopicRecord,
    opening_of,
    partitions_of,
    write,
)
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording.recording import load_recording, load_truth, restamped
from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import scenario_names
from connectors.web.server import PortInUse
from sds_core.simulation.comparison import Comparison, compare
from sds_core.simulation.truth import Truth
from streaming.cli.output import wall_ms
from streaming.cli.run import as_click_error, served, write_report
from streaming.cli.settings import config_option, setting
from streaming.cli.signals import end_requested
from streaming.cli.simulate import read_scenario, start_of
from streaming.query import Job, JobFailed, JobSettings, running_job
from streaming.session import SessionSettings, make_session
from streaming.source import SourceSettings

_RECORDED = "recorded"
_PARTITIONS = 4
_PATIENCE_S = 120
"""What the job may take beyond the playing before the demo gives up, seconds."""


@click.command("demo", epilog="Example: sds-monitor demo --duration 60")
@config_option
@setting(
    "--scenario",
    default=_RECORDED,
    help="Traffic to play: 'recorded' is of real @waku/sds participants; simulated "
    f"are {', '.join(scenario_names())}, or a TOML file.",
)
@setting(
    "--seed", type=click.IntRange(0), help="Decides all chance of a simulation.  [1]"
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
    seed: int | None,
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
    traffic = _recorded(seed) if scenario == _RECORDED else _simulated(scenario, seed)
    records = traffic.records
    with (
        tempfile.TemporaryDirectory(prefix="sds-monitor-demo-") as directory,
        EmbeddedBroker() as broker,
    ):
        console.print(f"Kafka listens on {broker.bootstrap}")
        kafka = KafkaSettings(broker.bootstrap)
        ensure_frames_topic(kafka, partitions_of(records))
        # A partition without any record yet does not hold the clock back. Played
        # faster than life, its first one would come late.
        opening = opening_of(records)
        write(records[:opening], kafka)
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
                same = _show(
                    console, traffic.title, list(compare(traffic.truth, found))
                )
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


class _Traffic(NamedTuple):
    """What is played.

    Attributes:
        title: What it is.
        records: About in order of time, the last at about now.
        truth: What a correct monitor finds in it.
    """

    title: str
    records: Sequence[TopicRecord]
    truth: Mapping[str, Any]


def _recorded(seed: int | None) -> _Traffic:
    if seed is not None:
        message = "--seed: a recording leaves nothing to chance; take a --scenario"
        raise click.UsageError(message)
    return _Traffic(
        "Recording of real SDS traffic",
        list(restamped(load_recording(), end_ms=wall_ms())),
        load_truth(),
    )


def _simulated(name: str, seed: int | None) -> _Traffic:
    scenario = read_scenario(name)
    seed = 1 if seed is None else seed
    truth = Truth(scenario.name, seed)
    start_ms = start_of(scenario, 0.0, wall_ms())
    records = list(simulated_records(scenario, seed, start_ms, _PARTITIONS, truth))
    if not records:
        message = f"scenario {scenario.name} gives no records to play"
        raise click.UsageError(message)
    title = f"Simulated scenario {scenario.name}, seed {seed}"
    return _Traffic(title, records, truth.document())


def _play(
    console: Console,
    job: Job,
    records: Sequence[TopicRecord],
    opening: int,
    duration_s: float,
    ending: threading.Event,
) -> None:
    """Play the rest and follow the job until it is through, or the event."""
    kafka = job.settings.source.kafka
    stop = threading.Event()
    length_s = (records[-1].timestamp_ms - records[0].timestamp_ms) / 1000
    speed = length_s / duration_s if duration_s else 0.0
    with ThreadPoolExecutor(1) as pool:
        playing = pool.submit(write, records[opening:], kafka, speed, stop)
        try:
            _follow(console, job, records, playing, duration_s, ending)
        finally:
            stop.set()


def _follow(
    console: Console,
    job: Job,
    records: Sequence[TopicRecord],
    playing: Future[int],
    duration_s: float,
    ending: threading.Event,
) -> None:
    """Wait until the job has read every record and fired every deadline before T."""
    end_ms = max(record.timestamp_ms for record in records)
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


def _show(console: Console, title: str, comparisons: Sequence[Comparison]) -> bool:
    """Print the table; returns whether everything is the same."""
    table = Table(title=f"{title}, all channels together")
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
