"""Reads files of records line by line, and writes them completely or not at all."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import BinaryIO

from connectors.files.record_lines import BadLine, format_line, parse_line
from connectors.storage.disk import replacing
from sds_core.observer.record import RawRecord

_MAX_LINE_BYTES = 80 * 1024 * 1024
"""Maximum length of a line: enough for the largest record, 32 MiB, in hexadecimal
digits."""

_XZ_PRESET = 3
_GZ_LEVEL = 6
"""For frames with filters, these compression levels are over ten times as fast as the
defaults. Files are nearly as small, because consecutive filters differ in few bits."""

_BROKEN_FILE = (OSError, EOFError, lzma.LZMAError, zlib.error)


class UnreadableFile(ValueError):
    """A file of records cannot be read; line 0 means no particular line."""

    def __init__(self, path: Path, line: int, detail: str) -> None:
        where = f"{path}, line {line}" if line else f"{path}"
        super().__init__(f"{where}: {detail}")


def read_records(path: Path) -> Iterator[RawRecord]:
    """Read a file's records in file order; `.xz` and `.gz` are decompressed.

    At most one line is in memory.

    Raises:
        UnreadableFile: The file cannot be read, or a line holds no record. The records
            of earlier lines have been returned.
    """
    number = 0
    try:
        with path.open("rb") as packed, _unpacked(packed, path) as file:
            while line := file.readline(_MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > _MAX_LINE_BYTES:
                    detail = f"the line has more than {_MAX_LINE_BYTES} bytes"
                    raise UnreadableFile(path, number, detail)
                if not line.isspace():
                    yield from parse_line(line)
    except BadLine as error:
        raise UnreadableFile(path, number, str(error)) from error
    except _BROKEN_FILE as error:
        detail = getattr(error, "strerror", None) or str(error)
        raise UnreadableFile(path, number and number + 1, detail) from error


def write_records(records: Iterable[RawRecord], path: Path) -> int:
    """Write a file of records; only a complete file appears or replaces an older file.

    A file whose name ends in `.xz` or `.gz` is compressed. Returns the number of
    records written.

    Raises:
        OSError: The file cannot be written.
    """
    written = 0
    with replacing(path) as file, _packed(file, path) as lines:
        for record in records:
            lines.write(format_line(record))
            written += 1
    return written


def _unpacked(
    file: BufferedReader, path: Path
) -> AbstractContextManager[BufferedIOBase]:
    if path.suffix == ".xz":
        return lzma.open(file, "rb")
    if path.suffix == ".gz":
        return gzip.open(file, "rb")
    return nullcontext(file)


def _packed(
    file: BinaryIO, path: Path
) -> AbstractContextManager[BufferedIOBase | BinaryIO]:
    if path.suffix == ".xz":
        return lzma.open(file, "wb", preset=_XZ_PRESET)
    if path.suffix == ".gz":
        return gzip.open(file, "wb", compresslevel=_GZ_LEVEL)
    return nullcontext(file)
