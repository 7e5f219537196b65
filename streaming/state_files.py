"""Checks the files that hold the state of a checkpoint.

``state/0/P`` holds partition P of the state. ``V.changelog`` has the changes that batch
V - 1 made. Some versions have a snapshot of RocksDB: ``V.zip``, and large files in the
directory ``SSTs``. To read version V, Spark loads the newest undamaged snapshot of a
version up to V, if any. Spark then applies the changelogs of the later versions up to
V.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from streaming.batch_log import BatchLog
from streaming.damage import DamagedCheckpoint, check_file, decoding

_COMPRESSED = b"LZ4Block"
_COMPRESSED_END = bytes(12)
"""First bytes and last bytes of a compressed changelog.

The last bytes are the lengths and the checksum of an empty block.
"""


_BAD_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    # Raised if a damaged byte looks like a zip version that Python does not support, or
    # like a mark of an encrypted file.
    RuntimeError,
    ValueError,
)
"""Errors that `zipfile` raises when it reads a damaged archive."""


class _OperatorMetadata(msgspec.Struct, rename="camel"):
    state_store_info: list[object]


class _SharedFile(msgspec.Struct, rename="camel"):
    dfs_sst_file_name: str
    size_bytes: int


class _SnapshotMetadata(msgspec.Struct, rename="camel"):
    sst_files: list[_SharedFile] = []


def check_state(checkpoint: Path, log: BatchLog) -> None:
    """Check that no needed file is missing, and that changelogs are valid.

    To be quick, this check does not open snapshots.

    Raises:
        DamagedCheckpoint: A file is missing or damaged.
    """
    if log.committed is None:
        return
    operator = checkpoint / "state" / "0"
    _check_metadata(operator / "_metadata" / "metadata")
    check_file(operator / "0" / "_metadata" / "schema")
    _check_no_more_partitions(operator, log)
    version = log.committed + 1
    for partition in range(log.state_partitions):
        directory = operator / str(partition)
        for changelog in _needed_changelogs(directory, version):
            try:
                _check_changelog(changelog)
            except DamagedCheckpoint as error:
                if changelog.stem != str(version) or log.committed != log.planned:
                    raise
                commit = checkpoint / "commits" / str(log.committed)
                what = f"it and {commit}" if changelog.exists() else commit
                remedy = f"delete {what}, and the job repeats this batch"
                raise DamagedCheckpoint(error.place, error.problem, remedy) from error


def find_damaged_snapshot(checkpoint: Path, log: BatchLog) -> DamagedCheckpoint | None:
    """Return the first damage in a snapshot that Spark reads; None if all are valid."""
    for snapshot in _newest_snapshots(checkpoint, log):
        try:
            _check_snapshot(snapshot)
        except DamagedCheckpoint as error:
            return error
    return None


def tables_without_checksum(checkpoint: Path, log: BatchLog) -> Iterator[Path]:
    """Yield the snapshots' large files that have no checksum file.

    Only the snapshots that Spark reads are searched.
    """
    for snapshot in _newest_snapshots(checkpoint, log):
        try:
            tables = _tables(snapshot)
        except (OSError, DamagedCheckpoint):
            # Spark does not read a damaged snapshot. Spark reads an older snapshot, if
            # any, and changelogs instead.
            continue
        for table, _ in tables:
            if table.exists() and not table.with_name(f".{table.name}.crc").exists():
                yield table


def _newest_snapshots(checkpoint: Path, log: BatchLog) -> Iterator[Path]:
    """Yield the newest snapshot of each state partition that has a snapshot.

    If an uncommitted batch has written a snapshot, this snapshot is ignored, because
    Spark repeats the batch and writes the snapshot again.
    """
    version = 0 if log.committed is None else log.committed + 1
    for partition in range(log.state_partitions):
        directory = checkpoint / "state" / "0" / str(partition)
        newest = _newest_snapshot(directory, version)
        if newest:
            yield directory / f"{newest}.zip"


def _newest_snapshot(directory: Path, version: int) -> int:
    found = (one for one in _versions(directory, "zip") if one <= version)
    return max(found, default=0)


def _needed_changelogs(directory: Path, version: int) -> Iterator[Path]:
    if not directory.is_dir():
        raise DamagedCheckpoint(directory, "is missing")
    snapshot = _newest_snapshot(directory, version)
    changelogs = _versions(directory, "changelog")
    if not snapshot and changelogs and min(changelogs) > 1:
        problem = f"holds no snapshot before {min(changelogs)}.changelog"
        raise DamagedCheckpoint(directory, problem)
    for one in range(snapshot + 1, version + 1):
        yield directory / f"{one}.changelog"


def _versions(directory: Path, ending: str) -> list[int]:
    return [
        int(path.stem) for path in directory.glob(f"*.{ending}") if path.stem.isdigit()
    ]


def _check_no_more_partitions(operator: Path, log: BatchLog) -> None:
    for directory in operator.glob("[0-9]*"):
        if directory.name.isdigit() and int(directory.name) >= log.state_partitions:
            problem = (
                "is an extra partition: the number of partitions in "
                f"offsets/{log.planned} is {log.state_partitions}"
            )
            raise DamagedCheckpoint(directory, problem)


def _check_metadata(path: Path) -> None:
    if not path.exists():
        return
    remedy = "delete the damaged file; Spark makes a new file, and nothing is lost"
    check_file(path, remedy)
    with decoding(path, remedy, (ValueError, LookupError)):
        lines = path.read_bytes().decode().splitlines()
        msgspec.json.decode(lines[-1], type=_OperatorMetadata)


def _check_changelog(path: Path) -> None:
    check_file(path)
    with path.open("rb") as file:
        if file.read(len(_COMPRESSED)) == _COMPRESSED:
            file.seek(-len(_COMPRESSED_END), 2)
            if file.read() != _COMPRESSED_END:
                problem = "ends too early"
                raise DamagedCheckpoint(path, problem)


def _check_snapshot(path: Path) -> None:
    check_file(path)
    for table, size in _tables(path):
        check_file(table)
        if table.stat().st_size != size:
            problem = f"has the wrong size: {path} lists {size} bytes"
            raise DamagedCheckpoint(table, problem)


def _tables(snapshot: Path) -> list[tuple[Path, int]]:
    with decoding(snapshot, errors=_BAD_ZIP), zipfile.ZipFile(snapshot) as archive:
        metadata = archive.read("metadata").splitlines()[-1]
        found = msgspec.json.decode(metadata, type=_SnapshotMetadata)
    directory = snapshot.parent / "SSTs"
    return [
        (directory / one.dfs_sst_file_name, one.size_bytes) for one in found.sst_files
    ]
