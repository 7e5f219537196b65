"""``sds-monitor demo``."""

from __future__ import annotations

import functools
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import TopicRecord, opening_of, partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording.recording import load_recording, load_truth, restamped
from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import scenario_names
from connectors.web.server import PortInUse
from sds_core.observer.snapshot import Snapshot
from sds_core.simulation.comparison import compare
from sds_core.simulation.truth import Truth
from sds_core.text import counted, number
from streaming.cli import FINDING
from streaming.cli.channels import channel_table, channels_option
from streaming.cli.comparison import show_comparison
from streaming.cli.live import following
from streaming.cli.log import LogFormat
from streaming.cli.log_option import log_option
from streaming.cli.output import wall_ms
from streaming.cli.progress import Show
from streaming.cli.run import as_click_error, write_report
from streaming.cli.serving import ComingJob, judged, served
from streaming.cli.settings import config_option, setting
from streaming.cli.simulate import read_scenario, start_of
from streaming.cli.starting import looks, started_job
from streaming.failure import JobFailed
from streaming.job import Job
from streaming.settings import (
    HistorySettings,
    JobSettings,
    SessionSettings,
    SourceSettings,
)

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
@setting(
    "--keep/--no-keep",
    default=None,
    help="Keep the page up at the end, until Ctrl-C.  [default: on a terminal]",
)
@channels_option
@log_option(exposed=True)
def command(
    scenario: str,
    seed: int | None,
    duration: float,
    report: Path | None,
    metrics_port: int,
    keep: bool | None,
    channels: Path | None,
    log_format: LogFormat,
) -> None:
    """Show everything on this machine: Kafka, traffic, the job, metrics and page.

    Ends with a table of the traffic's truth beside what the monitor found; exit code
    1 if they differ.
    """
    console = Console()
    if keep is None:
        keep = console.is_interactive
    table = channel_table(channels)
    traffic = _recorded(seed) if scenario == _RECORDED else _simulated(scenario, seed)
    coming = ComingJob()

    def clock_ms() -> int:
        # It is this very program that writes: its records do not fail to come.
        return coming.board.snapshot.clock_ms

    try:
        with (
            served(coming, "127.0.0.1", metrics_port, clock_ms) as url,
            tempfile.TemporaryDirectory(prefix="sds-monitor-demo-") as directory,
            EmbeddedBroker() as broker,
        ):
            console.print(f"Kafka listens on {broker.bootstrap}")
            kafka = KafkaSettings(broker.bootstrap)
            ensure_frames_topic(kafka, partitions_of(traffic.records))
            # A partition without any record yet does not hold the clock back. Played
            # faster than life, its first one would come late.
            opening = opening_of(traffic.records)
            write(traffic.records[:opening], kafka)
            settings = JobSettings(
                SourceSettings(kafka),
                Path(directory) / "checkpoint",
                trigger_s=0.5,
                history=HistorySettings(Path(directory) / "history", has_topics=False),
                channel_table=table,
            )
            session = SessionSettings(shuffle_partitions=2)
            with started_job(session, settings, coming.board) as (job, ending):
                coming.job = job
                line = functools.partial(_progress_line, len(traffic.records))
                with following(console, log_format, url, line) as show:
                    _play(job, traffic.records, opening, duration, ending, show)
                if ending.is_set():
                    console.print("ended before the comparison")
                    return
                found = job.report(wall_ms())
                if report is not None:
                    write_report(job, report)
                same = show_comparison(
                    console, traffic.title, list(compare(traffic.truth, found))
                )
                if lost := lost_line(found["totals"]["gaps"], url if keep else None):
                    click.echo(lost)
                if keep:
                    click.echo(f"the page stays up until Ctrl-C: {url}/")
                    while not (ending.is_set() or job.wait(1.0)):
                        pass
    except PortInUse as error:
        message = f"{error}: --metrics-port 0 takes any free one"
        raise click.UsageError(message) from error
    except JobFailed as error:
        raise as_click_error(error) from error
    if not same:
        raise click.exceptions.Exit(FINDING)


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
    job: Job,
    records: Sequence[TopicRecord],
    opening: int,
    duration_s: float,
    ending: threading.Event,
    show: Show,
) -> None:
    """Play the rest and follow the job until it is through, or the event."""
    kafka = job.settings.source.kafka
    stop = threading.Event()
    length_s = (records[-1].timestamp_ms - records[0].timestamp_ms) / 1000
    speed = length_s / duration_s if duration_s else 0.0
    with ThreadPoolExecutor(1) as pool:
        playing = pool.submit(write, records[opening:], kafka, speed, stop)
        try:
            _follow(job, records, playing, duration_s, ending, show)
        finally:
            stop.set()


def _follow(
    job: Job,
    records: Sequence[TopicRecord],
    playing: Future[int],
    duration_s: float,
    ending: threading.Event,
    show: Show,
) -> None:
    """Wait until the job has read every record and fired every deadline before T."""
    end_ms = max(record.timestamp_ms for record in records)
    give_up = time.monotonic() + duration_s + _PATIENCE_S
    for _ in looks(job, ending):
        if playing.done():
            playing.result()
        snapshot = judged(job.board, lambda: job.board.snapshot.clock_ms)
        show(snapshot)
        through = snapshot.job.records >= len(records)
        if through and job.progress.fired_ms >= end_ms:
            return
        if time.monotonic() > give_up:
            message = (
                f"the job has not caught up {_PATIENCE_S} s after the traffic's end"
            )
            raise click.ClickException(message)


def _progress_line(records: int, snapshot: Snapshot) -> str:
    return f"{number(snapshot.job.records)} of {counted(records, 'record')} read"


def lost_line(gaps: Mapping[str, int], url: str | None) -> str:
    """Where the messages that were lost are named; empty if none was.

    Args:
        gaps: Of the report's totals.
        url: Of the page, without a slash; None if it is about to go.
    """
    lost = gaps["lost"] - gaps["retracted"]
    if not lost:
        return ""
    one = lost == 1
    where = f"{url}/incidents?kind=lost"
    if not url:
        where = f"--keep leaves the page up, which names {'it' if one else 'them'}"
    return f"{counted(lost, 'message')} {'was' if one else 'were'} lost: {where}"
