"""Decoders of files of records, and of recordings."""

from __future__ import annotations

import gzip
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from connectors.files.record_file import UnreadableFile, read_records
from connectors.files.record_lines import BadLine, format_line, parse_line
from connectors.kafka.producer import target_partition, topic_record
from sds_core.observer.record import RawRecord
from tests.support.frames import START_MS
from tests.support.fuzz.documents import read_json, write_json
from tests.support.fuzz.errors import check_text
from tests.support.fuzz.mutation import changed_bytes, changed_document
from tests.support.fuzz.target import Target
from tests.support.fuzz.targets.rest import genuine_answers
from tests.support.fuzz.targets.wire import genuine_frames

_PARTITIONS = 4


def genuine_lines() -> list[bytes]:
    """Lines of files: records with all kinds of keys and headers, and Waku messages."""
    frames = [value for value in genuine_frames() if len(value) < 1_000]
    records = [
        RawRecord(3, 17, START_MS, b"channel", frames[0],
                  (("observer", b"tap"), ("seq", b"7"), ("meta", b"\xff\0"))),
        RawRecord(0, 0, START_MS, b"\xff", None, (("source", None),)),
        RawRecord(0, -1, START_MS, None, frames[1], ()),
    ]  # fmt: skip
    return [*(format_line(one) for one in records), *genuine_answers()]


def _genuine_files() -> list[bytes]:
    lines = b"".join(genuine_lines()[:3])
    return [lines, lines + b"\n  \n", lines.replace(b"\n", b"\r\n")]


def _changed_line(random: Random, value: bytes, other: bytes) -> bytes:
    return changed_document(random, value, read_json, write_json)


def _changed_file(
    pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]
) -> Callable[[Random, bytes, bytes], bytes]:
    """Change one line and pack the file again; else change the packed bytes."""

    def change(random: Random, value: bytes, other: bytes) -> bytes:
        if random.random() < 0.5:
            return changed_bytes(random, value, other)
        try:
            lines = unpack(value).split(b"\n")
        except (OSError, EOFError, lzma.LZMAError, ValueError):
            return changed_bytes(random, value, other)
        at = random.randrange(len(lines))
        lines[at] = _changed_line(random, lines[at], b"")
        return pack(b"\n".join(lines))

    return change


def _check_line(line: bytes) -> bool:
    try:
        records = parse_line(line)
    except BadLine as error:
        check_text(str(error))
        return False
    for record in records:
        _check_record(record)
    return True


def _check_record(record: RawRecord) -> None:
    """It is written as it was read, and can be written to a topic."""
    assert parse_line(format_line(record)) == [record]
    partition = target_partition(record, _PARTITIONS)
    assert 0 <= partition < _PARTITIONS
    topic_record(record, partition)


def _check_file(suffix: str) -> Callable[[bytes], bool]:
    def check(data: bytes) -> bool:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / f"records.jsonl{suffix}"
            path.write_bytes(data)
            try:
                for record in read_records(path):
                    _check_record(record)
            except UnreadableFile as error:
                check_text(str(error), path)
                return False
        return True

    return check


def _file_target(
    name: str,
    suffix: str,
    pack: Callable[[bytes], bytes],
    unpack: Callable[[bytes], bytes],
) -> Target:
    return Target(
        name,
        lambda: [pack(one) for one in _genuine_files()],
        _changed_file(pack, unpack),
        _check_file(suffix),
        # Whatever it unpacks, a decompressor of xz takes 8 MB.
        fixed_memory=20_000_000,
    )


def _plain(data: bytes) -> bytes:
    return data


TARGETS = (
    Target("record-line", genuine_lines, _changed_line, _check_line),
    _file_target("record-file", "", _plain, _plain),
    _file_target("record-file-xz", ".xz", lzma.compress, lzma.decompress),
    _file_target("record-file-gz", ".gz", gzip.compress, gzip.decompress),
)
