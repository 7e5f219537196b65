"""``sds-monitor replay``."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import click

from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import Client, KafkaSettings
from sds_core.observer.snapshot import Snapshot
from sds_core.text import iso_time
from streaming.cli.kafka_options import kafka_options, topic_option
from streaming.cli.log import logger
from streaming.cli.log_option import log_option
from streaming.cli.progress import progress_lines
from streaming.cli.run import as_click_error, reading_options, write_report
from streaming.cli.settings import Time, config_option, setting
from streaming.cli.starting import looks, started_job
from streaming.failure import JobFailed
from streaming.settings import (
    BatchLimits,
    JobSettings,
    SessionSettings,
    SourceSettings,
    Window,
)


@click.command(
    "replay",
    epilog="Example: sds-monitor replay --bootstrap localhost:9092 "
    "--from 2026-11-21T08:00:00Z --to 2026-11-21T09:00:00Z --report report.json",
)
@config_option
@kafka_options()
@topic_option
@setting(
    "--from", "first_ms", type=Time(), required=True, help="Earliest time of a record."
)
@setting("--to", "last_ms", type=Time(), required=True, help="Latest time of a record.")
@setting(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="Write the report here.",
)
@setting(
    "--report-detail",
    is_flag=True,
    help="With every incident and definite acknowledgement.",
)
@reading_options
@log_option()
def command(
    kafka: KafkaSettings,
    topic: str,
    first_ms: int,
    last_ms: int,
    report: Path,
    report_detail: bool,
    client: str,
    max_batch_records: int,
    max_batch_bytes: int,
    shuffle_partitions: int,
) -> None:
    """Report on a past window of a topic, as a job begun then would have.

    Reads the records whose time lies in the window, bounds included, and knows
    nothing of what was before. Leaves no trace but the report: the live job, its
    offsets and the dead letters stay as they are.
    """
    if first_ms > last_ms:
        message = f"--from {iso_time(first_ms)} is later than --to {iso_time(last_ms)}"
        raise click.UsageError(message)
    source = SourceSettings(
        kafka,
        client=Client(client),
        limits=BatchLimits(max_batch_records, max_batch_bytes),
        window=Window(first_ms, last_ms),
    )
    _warn_of_gone(source.kafka, first_ms)
    session = SessionSettings(shuffle_partitions=shuffle_partitions)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="sds-monitor-replay-") as directory,
            started_job(
                session, replay_settings(source, Path(directory), report_detail)
            ) as (job, ending),
        ):
            with progress_lines(_progress_line) as show:
                for _ in looks(job, ending):
                    show(job.board.snapshot)
            if job.query.isActive:
                message = "ended before all of the window was read: no report"
                raise click.ClickException(message)
            if is_empty(job.board.snapshot):
                message = (
                    f"topic {topic} holds nothing from {iso_time(first_ms)} "
                    f"to {iso_time(last_ms)}: no report"
                )
                raise click.UsageError(message)
            write_report(job, report)
    except JobFailed as error:
        raise as_click_error(error) from error


def replay_settings(
    source: SourceSettings, checkpoint: Path, report_detail: bool = False
) -> JobSettings:
    """Settings of a job that drains its source and leaves nothing in Kafka.

    Args:
        source: With a window.
        checkpoint: An empty directory of the job's own.
        report_detail: Keep every definite acknowledgement.
    """
    return JobSettings(
        source,
        checkpoint,
        until_caught_up=True,
        report_detail=report_detail,
        dead_letter_topic=None,
        group=None,
    )


def is_empty(snapshot: Snapshot) -> bool:
    """Whether not a single record has been seen, neither of a tap nor a bad one."""
    return not (snapshot.channels or snapshot.taps or snapshot.undecodable)


def _warn_of_gone(kafka: KafkaSettings, first_ms: int) -> None:
    """Say where records of the window may be gone before they could be replayed.

    Raises:
        connectors.kafka.settings.KafkaUnreachable: No broker answered.
        connectors.kafka.settings.TopicMissing: The topic does not exist.
    """
    with closing(TopicOffsets(kafka)) as offsets:
        held = offsets.earliest(offsets.partitions())
        begins = offsets.first_at_or_after(list(held), first_ms)
    for partition, at in sorted(begins.items()):
        if 0 < at.offset <= held[partition]:
            logger.warning(
                "partition %d holds nothing before %s any more: the window may be "
                "cut short",
                partition,
                iso_time(at.timestamp_ms),
            )


def _progress_line(snapshot: Snapshot) -> str:
    time = iso_time(snapshot.clock_ms) if snapshot.clock_ms else "nothing yet"
    return (
        f"{snapshot.job.records:,} records read, up to {time}, "
        f"{len(snapshot.channels):,} channels"
    )
