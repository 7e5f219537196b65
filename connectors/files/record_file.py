"""Reads a file of records line by line, and writes a file completely or not at all."""

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
from connectors.storage.disk import remove_abandoned, replacing
from sds_core.observer.record import RawRecord

_MAX_LINE_BYTES = 80 * 1024 * 1024
"""Maximum length of a line. The largest record has 32 MiB, which take 64 MiB as
hexadecimal digits."""

_XZ_PRESET = 3
_GZ_LEVEL = 6
"""Compression levels of xz and gzip. If frames contain Bloom filters, these levels are
over ten times as fast as the default levels. The files are nearly as small, because the
filters of consecutive frames differ in few bits."""

_BROKEN_FILE = (OSError, EOFError, lzma.LZMAError, zlib.error)


class UnreadableFile(ValueError):
    """A file of records cannot be read.

    If `line` is 0, the error concerns no particular line.
    """

    def __init__(self, path: Path, line: int, detail: str) -> None:
        where = f"{path}, line {line}" if line else f"{path}"
        super().__init__(f"{where}: {detail}")


def read_records(path: Path) -> Iterator[RawRecord]:
    """Yield a file's records in the order of the file.

    A file whose name ends in `.xz` or `.gz` is decompressed. At most one line is in
    memory at a time.

    Raises:
        UnreadableFile: The file cannot be read, or a line holds no record. The records
            of all lines before the error have already been yielded.
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
    """Write records to a file; return the number of records written.

    The file appears, or replaces an older file, only when it is complete. A device or a
    pipe gets the records as they come. A file whose name ends in `.xz` or `.gz` is
    compressed. What killed processes left in the directory is removed.

    Raises:
        OSError: The file cannot be written.
    """
    remove_abandoned(path)
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
