"""Totals as the checkpoint holds them, for an exporter that has just started."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr

from sds_core.observer import blob


def read_totals(spark: SparkSession, checkpoint: Path) -> dict[str, bytes]:
    """Packed totals by key as of the last committed batch; empty without one.

    Raises:
        sds_core.observer.blob.UnknownBlobVersion: A newer release wrote them.
    """
    commits = checkpoint / "commits"
    if not (commits.is_dir() and any(f.name.isdigit() for f in commits.iterdir())):
        return {}
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
        if row.version > blob.VERSION:
            raise blob.UnknownBlobVersion(row.version)
        totals[row.key] = blob.totals_part(bytes(row.head))
    return totals
