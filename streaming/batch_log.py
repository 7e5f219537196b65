"""Reads and checks Spark's log of batches in a checkpoint, before Spark reads the log.

Spark writes ``offsets/N`` before it runs batch N, and ``commits/N`` after the batch. If
a file is missing, Spark silently starts from the beginning, or repeats the wrong batch.

Spark does not sync its files to the disk. The job syncs these files before it commits a
batch to the ledger. A power failure can thus lose only the files of a batch that Spark
repeats anyway. A file that a power failure has emptied counts as missing.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from streaming.damage import (
    RESTORE,
    DamagedCheckpoint,
    check_file,
    decoding,
    read_file,
    remove_stale_checksums,
    write_atomically,
)
from streaming.position import PartitionPosition, Position

_log = logging.getLogger("sds-monitor")


SPARKS = ("commits", "metadata", "offsets", "sources", "state")
"""Names of files and directories that Spark writes in a checkpoint."""


class BatchLog(NamedTuple):
    """What Spark's log contains about the newest batches of a checkpoint.

    Attributes:
        planned: Number of the newest batch that was planned; None before the first
            plan.
        committed: Number of the newest batch that was committed: `planned`, or one
            less; None before the first commit.
        position: Position after the last committed batch; None before the first commit.
        state_partitions: Number of partitions of the state; 0 before the first plan.
        planned_records: Number of records of the batch that was planned, but not
            committed; 0 if no such batch exists.
        begin: If the first batch was planned, but not committed, the position at which
            it begins, as `Position.to_json` returns it; otherwise None.
        torn: Files to remove before Spark starts: files that a power failure has
            emptied, and the plan that follows an emptied commit.
    """

    planned: int | None = None
    committed: int | None = None
    position: Position | None = None
    state_partitions: int = 0
    planned_records: int = 0
    begin: dict[str, Any] | None = None
    torn: tuple[Path, ...] = ()


class _QueryMetadata(msgspec.Struct):
    """Content of ``metadata``: the id of Spark's query, which is stored only there."""

    id: str


class _Plan(msgspec.Struct, rename="camel"):
    """Second line of a file in ``offsets``."""

    batch_watermark_ms: int
    conf: dict[str, str]


class _Commit(msgspec.Struct, rename="camel"):
    next_batch_watermark_ms: int = 0


def read_batch_log(checkpoint: Path) -> BatchLog:
    """Read the log of a checkpoint; the checkpoint's directory may be missing.

    Raises:
        DamagedCheckpoint: A file is missing or has the wrong content.
    """
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    committed, torn_commit = _newest_whole(commits)
    planned, torn_plan = _newest_whole(offsets)
    if torn_plan is not None and int(torn_plan.name) == committed:
        # The empty plan is that of a committed batch, and such a plan was synced. No
        # power failure has emptied the plan, so it counts as damaged.
        planned, torn_plan = committed, None
    if torn_commit is not None and planned == (batch := int(torn_commit.name)) + 1:
        # The commit of `batch` is empty, so Spark must repeat `batch` first. The plan
        # of the next batch is removed.
        torn_plan, planned = offsets / str(planned), batch
    torn = tuple(path for path in (torn_commit, torn_plan) if path is not None)
    metadata = checkpoint / "metadata"
    if committed is None and _is_torn(metadata):
        torn = (*torn, metadata)
    else:
        _check_query_metadata(metadata)
    if planned is None:
        if committed is not None:
            problem = f"holds no batch, although {commits} holds batch {committed}"
            raise DamagedCheckpoint(offsets, problem)
        if not torn and any((checkpoint / "state").glob("*/*/*.*")):
            problem = f"holds no batch, although {checkpoint / 'state'} holds state"
            raise DamagedCheckpoint(offsets, problem)
        return BatchLog(torn=torn)
    if committed is None and planned > 0:
        problem = f"holds no batch, although {offsets} holds batch {planned}"
        raise DamagedCheckpoint(commits, problem)
    if committed is not None and committed not in (planned, planned - 1):
        problem = (
            f"ends with batch {committed}, although {offsets} ends with batch {planned}"
        )
        raise DamagedCheckpoint(commits, problem)
    is_committed = committed == planned
    again = "delete it, and the job plans this batch again"
    end, partitions = _read_offsets(
        offsets / str(planned), RESTORE if is_committed else again
    )
    before = None
    if planned > 0:
        before, _ = _read_offsets(offsets / str(planned - 1), RESTORE)
    if committed is not None:
        again = "delete it, and the job repeats this batch"
        path = commits / str(committed)
        _read_lines(path, (_Commit,), again if is_committed else RESTORE)
    if is_committed:
        return BatchLog(planned, committed, end, partitions, torn=torn)
    records = end.records - (0 if before is None else before.records)
    begin = _begin_of(end) if before is None else None
    return BatchLog(planned, committed, before, partitions, records, begin, torn)


def position_of(checkpoint: Path, batch: int) -> str:
    """Return the position after a planned batch, as JSON from Spark's log."""
    return (checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1]


def complete(checkpoint: Path, log: BatchLog) -> None:
    """Repair a locked checkpoint after a file was deleted or torn.

    Spark can then start.
    """
    for path in log.torn:
        why = "follows a batch whose commit is empty"
        if _is_torn(path):
            why = "is empty, probably after a power failure"
        _log.warning("%s %s: the job removes this file", path, why)
        path.unlink()
    if log.committed is None:
        # No batch was committed, so the first batch is repeated. Spark then writes its
        # state again. The existing files of the state may be torn.
        shutil.rmtree(checkpoint / "state", ignore_errors=True)
    if log.planned is None:
        # A plan that failed may have left a temporary file. Spark would then refuse to
        # start.
        for name in ("commits", "offsets"):
            shutil.rmtree(checkpoint / name, ignore_errors=True)
    for name in ("", "offsets", "commits", "state/0/_metadata"):
        remove_stale_checksums(checkpoint / name)
    metadata = checkpoint / "metadata"
    if log.planned is not None and not metadata.exists():
        query = _QueryMetadata(str(uuid.uuid4()))
        write_atomically(metadata, msgspec.json.encode(query).decode())


def _begin_of(end: Position) -> dict[str, Any]:
    partitions = {
        partition: PartitionPosition(here.batch_start)
        for partition, here in end.partitions.items()
    }
    return Position(partitions=partitions, topic_id=end.topic_id).to_json()


def _newest_whole(directory: Path) -> tuple[int | None, Path | None]:
    """Return the newest batch whose file is whole, and the newer file if it is torn."""
    numbers = (int(path.name) for path in directory.glob("*") if path.name.isdigit())
    newest = max(numbers, default=None)
    if newest is None or not _is_torn(path := directory / str(newest)):
        return newest, None
    return (newest - 1 if newest else None), path


def _is_torn(path: Path) -> bool:
    return path.is_file() and not path.read_bytes().strip(b"\0")


def _check_query_metadata(path: Path) -> None:
    if path.exists():
        remedy = "delete the damaged file; the job makes a new one, and nothing is lost"
        data = _read(path, remedy)
        with decoding(path, remedy):
            msgspec.json.decode(data, type=_QueryMetadata)


def _read_offsets(path: Path, remedy: str) -> tuple[Position, int]:
    plan, position = _read_lines(path, (_Plan, dict[str, Any]), remedy)
    with decoding(path, remedy, (ValueError, LookupError)):
        partitions = int(plan.conf["spark.sql.shuffle.partitions"])
        return Position.from_json(position), partitions


def _read_lines(path: Path, types: tuple[type[Any], ...], remedy: str) -> list[Any]:
    data = _read(path, remedy)
    with decoding(path, remedy):
        version, *lines = data.decode().splitlines()
        if not version.startswith("v") or len(lines) != len(types):
            message = f"the version is followed by {len(lines)} lines, not {len(types)}"
            raise ValueError(message)
        return [
            msgspec.json.decode(line, type=type_)
            for line, type_ in zip(lines, types, strict=True)
        ]


def _read(path: Path, remedy: str) -> bytes:
    check_file(path, remedy)
    return read_file(path, remedy)
