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
"""Half a day: half of the minimum difference between two values of `forget_ms`."""

_DAMAGE = re.compile(
    "EOFException|FileNotFoundException|ChecksumException|ZipException|LZ4Exception|"
    "NegativeArraySizeException|IndexOutOfBounds|BufferUnderflow|STDS_FAILED|"
    "AUTO_SNAPSHOT_REPAIR_FAILED|corrupt|checksum",
    re.IGNORECASE,
)
"""Texts that occur in Spark's errors about damaged files, but not about a full disk."""


class StoredView(NamedTuple):
    """Encoded totals of a view, and its timeout in Unix ms; None for no timeout."""

    totals: bytes
    timeout_ms: int | None


def find_unreviewed(
    views: Mapping[str, StoredView], kinds: Kinds, forget_ms: int
) -> list[str]:
    """Return keys of silent views that Spark would forget too late.

    A job with a longer `forget_ms`, or a release before 0.8.0, has set their timeout.
    With a `forget_ms` of 0, no view is forgotten.
    """
    if not forget_ms:
        return []
    found = []
    for key, view in views.items():
        kind, _ = kinds.split(key)
        if kind.remains is None:
            continue
        last_ms = blob.unpack_totals(view.totals, kind.totals).last_event_ms
        # The latest record may have arrived a little later than its own time.
        until_ms = (last_ms or 0) + forget_ms + _LATE_MS
        if view.timeout_ms is None or view.timeout_ms > until_ms:
            found.append(key)
    return found


def read_views(
    spark: SparkSession, checkpoint: Path, log: BatchLog, kinds: Kinds
) -> dict[str, StoredView]:
    """Return all views after the last committed batch, by key; {} if none exists.

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
    temporary link replaces the path. Executors would not see the link; if executors
    exist, such a path was refused earlier.
    """
    if has_executors(spark):
        yield location(spark, checkpoint)
        return
    with TemporaryDirectory(prefix="sds-monitor-") as directory:
        link = Path(directory) / "checkpoint"
        link.symlink_to(checkpoint.absolute(), target_is_directory=True)
        yield str(link)


def _verify(spark: SparkSession, table: Path) -> None:
    """Check a table of RocksDB by its checksums.

    Without this check, Spark would stop at the first wrong block, and the views after
    this block would be missing.
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
        # Only totals are needed here, so the JVM cuts the states and verifies their
        # checksums.
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
            # Spark writes -1 for no timeout.
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
