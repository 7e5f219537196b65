"""Reads from the checkpoint the totals that the exporter publishes at startup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import col, expr

from sds_core.observer import blob
from sds_core.observer.kinds import Kinds
from streaming.batch_log import BatchLog
from streaming.damage import DamagedCheckpoint, state_of
from streaming.executors import has_executors, location
from streaming.failure import JobFailed, cause_of
from streaming.state_files import find_damaged_snapshot, tables_without_checksum

_LATE_MS = 3_600_000 * 12
"""A timeout that is later than expected by at most this time, ms, is accepted.

Half a day is half of the minimum difference between two values of `forget_ms`.
"""

_DAMAGE = re.compile(
    "EOFException|FileNotFoundException|ChecksumException|ZipException|LZ4Exception|"
    "NegativeArraySizeException|IndexOutOfBounds|BufferUnderflow|STDS_FAILED|"
    "AUTO_SNAPSHOT_REPAIR_FAILED|corrupt|checksum",
    re.IGNORECASE,
)
"""Texts that occur in Spark's errors about damaged files.

They do not occur in its errors about a full disk.
"""


class StoredView(NamedTuple):
    """Encoded totals of a view, and its timeout, Unix ms; None if it has no timeout."""

    totals: bytes
    timeout_ms: int | None


def find_unreviewed(
    views: Mapping[str, StoredView], kinds: Kinds, forget_ms: int
) -> list[str]:
    """Return the keys of views whose stored timeout is missing, or is too late.

    Such a timeout comes from a job with a longer `forget_ms`, or from a release before
    0.8.0. If `forget_ms` is 0, views are never forgotten, so no key is returned.
    """
    if not forget_ms:
        return []
    found = []
    for key, view in views.items():
        kind, _ = kinds.split(key)
        if kind.remains is None or kind.ignores_forget_ms:
            continue
        last_ms = blob.unpack_totals(view.totals, kind.totals).last_event_ms
        # A timeout counts from the job's clock at the latest record. This clock may be
        # a little later than the record's own time.
        until_ms = (last_ms or 0) + forget_ms + _LATE_MS
        if view.timeout_ms is None or view.timeout_ms > until_ms:
            found.append(key)
    return found


def read_views(
    spark: SparkSession, checkpoint: Path, log: BatchLog, kinds: Kinds
) -> dict[str, StoredView]:
    """Return all views by key, as of the last committed batch; {} without such a batch.

    Raises:
        sds_core.observer.kinds.UnknownKind: A view is of an unregistered kind.
        sds_core.observer.blob.UnknownBlobVersion: A newer release wrote the state.
        DamagedCheckpoint: The state is damaged.
        JobFailed: Spark failed for a reason other than damage.
    """
    if log.committed is None:
        return {}
    for table in tables_without_checksum(checkpoint, log):
        _verify(spark, table)
    with _readable(spark, checkpoint) as place:
        try:
            return _read_state(spark, place, kinds)
        except (Py4JJavaError, PySparkException) as error:
            cause = cause_of(error).replace(place, str(checkpoint))
            if not _DAMAGE.search(cause):
                raise JobFailed(cause) from error
            damaged = find_damaged_snapshot(checkpoint, log)
            if damaged is None:
                problem = f"cannot be read ({cause})"
                damaged = DamagedCheckpoint(checkpoint / "state", problem)
            raise damaged from error


@contextmanager
def _readable(spark: SparkSession, checkpoint: Path) -> Iterator[str]:
    """Return a path of the checkpoint that Spark's reader accepts.

    The reader does not find a checkpoint whose path has a space or a percent sign, so a
    temporary link replaces the path. On a cluster, executors would not see the link.
    The path is used directly there, because paths with such signs were refused earlier.
    """
    if has_executors(spark):
        yield location(spark, checkpoint)
        return
    with TemporaryDirectory(prefix="sds-monitor-") as directory:
        link = Path(directory) / "checkpoint"
        link.symlink_to(checkpoint.absolute(), target_is_directory=True)
        yield str(link)


def _verify(spark: SparkSession, table: Path) -> None:
    """Check the checksums of all blocks in a table file of RocksDB.

    Without this check, Spark would stop reading the table at the first damaged block,
    and the views after this block would be missing.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - no public way to RocksDB
    rocksdb = jvm.org.rocksdb
    rocksdb.RocksDB.loadLibrary()
    options = rocksdb.Options()
    reader = rocksdb.SstFileReader(options)
    try:
        reader.open(str(table))
        reader.verifyChecksum()
    except Py4JJavaError as error:
        problem = f"is damaged ({cause_of(error)})"
        raise DamagedCheckpoint(table, problem) from error
    finally:
        reader.close()
        options.close()


def _read_state(spark: SparkSession, place: str, kinds: Kinds) -> dict[str, StoredView]:
    length = _number(f"substring(blob, 1, {blob.LENGTH_BYTES})")
    length = f"int(least({length}, length(blob)))"
    end = f"length(blob) - {blob.CHECKSUM_BYTES}"
    state = (
        spark.read.format("statestore")
        .load(place)
        .select(
            col("key.key"), col("value.groupState.*"), col("value.timeoutTimestamp")
        )
        # Only the totals of each state are passed to Python. The JVM therefore cuts
        # them out, and computes the checksum of the whole state.
        .select(
            "key",
            "version",
            "timeoutTimestamp",
            expr(f"substring(blob, 1, {blob.LENGTH_BYTES} + {length})").alias("head"),
            expr(f"crc32(substring(blob, 1, {end}))").alias("checksum"),
            expr(_number(f"substring(blob, 1 + {end})")).alias("stored_checksum"),
        )
    )
    return {
        row.key: StoredView(
            _totals(row, kinds),
            # If a view has no timeout, Spark writes -1.
            row.timeoutTimestamp if row.timeoutTimestamp > 0 else None,
        )
        for row in state.collect()
    }


def _number(binary: str) -> str:
    return f"bigint(conv(hex({binary}), 16, 10))"


def _totals(row: Row, kinds: Kinds) -> bytes:
    kind, _ = kinds.split(row.key)
    blob.check_version(row.version, kind.blob_version)
    packed = blob.totals_part(bytes(row.head))
    if row.version >= kind.checksum_since:
        if row.checksum != row.stored_checksum:
            raise DamagedCheckpoint(state_of(row.key), blob.WRONG_CHECKSUM)
        return packed
    try:
        blob.unpack_totals(packed, kind.totals)
    except msgspec.MsgspecError as error:
        problem = f"cannot be decoded ({error})"
        raise DamagedCheckpoint(state_of(row.key), problem) from error
    return packed
