"""``sds-monitor export``."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import click

from connectors.files.record_file import write_records
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import (
    Client,
    KafkaSettings,
    KafkaUnreachable,
    RecordsLost,
)
from connectors.kafka.timeline import read_in_order_of_time
from sds_core.observer.record import BadHeader, RawRecord, read_headers
from sds_core.text import counted, iso_time
from sds_core.wire import UndecodableFrame, decode
from streaming.admission import LATE_MS
from streaming.cli.kafka_options import kafka_options, topic_option
from streaming.cli.output import told
from streaming.cli.settings import Time, config_option, setting
from streaming.cli.signals import end_requested
from streaming.settings import Window

_EVER = Window(-(2**63), 2**63 - 1)


@click.command(
    "export",
    epilog="Example: sds-monitor export --bootstrap localhost:9092 "
    "--from 2026-11-21T08:00:00Z --to 2026-11-21T09:00:00Z frames.jsonl.xz",
)
@config_option
@kafka_options()
@topic_option
@setting(
    "--channel",
    "channels",
    multiple=True,
    help="Only this channel, and the heartbeats of the taps; may be repeated.",
)
@setting("--from", "first_ms", type=Time(), help="Earliest time of a record.")
@setting("--to", "last_ms", type=Time(), help="Latest time of a record.")
@click.argument(
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="SDS_MONITOR_FILE",
)
def command(
    kafka: KafkaSettings,
    topic: str,
    channels: tuple[str, ...],
    first_ms: int | None,
    last_ms: int | None,
    file: Path,
) -> None:
    """Write a topic's records to FILE: exact, in order of time, to be shared.

    One record a line; a name that ends with .xz or .gz is packed. Reads what the topic
    holds now, bounds included, and leaves nothing behind in Kafka. The file appears,
    or replaces another, when it is whole; mirror --from-file writes it to a topic.
    """
    window = Window(
        _EVER.first_ms if first_ms is None else first_ms,
        _EVER.last_ms if last_ms is None else last_ms,
    )
    if window.first_ms > window.last_ms:
        message = (
            f"--from {iso_time(window.first_ms)} is later than "
            f"--to {iso_time(window.last_ms)}"
        )
        raise click.UsageError(message)
    with closing(TopicOffsets(kafka)) as offsets, end_requested() as ending:
        records = until_ended(_records(kafka, offsets, window), ending)
        try:
            written = write_records(told(wanted(records, channels), "written"), file)
        except KafkaUnreachable:
            # An OSError too, and not of the file.
            raise
        except OSError as error:
            message = f"{file} cannot be written: {error.strerror}"
            raise click.ClickException(message) from error
        except RecordsLost as error:
            message = (
                f"{topic}:{error.partition} lost records to retention before they were "
                f"read: nothing is written to {file}; export again, with a later --from"
            )
            raise click.ClickException(message) from error
    click.echo(f"{counted(written, 'record')} of {topic} in {file}")


def until_ended(
    records: Iterable[RawRecord], ending: threading.Event
) -> Iterator[RawRecord]:
    """Pass records on until the user ends it.

    Raises:
        click.ClickException: The user did.
    """
    for record in records:
        if ending.is_set():
            message = "ended before all was read: no file"
            raise click.ClickException(message)
        yield record


def wanted(
    records: Iterable[RawRecord], channels: tuple[str, ...]
) -> Iterator[RawRecord]:
    """The records of some channels, and all heartbeats, which move the clock."""
    keys = {channel.encode() for channel in channels}
    for record in records:
        if not keys or _key_of(record) in keys or _is_heartbeat(record):
            yield record


def _records(
    kafka: KafkaSettings, offsets: TopicOffsets, window: Window
) -> Iterator[RawRecord]:
    """The records of a window; late ones as far behind its end as a replay looks."""
    partitions = offsets.partitions()
    starts = offsets.earliest(partitions)
    ends = offsets.latest(partitions)
    if window.first_ms > 0:
        begins = offsets.first_at_or_after(partitions, window.first_ms)
        starts = {p: begins[p].offset if p in begins else ends[p] for p in starts}
    if window.last_ms < _EVER.last_ms - LATE_MS:
        behind = offsets.first_at_or_after(partitions, window.last_ms + LATE_MS + 1)
        for partition, at in behind.items():
            # The end of a transaction has the time of its commit, and tells nothing of
            # the records behind it.
            if _holds_record(kafka, partition, at.offset):
                ends[partition] = min(ends[partition], at.offset)
    for record in read_in_order_of_time(Client.CONFLUENT, kafka, offsets, starts, ends):
        if record.timestamp_ms in window:
            yield record


def _holds_record(kafka: KafkaSettings, partition: int, offset: int) -> bool:
    place = OffsetRange(partition, offset, offset + 1)
    return any(fetch(Client.CONFLUENT, kafka, [place]))


def _key_of(record: RawRecord) -> bytes | None:
    """The channel that a record belongs to, as the monitor reads it."""
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
