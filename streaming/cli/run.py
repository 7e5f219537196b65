"""``sds-monitor run``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.kafka.heartbeat import heartbeats
from connectors.kafka.settings import Client, KafkaSettings
from connectors.web.server import AddressUnusable, PortInUse
from sds_core.observer.snapshot import Snapshot
from sds_core.text import counted
from streaming.checkpoint import (
    CheckpointInUse,
    CheckpointMismatch,
    CheckpointUnwritable,
)
from streaming.cli import UNREACHABLE
from streaming.cli.channels import channel_table, channels_option, read_on_hangup
from streaming.cli.history_options import history_options
from streaming.cli.kafka_options import kafka_options, topic_option
from streaming.cli.live import following
from streaming.cli.log import LogFormat
from streaming.cli.log_option import log_option
from streaming.cli.output import wall_ms, write_json
from streaming.cli.serving import ComingJob, judged, served
from streaming.cli.settings import Time, config_option, setting
from streaming.cli.starting import looks, started_job
from streaming.failure import JobFailed
from streaming.history import HistoryInUse, HistoryUnwritable
from streaming.job import Job
from streaming.settings import (
    EARLIEST,
    LABEL_BUDGET,
    LATEST,
    BatchLimits,
    HistorySettings,
    JobSettings,
    SessionSettings,
    SourceSettings,
)

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
@channels_option
@history_options
@reading_options
@log_option(exposed=True)
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
    channels: Path | None,
    history: HistorySettings,
    shuffle_partitions: int,
    log_format: LogFormat,
) -> None:
    """Read SDS traffic from Kafka and show how reliable each channel is.

    Serves the status page at / and Prometheus metrics at /metrics, from before it
    has read anything; on a terminal a table shows the most troubled channels. Kill it
    at any moment: started again on the same checkpoint, every figure goes on. SIGHUP
    lets it read --channels again.
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
        channel_table=channel_table(channels),
    )
    session = SessionSettings(shuffle_partitions=shuffle_partitions)
    coming = ComingJob()
    try:
        with (
            read_on_hangup(channels) as hangup,
            # Before anything starts: that takes long enough to be asked meanwhile.
            served(coming, host, metrics_port) as url,
            started_job(session, settings, coming.board) as (job, ending),
            heartbeats(source.kafka) if heartbeat else nullcontext(),
        ):
            coming.job = job
            with following(Console(), log_format, url, _progress_line) as show:
                for _ in looks(job, ending):
                    if hangup is not None and (table := hangup.news()) is not None:
                        job.set_channel_table(table)
                    show(judged(job.board, wall_ms))
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
        f"{counted(len(snapshot.channels), 'channel')}"
    )
