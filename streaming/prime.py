"""Reads totals and position from the checkpoint, for an exporter that starts."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr

from sds_core.observer import blob
from sds_core.observer.kinds import Kinds
from streaming.position import Position


def read_totals(
    spark: SparkSession, checkpoint: Path, kinds: Kinds
) -> dict[str, bytes]:
    """Return packed totals by key as of the last committed batch; empty without one.

    Args:
        spark: Reads the checkpoint.
        checkpoint: Directory of the checkpoint.
        kinds: Kinds of view that this job knows.

    Raises:
        sds_core.observer.kinds.UnknownKind: The checkpoint has views of an unregistered
            kind.
        sds_core.observer.blob.UnknownBlobVersion: A newer release wrote them.
    """
    if _last_commit(checkpoint) is None:
        return {}
    with TemporaryDirectory(prefix="sds-monitor-") as directory:
        # Spark's reader does not find a checkpoint with a space or a percent sign in
        # its path.
        link = Path(directory) / "checkpoint"
        link.symlink_to(checkpoint.absolute(), target_is_directory=True)
        return _read_state(spark, link, kinds)


def _read_state(
    spark: SparkSession, checkpoint: Path, kinds: Kinds
) -> dict[str, bytes]:
    length = f"conv(hex(substring(blob, 1, {blob.LENGTH_BYTES})), 16, 10)"
    state = (
        spark.read.format("statestore")
        .load(str(checkpoint))
        .select(col("key.key"), col("value.groupState.*"))
        # Cut in the JVM: only the totals are worth carrying over.
        .select(
            "key",
            "version",
            expr(f"substring(blob, 1, {blob.LENGTH_BYTES} + int({length}))").alias(
                "head"
            ),
        )
    )
    totals = {}
    for row in state.collect():
        kind, _ = kinds.split(row.key)
        blob.check_version(row.version, kind.blob_version)
        totals[row.key] = blob.totals_part(bytes(row.head))
    return totals


def read_position(checkpoint: Path) -> Position | None:
    """Return the end of the last committed batch; None without one."""
    batch = _last_commit(checkpoint)
    if batch is None:
        return None
    # Spark's offset log: a version, the batch's metadata, one line per source.
    *_, offsets = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return Position.from_json(json.loads(offsets))


def _last_commit(checkpoint: Path) -> int | None:
    commits = checkpoint / "commits"
    if not commits.is_dir():
        return None
    return max(
        (int(file.name) for file in commits.iterdir() if file.name.isdigit()),
        default=None,
    )
