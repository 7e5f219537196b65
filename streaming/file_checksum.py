"""Checksums that Hadoop's local file system stores beside each file that Spark writes.

``.NAME.crc`` belongs to ``NAME``: ``crc`` and a zero byte, the size of a chunk in
bytes, and the CRC-32 of each chunk. Numbers have 4 bytes, big-endian.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from streaming.damage import RESTORE, DamagedCheckpoint, must_be_readable

_MAGIC = b"crc\0"
_WORD_BYTES = 4


def remove_stale_checksums(directory: Path) -> None:
    """Remove checksums of files that are gone.

    Spark could not write these files again: it takes their checksums for those of
    another query.
    """
    for checksum in directory.glob(".*.crc"):
        if not checksum.with_name(checksum.name[1 : -len(".crc")]).exists():
            checksum.unlink()


def check_file(path: Path, remedy: str = RESTORE) -> None:
    """Check a file that Spark has written.

    Raises:
        DamagedCheckpoint: It is missing, empty, cannot be read, or does not have the
            checksum that is stored beside it.
    """
    with must_be_readable(path, remedy):
        size = path.stat().st_size
        right = has_its_checksum(path)
    if not size:
        raise DamagedCheckpoint(path, "is empty", remedy)
    if not right:
        problem = f"does not have the checksum in .{path.name}.crc"
        raise DamagedCheckpoint(path, problem, remedy)


def has_its_checksum(path: Path) -> bool:
    """Whether a file has the checksum that is stored beside it.

    As for Hadoop, a file without a readable checksum is right.
    """
    try:
        stored = path.with_name(f".{path.name}.crc").read_bytes()
    except OSError:
        return True
    size = int.from_bytes(stored[_WORD_BYTES : 2 * _WORD_BYTES], "big")
    if not stored.startswith(_MAGIC) or not size:
        return True
    found = bytearray()
    with path.open("rb") as file:
        while chunk := file.read(size):
            found += zlib.crc32(chunk).to_bytes(_WORD_BYTES, "big")
    return bytes(found) == stored[2 * _WORD_BYTES :]
