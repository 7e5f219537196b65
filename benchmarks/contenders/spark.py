"""What the Spark jobs share: Spark's own Kafka source, and how they are started.

Shuffle partitions are as many as cores; all other settings of Spark are its defaults.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click
from pyspark.sql import DataFrame, Row, SparkSession

from benchmarks.jars import kafka_source_jars


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what to read, for `drain`."""
    for option in (
        click.option("--bootstrap", required=True),
        click.option("--topic", required=True),
        click.option("--checkpoint", required=True),
        click.option("--batch", required=True, help="Maximum records of a batch."),
    ):
        command = option(command)
    return command


def drain(
    figures: Callable[[DataFrame], DataFrame],
    *,
    bootstrap: str,
    topic: str,
    checkpoint: str,
    batch: str,
) -> list[Row]:
    """Read a topic to its end; the checkpoint says how long the batches took.

    Args:
        figures: Returns rows with a `channel` from records with `value` and `ms`, the
            record time in Unix ms.
        bootstrap: Brokers.
        topic: The topic.
        checkpoint: Directory of the checkpoint.
        batch: Maximum records of a batch.

    Returns:
        The last row of each channel.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars", ",".join(map(str, kafka_source_jars())))
        .config("spark.sql.shuffle.partitions", os.cpu_count())
        .config("spark.ui.enabled", False)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", batch)
        .load()
        .selectExpr("value", "unix_millis(timestamp) as ms")
    )
    last: dict[str, Row] = {}

    def keep(rows: DataFrame, _: int) -> None:
        last.update((row.channel, row) for row in rows.collect())

    query = (
        figures(records)
        .writeStream.outputMode("update")
        .foreachBatch(keep)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return list(last.values())
