"""``sds-monitor run``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import click
from prometheus_client import CollectorRegistry

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.kafka.consumer import Client
from connectors.kafka.heartbeat import heartbeats
from connectors.kafka.settings import KafkaSettings
from connectors.prometheus.collector import SnapshotCollector
from connectors.web.app import create_app
from connectors.web.server import AddressUnusable, PortInUse, WebServer
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.snapshot import Snapshot
from streaming.admission import BatchLimits
from streaming.cli import UNREACHABLE
from streaming.cli.history_options import history_options
from streaming.cli.kafka_options import kafka_options, topic_option
from streaming.cli.output import wall_ms, write_json
from streaming.cli.settings import Time, config_option, setting
from streaming.cli.signals import end_requested
from streaming.history import HistoryInUse, HistorySettings, HistoryUnwritable
from streaming.query import (
    LABEL_BUDGET,
    CheckpointInUse,
    CheckpointMismatch,
    CheckpointUnwritable,
    Job,
    JobFailed,
    JobSettings,
    running_job,
)
from streaming.session import SessionSettings, make_session
from streaming.source import EARLIEST, LATEST, SourceSettings

_LOG_SECONDS = 10.0

_Command = TypeVar("_Command", bound=Callable[..., Any])


def reading_options(command: _Command) -> _Command:
    """Add the flags of how a topic is read, to `run` and `replay`."""
    for option in reversed(
        (
            setting(
                "--client",
                type=click.Choice([client.value for client in Client]),
                default=Client.CONFLUENT.value,
                help="Library that reads frames.",
            ),
            setting(
                "--max-batch-records",
                type=click.IntRange(1),
                default=BatchLimits().rows,
                help="Kafka records in one batch at most.",
            ),
            setting(
                "--max-batch-bytes",
                type=click.IntRange(1),
                default=BatchLimits().size_bytes,
                help="Bytes of records in one batch at most, by their mean size.",
            ),
            setting(
                "--shuffle-partitions",
                type=click.IntRange(1),
                default=SessionSettings().shuffle_partitions,
                help="Partitions of the state, fixed by a checkpoint's first batch.",
            ),
        )
    ):
        command = option(command)
    return command


@click.command(
    "run",
    epilog="Example: sds-monitor run --bootstrap localhost:9092 --checkpoint ./state",
)
@config_option
@kafka_options()
@topic_option
@setting(
    "--checkpoint",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the state; the job goes on from there when started again.",
)
@setting("--host", default="127.0.0.1", help="Address of metrics and page.")
@setting(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=9108,
    help="Port of metrics and page, 0 for any free one.",
)
@setting(
    "--start",
    type=Time(EARLIEST, LATEST),
    default=EARLIEST,
    help="Where a new checkpoint begins.",
)
@setting("--until-caught-up", is_flag=True, help="End when all that is there is read.")
@setting(
    "--heartbeat",
    is_flag=True,
    help="Write heartbeats, for a topic whose taps write none.",
)
@setting(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report here at the end.",
)
@setting(
    "--report-detail",
    is_flag=True,
    help="With every incident and definite acknowledgement; from a checkpoint's first "
    "start.",
)
@setting(
    "--trigger", type=click.FloatRange(0), default=1.0, help="Seconds between batches."
)
@setting(
    "--on-lost-records",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    help="When records are gone before they were read.",
)
@setting(
    "--label-budget",
    type=click.IntRange(0),
    default=LABEL_BUDGET,
    help="Channels with a metric label of their own.",
)
@history_options
@reading_options
def command(
    kafka: KafkaSettings,
    topic: str,
    checkpoint: Path,
    host: str,
    metrics_port: int,
    start: str | int,
    until_caught_up: bool,
    heartbeat: bool,
    report: Path | None,
    report_detail: bool,
    client: str,
    trigger: float,
    max_batch_records: int,
    max_batch_bytes: int,
    on_lost_records: str,
    label_budget: int,
    history: HistorySettings,
    shuffle_partitions: int,
) -> None:
    """Read SDS traffic from Kafka and show how reliable each channel is.

    Serves the status page at / and Prometheus metrics at /metrics. Kill it at any
    moment: started again on the same checkpoint, every figure goes on.
    """
    source = SourceSettings(
        kafka,
        client=Client(client),
        limits=BatchLimits(max_batch_records, max_batch_bytes),
        start=start,
        skip_lost=on_lost_records == "skip",
    )
    settings = JobSettings(
        source,
        checkpoint.absolute(),
        trigger_s=trigger,
        until_caught_up=until_caught_up,
        report_detail=report_detail,
        label_budget=label_budget,
        history=history,
    )
    spark = make_session(SessionSettings(shuffle_partitions=shuffle_partitions))
    try:
        with (
            end_requested() as ending,
            running_job(spark, settings) as job,
            served(job, host, metrics_port),
            heartbeats(source.kafka) if heartbeat else nullcontext(),
        ):
            follow(job, ending, _progress_line)
            if report is not None:
                write_report(job, report)
    except (
        CheckpointInUse,
        CheckpointMismatch,
        CheckpointUnwritable,
        HistoryInUse,
        HistoryUnwritable,
        AddressUnusable,
        PortInUse,
    ) as error:
        raise click.UsageError(str(error)) from error
    except (NoHistory, DamagedHistory) as error:
        raise click.ClickException(str(error)) from error
    except JobFailed as error:
        raise as_click_error(error) from error
    finally:
        spark.stop()


@contextmanager
def served(job: Job, host: str, port: int) -> Iterator[str]:
    """Serve a job's page and metrics; gives their URL."""

    def current() -> Snapshot:
        # For a topic that has fallen silent as a whole; no figure depends on it.
        return judge_blindness(job.board.snapshot, wall_ms())

    registry = CollectorRegistry()
    registry.register(SnapshotCollector(current))
    app = create_app(current, job.find_incidents, registry)
    with WebServer(app, host, port) as server:
        click.echo(f"status page {server.url}/   metrics {server.url}/metrics")
        yield server.url


def follow(job: Job, ending: threading.Event, line: Callable[[Snapshot], str]) -> None:
    """Wait for the job's end or the event, saying now and then how far it is.

    Args:
        job: To wait for.
        ending: Set to wait no longer.
        line: What to say.
    """
    said = float("-inf")
    while not (ending.is_set() or job.wait(1.0)):
        if time.monotonic() - said >= _LOG_SECONDS:
            said = time.monotonic()
            click.echo(line(job.board.snapshot))
    click.echo(line(job.board.snapshot))


def as_click_error(error: JobFailed) -> click.ClickException:
    """The error with its exit code: 3 if Kafka was away, else 1."""
    shown = _KafkaAway if error.unreachable else click.ClickException
    return shown(str(error))


class _KafkaAway(click.ClickException):
    exit_code = UNREACHABLE


def write_report(job: Job, path: Path) -> None:
    """Write a job's report as JSON with sorted keys."""
    write_json(job.report(wall_ms()), path, "report")


def _progress_line(snapshot: Snapshot) -> str:
    job = snapshot.job
    lag = job.event_time_lag_seconds
    shown = "nothing read yet" if lag is None else f"{lag:.1f} s behind in event time"
    return (
        f"{job.records:,} records read, {job.records_behind:,} to read, {shown}, "
        f"{len(snapshot.channels):,} channels"
    )
