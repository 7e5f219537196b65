"""The Spark job that only counts: the least that a user would write.

Frames are decoded in `mapInPandas`, one row per message, and
`applyInPandasWithState` counts the messages of each channel.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState

from benchmarks.contenders.spark import drain, options
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


def counts(records: DataFrame) -> DataFrame:
    """Return the number of messages of each channel that a batch has."""
    return (
        records.select("value")
        .mapInPandas(
            decoded, "channel string, sender string, id string, lamport long, named int"
        )
        .groupBy("channel")
        .applyInPandasWithState(
            count,
            "channel string, messages long",
            "messages long, lamport long",
            "update",
            "NoTimeout",
        )
    )


@click.command()
@options
def main(**words: str) -> None:
    """Read the topic to its end, and print how many messages it has."""
    click.echo(sum(row.messages for row in drain(counts, **words)))


if __name__ == "__main__":
    main()
