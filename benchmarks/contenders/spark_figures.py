"""The Spark job that a user would write for the three figures of the monitor.

Acknowledgement latency, missing dependencies, and whether repairs are answered. Frames
are decoded in `mapInPandas`, one row per message; `applyInPandasWithState` has a
pickled dictionary per channel, which forgets what is older than an hour.

It has no filters, deadlines, taps, copies, deliveries per participant or verdict. So an
id is missing from the moment it is named until it arrives or is forgotten; a gap of the
monitor begins 2 s later, and not with a channel (docs/figures.md, 6).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import click
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState

from benchmarks.contenders.spark import drain, options
from sds_core.wire.proto.sds_spec_pb2 import SdsMessage

_HORIZON_MS = 3_600_000
_COLUMNS = {
    "channel": "string",
    "sender": "string",
    "id": "string",
    "has_content": "boolean",
    "history": "array<string>",
    "requests": "array<string>",
    "ms": "long",
}
_SUMS = ("messages", "acknowledged", "latency_ms", "missing", "requests", "answered")


def decoded(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Turn values into a row per message."""
    for frame in frames:
        rows = []
        for value, ms in zip(frame["value"], frame["ms"], strict=True):
            if value:
                message = SdsMessage.FromString(value)
                row = (
                    message.channel_id,
                    message.sender_id,
                    message.message_id,
                    bool(message.content),
                    [entry.message_id for entry in message.causal_history],
                    [entry.message_id for entry in message.repair_request],
                    ms,
                )
                rows.append(row)
        yield pd.DataFrame(rows, columns=list(_COLUMNS))


def fold(
    key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Bring the figures of a channel up to date."""
    # By id: (sender, ms, is acknowledged) of messages, (ms, who named it) of missing
    # ones, and ms of open requests.
    known: tuple[dict[str, Any], ...] = ({}, {}, {}, dict.fromkeys(_SUMS, 0))
    if state.exists:
        known = pickle.loads(state.get[0])  # noqa: S301 - our own state
    messages, missing, asked, sums = known
    now_ms = 0
    for frame in frames:
        columns = [frame[name] for name in list(_COLUMNS)[1:]]
        for sender, own_id, has_content, history, requests, ms in zip(
            *columns, strict=True
        ):
            now_ms = max(now_ms, ms)
            if has_content:
                if own_id not in messages:
                    messages[own_id] = [sender, ms, False]
                    sums["messages"] += 1
                _, namers = missing.pop(own_id, (0, set()))
                if namers - {sender}:
                    messages[own_id][2] = True
                    sums["acknowledged"] += 1
                sums["answered"] += asked.pop(own_id, None) is not None
            for one in history:
                message = messages.get(one)
                if message is None:
                    missing.setdefault(one, (ms, set()))[1].add(sender)
                elif not message[2] and message[0] != sender:
                    message[2] = True
                    sums["acknowledged"] += 1
                    sums["latency_ms"] += ms - message[1]
            sums["requests"] += len(requests)
            for one in requests:
                asked.setdefault(one, ms)
    oldest_ms = now_ms - _HORIZON_MS
    messages = {one: what for one, what in messages.items() if what[1] >= oldest_ms}
    missing = {one: what for one, what in missing.items() if what[0] >= oldest_ms}
    asked = {one: ms for one, ms in asked.items() if ms >= oldest_ms}
    sums["missing"] = len(missing)
    state.update((pickle.dumps((messages, missing, asked, sums), 5),))
    yield pd.DataFrame({"channel": key, **{name: [n] for name, n in sums.items()}})


def figures(records: DataFrame) -> DataFrame:
    """Return the sums of each channel that a batch has."""
    messages = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    return (
        records.mapInPandas(decoded, messages)
        .groupBy("channel")
        .applyInPandasWithState(
            fold,
            "channel string, " + ", ".join(f"{name} long" for name in _SUMS),
            "packed binary",
            "update",
            "NoTimeout",
        )
    )


@click.command()
@options
def main(**words: str) -> None:
    """Read the topic to its end, and print the sums of all channels."""
    channels = drain(figures, **words)
    click.echo(json.dumps({name: sum(row[name] for row in channels) for name in _SUMS}))


if __name__ == "__main__":
    main()
