"""Reads and writes small files of a checkpoint, and reports damage.

docs/checkpoint.md lists all files of a checkpoint.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.storage.disk import make_directory, replacing
from sds_core.text import printable

RESTORE = "restore the checkpoint from a backup, or use a new --checkpoint"

IDENTITY = "job.json"
LEDGER = "ledger.sqlite"
"""Names of the files in the checkpoint's directory ``monitor/``.

Releases up to 0.15 use other names.
"""

_LOSS = (
    "the incidents and shown verdicts of the last day, the rows that waited in it for "
    "the history, the page's figures of the last hour, the definite acknowledgements "
    "so far, the labels given so far, and what forgotten channels had counted, so that "
    "the sums over all channels fall"
)

_MAGIC = b"crc\0"
_WORD_BYTES = 4


class DamagedCheckpoint(ValueError):
    """A part of the checkpoint is damaged or missing, so another start also fails.

    The message is a sentence of `place` and `problem`, then a colon and `remedy`.
    """

    def __init__(self, place: Path | str, problem: str, remedy: str = RESTORE) -> None:
        # Unpickling calls the class with `args`, so `args` has the same arguments.
        super().__init__(place, problem, remedy)
        self.place = place
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        """The error in one line.

        Unprintable characters, which names of files may contain, are escaped.
        """
        return printable(f"{self.place} {self.problem}: {self.remedy}")


def state_of(key: str) -> str:
    """Return a phrase for messages that names the stored state of the view `key`."""
    return f"the state of view {key!r:.200} in the checkpoint"


def do_without(path: Path) -> str:
    """Return the remedy if a file of ``monitor/`` is damaged or missing.

    The user can restore a backup, or let the job continue without the file.
    """
    return (
        "restore the checkpoint from a backup; or move this file away and remove its "
        f'name from "files" in {path.with_name(IDENTITY)}, to continue without '
        f"{_LOSS if path.name == LEDGER else 'what it holds'}"
    )


@contextmanager
def must_be_readable(path: Path, remedy: str = RESTORE) -> Iterator[None]:
    """If the block cannot read a checkpoint's file, raise an error with a remedy.

    Raises:
        DamagedCheckpoint: The file is missing, or cannot be read.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise DamagedCheckpoint(path, "is missing", remedy) from error
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise DamagedCheckpoint(path, problem, remedy) from error


def read_file(path: Path, remedy: str = RESTORE) -> bytes:
    """Return the content of a file of the checkpoint.

    Raises:
        DamagedCheckpoint: The file is missing, empty or unreadable.
    """
    with must_be_readable(path, remedy):
        data = path.read_bytes()
    if not data:
        raise DamagedCheckpoint(path, "is empty", remedy)
    return data


@contextmanager
def decoding(
    path: Path,
    remedy: str = RESTORE,
    # The errors of msgspec, and the errors for invalid text, are ValueErrors.
    errors: tuple[type[Exception], ...] = (ValueError,),
) -> Iterator[None]:
    """If the block cannot decode a checkpoint's file, raise an error with a remedy.

    Raises:
        DamagedCheckpoint: The file has the wrong content.
    """
    try:
        yield
    except errors as error:
        # A decoder's message may quote the file, with its unprintable characters.
        reason = f"{error!s:.160}".encode("unicode_escape").decode()
        problem = f"has the wrong content ({reason})"
        raise DamagedCheckpoint(path, problem, remedy) from error


def write_atomically(path: Path, text: str) -> None:
    """Replace a file's text atomically; create the directory if it is missing.

    After a power failure, the file has either its old text or the new text. For special
    files and links, see `replacing`.

    Raises:
        OSError: The file cannot be written; no temporary file remains.
    """
    make_directory(path.parent)
    with replacing(path) as file:
        file.write(text.encode())


def remove_stale_checksums(directory: Path) -> None:
    """Remove the checksum files of missing files.

    Otherwise, Spark would check a new file of the same name against the old checksum.
    """
    for checksum in directory.glob(".*.crc"):
        if not checksum.with_name(checksum.name[1 : -len(".crc")]).exists():
            checksum.unlink()


def check_file(path: Path, remedy: str = RESTORE) -> None:
    """Check a file that Spark has written.

    Raises:
        DamagedCheckpoint: The file is missing, empty or unreadable, or does not have
            the checksum that is stored beside it.
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
    """Whether a file matches the checksum that Hadoop's local file system stores.

    The checksum of a file ``NAME`` is in ``.NAME.crc``, which has the text ``crc``, a
    zero byte, the length of a chunk in bytes, and the CRC-32 of each chunk of ``NAME``.
    Numbers have 4 bytes, big-endian. As in Hadoop, a file whose checksum is missing or
    unreadable also counts as valid.
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
