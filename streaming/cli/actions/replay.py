"""Replays a past window of a topic, separately from the live job."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import click

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TimedOffset, TopicOffsets
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.protocols import ROOT_KIND
from sds_core.observer.snapshot import Snapshot
from sds_core.text import iso_time
from streaming.admission import ends_of_window
from streaming.cli.config_file import observer_settings
from streaming.cli.exit_codes import Failed
from streaming.cli.live import logged_progress
from streaming.cli.log import logger
from streaming.cli.reading_options import ReadingSettings
from streaming.cli.starting import (
    every_second,
    refusals_explained,
    started_job,
    write_report,
)
from streaming.directories import told_unwritable
from streaming.job import Job
from streaming.settings import JobSettings, SourceSettings, Window


def replay(
    kafka: KafkaSettings,
    window: Window,
    report: Path,
    report_detail: bool,
    scratch: Path | None,
    reading: ReadingSettings,
) -> None:
    """Run a job that reads only the records of a window, and write its report.

    The checkpoint of the job is temporary.

    Raises:
        click.ClickException: The report would be empty, a signal came before the job
            had read the window, the job failed, or Spark runs on a cluster and
            `scratch` is None.
    """
    if scratch is None and reading.session.is_cluster:
        message = (
            "a cluster needs --scratch: give a directory that all executors and this "
            "command mount at the same path"
        )
        raise click.UsageError(message)
    source = reading.source(kafka, window=window)
    warn_of_deleted_records(kafka, window.first_ms, "the window may be cut short")
    nothing = (
        f"topic {kafka.topic} has no record from {iso_time(window.first_ms)} to "
        f"{iso_time(window.last_ms)}, so no report is written"
    )
    # This check comes before Spark starts, because the start takes ten seconds or more.
    if not _holds_records(source, window):
        raise click.UsageError(nothing)
    with (
        refusals_explained(),
        _temporary_directory(scratch) as directory,
        started_job(
            reading.session,
            # This job reads its window to the end, and writes nothing to Kafka.
            JobSettings(
                source,
                directory,
                until_caught_up=True,
                report_detail=report_detail,
                dead_letter_topic=None,
                group=None,
                observer=observer_settings(),
                # The job forgets no channel, because the report must contain all.
                forget_days=0,
            ),
        ) as (job, ending),
    ):
        if not read_to_the_end(job, ending):
            message = "a part of the window has not been read: no report is written"
            raise Failed(message)
        if _is_empty(job.board.snapshot):
            raise click.UsageError(nothing)
        write_report(job, report)


@contextmanager
def _temporary_directory(scratch: Path | None) -> Iterator[Path]:
    """Yield a new directory in `scratch`, by default beside other temporary files.

    Raises:
        DirectoryUnwritable: No directory can be created there.
    """
    place = Path(tempfile.gettempdir()) if scratch is None else scratch.absolute()
    with ExitStack() as stack:
        with told_unwritable("scratch", place):
            made = tempfile.TemporaryDirectory(prefix="sds-monitor-replay-", dir=place)
            directory = Path(stack.enter_context(made))
        yield directory


def _holds_records(source: SourceSettings, window: Window) -> bool:
    """Return whether a job over the window would read any record.

    Usually, Kafka's time index gives the answer: for each partition, the first record
    whose time is in or after the window. If this record's time is after the window,
    records at later offsets may still have times in the window. The job would read such
    records, so this function reads the times of the records at later offsets.
    """
    with closing(TopicOffsets(source.kafka)) as offsets:
        ends = offsets.latest(offsets.partitions())
        begins = offsets.first_at_or_after(list(ends), window.first_ms)
        if any(at.timestamp_ms in window for at in begins.values()):
            return True
        ends = ends_of_window(offsets, ends, window, partial(_read_times, source))
    ranges = [OffsetRange(p, at.offset, ends[p]) for p, at in begins.items()]
    return any(at.timestamp_ms in window for at in _times(source, *ranges))


def _read_times(
    source: SourceSettings, partition: int, start: int, end: int
) -> list[TimedOffset]:
    return list(_times(source, OffsetRange(partition, start, end)))


def _times(source: SourceSettings, *ranges: OffsetRange) -> Iterator[TimedOffset]:
    for records in fetch(source.client, source.kafka, ranges):
        for record in records:
            yield TimedOffset(record.offset, record.timestamp_ms)


def _is_empty(snapshot: Snapshot) -> bool:
    channels = snapshot.views[ROOT_KIND.prefix].totals
    return not (channels or snapshot.taps or snapshot.undecodable)


def warn_of_deleted_records(kafka: KafkaSettings, first_ms: int, meaning: str) -> None:
    """Log the partitions from which Kafka may have deleted records after `first_ms`."""
    with closing(TopicOffsets(kafka)) as offsets:
        earliest = offsets.earliest(offsets.partitions())
        latest = offsets.latest(list(earliest))
        begins = offsets.first_at_or_after(list(earliest), first_ms)
    for partition, first in sorted(earliest.items()):
        at = begins.get(partition)
        if 0 < first >= (latest[partition] if at is None else at.offset):
            logger.warning(
                "partition %s no longer has records%s: %s",
                kafka.partition_name(partition),
                "" if at is None else f" before {iso_time(at.timestamp_ms)}",
                meaning,
            )


def read_to_the_end(job: Job, ending: threading.Event) -> bool:
    """Log a job's progress until it ends; return whether it has read all records."""
    with logged_progress(_progress_line) as display:
        for _ in every_second(job, ending):
            display(job.board.snapshot)
    return not job.query.isActive


def _progress_line(snapshot: Snapshot) -> str:
    time = iso_time(snapshot.clock_ms) if snapshot.clock_ms else "nothing yet"
    return (
        f"{snapshot.job.records:,} records read, up to {time}, "
        f"{len(snapshot.views[ROOT_KIND.prefix].totals):,} channels"
    )
