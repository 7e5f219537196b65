"""The obvious Spark job: Spark's own Kafka source, and a state that only counts.

Frames are decoded in `mapInPandas`: one row per message, or with `--digest` one row per
channel and batch of Arrow with what the messages name. `applyInPandasWithState` counts
the messages of each channel. It has no deadlines, no taps, no repair and no filters.
Shuffle partitions are as many as cores; all other settings of Spark are its defaults.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState

from benchmarks.jars import kafka_source_jars
from sds_core.wire.proto.sds_spec_pb2 import SdsMessage


def decoded(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Turn values into a row per message."""
    for frame in frames:
        rows = [
            (
                message.channel_id,
                message.sender_id,
                message.message_id,
                message.lamport_timestamp,
                len(message.causal_history),
            )
            for message in map(SdsMessage.FromString, filter(None, frame["value"]))
        ]
        yield pd.DataFrame(
            rows, columns=["channel", "sender", "id", "lamport", "named"]
        )


def count(
    key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Count the rows of a channel."""
    messages, lamport = state.get if state.exists else (0, 0)
    for frame in frames:
        messages += len(frame)
        lamport = max(lamport, int(frame["lamport"].max()))
    state.update((messages, lamport))
    yield pd.DataFrame({"channel": [key[0]], "messages": [messages]})


def digested(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Turn values into a row per channel: ids, senders, and the ids that they name."""
    for frame in frames:
        channels: dict[str, list[Any]] = {}
        for message in map(SdsMessage.FromString, filter(None, frame["value"])):
            channels.setdefault(message.channel_id, []).append(
                (
                    message.sender_id,
                    message.message_id,
                    message.lamport_timestamp,
                    [entry.message_id for entry in message.causal_history],
                )
            )
        packed = [msgspec.msgpack.encode(some) for some in channels.values()]
        yield pd.DataFrame({"channel": list(channels), "digest": packed})


def count_digests(
    key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Count the messages in the digests of a channel."""
    messages, lamport = state.get if state.exists else (0, 0)
    for frame in frames:
        for digest in frame["digest"]:
            some = msgspec.msgpack.decode(digest)
            messages += len(some)
            lamport = max(lamport, *(one[2] for one in some))
    state.update((messages, lamport))
    yield pd.DataFrame({"channel": [key[0]], "messages": [messages]})


def read_counts(counts: DataFrame, _: int) -> None:
    """Read the counts of a batch, as a program that shows them would."""
    counts.collect()


@click.command()
@click.option("--bootstrap", required=True)
@click.option("--topic", required=True)
@click.option("--checkpoint", required=True)
@click.option("--batch", required=True, help="Most records of a batch.")
@click.option("--digest", is_flag=True)
def main(bootstrap: str, topic: str, checkpoint: str, batch: str, digest: bool) -> None:
    """Read the topic to its end; the checkpoint says how long the batches took."""
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
    frames = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", batch)
        .load()
        .select("value")
    )
    if digest:
        rows = frames.mapInPandas(digested, "channel string, digest binary")
    else:
        rows = frames.mapInPandas(
            decoded,
            "channel string, sender string, id string, lamport long, named int",
        )
    counts = rows.groupBy("channel").applyInPandasWithState(
        count_digests if digest else count,
        "channel string, messages long",
        "messages long, lamport long",
        "update",
        "NoTimeout",
    )
    query = (
        counts.writeStream.outputMode("update")
        .foreachBatch(read_counts)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
