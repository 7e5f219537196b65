"""Prints one frame, decoded."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import click

from connectors.files.record_file import UnreadableFile, read_records
from connectors.files.record_lines import NO_OFFSET, BadLine, parse_line
from connectors.kafka.record_source import RecordSource, parse_source, read_source
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.record import RawRecord
from streaming.cli.exit_codes import ExitCode, wrong_use
from streaming.cli.inspection import inspect_record
from streaming.cli.inspection_text import inspection_facts, print_facts
from streaming.cli.output import print_json, wall_ms
from streaming.cli.values import STDIN

_MOST_BYTES = 80 * 1024 * 1024
_PACKED = (".xz", ".gz")
# First bytes of JSON. No SDS message begins with these bytes, because in protobuf, they
# start a group, and no library writes groups any more.
_JSON = (b"{", b"[")
_BETWEEN_DIGITS = re.compile(r"0[xX]|[\s,:]+")


def inspect(
    kafka: KafkaSettings | None, file: str, is_hex: bool, as_json: bool
) -> None:
    """Print a record from a file, from standard input ("-"), or from a topic.

    A record can be read from a topic only if `kafka` is given.

    Raises:
        click.UsageError: The record cannot be read.
    """
    source = parse_source(file)
    if source is not None and not Path(file).exists():
        record = _read_topic(kafka, source)
    else:
        record = _read_file(file, is_hex)
    inspection = inspect_record(record, wall_ms())
    if as_json:
        print_json(inspection)
    else:
        print_facts(inspection_facts(inspection))
    if inspection["reason"]:
        raise click.exceptions.Exit(ExitCode.FINDING)


def _read_topic(kafka: KafkaSettings | None, source: RecordSource) -> RawRecord:
    if kafka is None:
        message = f"to read {source} from its topic, give --bootstrap"
        raise click.UsageError(message)
    record = read_source(kafka, source)
    if record is None:
        message = (
            f"{source.topic} does not contain {source}: Kafka has deleted the record, "
            "or the record never existed"
        )
        raise click.UsageError(message)
    return record


@wrong_use(UnreadableFile)
def _read_file(name: str, is_hex: bool) -> RawRecord:
    try:
        if name != STDIN and not is_hex and name.endswith(_PACKED):
            return _only(list(islice(read_records(Path(name)), 2)), name)
        with click.open_file(name, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            message = (
                f"{name} has more than {_MOST_BYTES:,} bytes, which is too long for a "
                "frame"
            )
            raise click.UsageError(message)
        if is_hex:
            return _bare(_unhexed(data, name))
        if not data.startswith(_JSON):
            return _bare(data)
        with wrong_use(BadLine, where=f"{name}: "):
            return _only(_parsed(data), name)
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror}"
        raise click.UsageError(message) from error


def _parsed(data: bytes) -> list[RawRecord]:
    """Parse JSON: one value on each line, or one value over several lines."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    try:
        return [record for line in lines[:2] for record in parse_line(line)]
    except BadLine:
        return parse_line(data)


def _only(records: list[RawRecord], name: str) -> RawRecord:
    if len(records) != 1:
        many = "several records" if records else "no record"
        message = f"{name} contains {many}: give a file with one record"
        raise click.UsageError(message)
    return records[0]


def _unhexed(data: bytes, name: str) -> bytes:
    with wrong_use(ValueError, where=f"{name} is not in hexadecimal digits: "):
        return bytes.fromhex(_BETWEEN_DIGITS.sub("", data.decode()))


def _bare(value: bytes) -> RawRecord:
    return RawRecord(0, NO_OFFSET, 0, None, value, ())
