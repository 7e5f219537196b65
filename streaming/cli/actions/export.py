"""Writes the records of a topic to a file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from connectors.files.record_file import write_records
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import (
    KafkaSettings,
    KafkaUnreachable,
    RecordsLost,
)
from connectors.kafka.timeline import read_in_order_of_time
from connectors.storage.disk import with_remedy
from sds_core.observer.record import BadHeader, RawRecord, read_headers
from sds_core.text import counted
from sds_core.wire import UndecodableFrame, decode
from streaming.cli.actions.window_ends import find_ends
from streaming.cli.exit_codes import Failed
from streaming.cli.log import logger
from streaming.cli.output import note_written, with_progress
from streaming.cli.signals import EndedBySignal, end_requested
from streaming.settings import Window


def export(
    kafka: KafkaSettings, channels: tuple[str, ...], window: Window, file: Path
) -> None:
    """Write the heartbeats and the channels' records in a window to a file.

    If the export fails or a signal comes, no file is written.

    Raises:
        click.ClickException: The file cannot be written, or Kafka deleted records
            before they were read.
        EndedBySignal: A signal came.
    """
    with closing(TopicOffsets(kafka)) as offsets, end_requested() as ending:
        records = _until_ended(_records(kafka, offsets, window), ending, file)
        wanted = with_progress(_of_channels(records, channels))
        try:
            written = write_records(wanted, file)
        except KafkaUnreachable:
            # The next clause is for errors of the file, but `KafkaUnreachable` is also
            # an OSError.
            raise
        except OSError as error:
            cause = with_remedy(str(error.strerror))
            message = f"{file} cannot be written: {cause}"
            raise Failed(message) from error
        except RecordsLost as error:
            message = (
                f"Kafka's retention deleted records of {kafka.topic}:{error.partition} "
                f"before they were read, so {file} is not written: export again with a "
                "later --from"
            )
            raise Failed(message) from error
    note_written(f"{counted(written, 'record')} of {kafka.topic} in {file}", file)


def _until_ended(
    records: Iterable[RawRecord], ending: threading.Event, file: Path
) -> Iterator[RawRecord]:
    for record in records:
        if ending.is_set():
            logger.error(
                "a signal came before the last record: %s is not written", file
            )
            raise EndedBySignal
        yield record


def _of_channels(
    records: Iterable[RawRecord], channels: tuple[str, ...]
) -> Iterator[RawRecord]:
    """Yield the channels' records, and the heartbeats, which advance the clock.

    If `channels` is empty, all records are yielded.
    """
    keys = {channel.encode() for channel in channels}
    for record in records:
        if not keys or _key_of(record) in keys or _is_heartbeat(record):
            yield record


def _records(
    kafka: KafkaSettings, offsets: TopicOffsets, window: Window
) -> Iterator[RawRecord]:
    """Yield the records whose time is in a window."""
    partitions = offsets.partitions()
    starts = offsets.earliest(partitions)
    ends = find_ends(kafka, offsets, partitions, window)
    if window.first_ms > 0:
        begins = offsets.first_at_or_after(partitions, window.first_ms)
        starts = {p: begins[p].offset if p in begins else ends[p] for p in starts}
    for record in read_in_order_of_time(kafka, offsets, starts, ends):
        if record.timestamp_ms in window:
            yield record


def _key_of(record: RawRecord) -> bytes | None:
    if record.key is not None:
        return record.key
    try:
        return decode(record.value or b"").channel_id.encode()
    except UndecodableFrame:
        return None


def _is_heartbeat(record: RawRecord) -> bool:
    try:
        return read_headers(record.headers).is_heartbeat
    except BadHeader:
        return False
