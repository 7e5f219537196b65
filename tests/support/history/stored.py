"""The content of a history, read without the product's query code."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from connectors.history.schema import CHANNEL_MINUTES, INCIDENTS, HistoryTable, Row
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import Client, KafkaSettings

Latest = dict[tuple[Any, ...], Row]
"""By key the row that was told last, without its number."""


class Kept(NamedTuple):
    """Both tables of a history."""

    incidents: Latest
    minutes: Latest


def in_files(directory: Path) -> Kept:
    """Return the content of the files of a history."""

    def latest(table: HistoryTable) -> Latest:
        files = (directory / table.name).glob("day=*/*.parquet")
        read = (table.rows(pq.read_table(file, partitioning=None)) for file in files)
        return _latest(table, chain.from_iterable(read))

    return Kept(latest(INCIDENTS), latest(CHANNEL_MINUTES))


def in_topics(kafka: KafkaSettings, incidents_topic: str, minutes_topic: str) -> Kept:
    """Return the content of both topics."""
    return Kept(
        _latest(INCIDENTS, _values(replace(kafka, topic=incidents_topic))),
        _latest(CHANNEL_MINUTES, _values(replace(kafka, topic=minutes_topic))),
    )


def _values(kafka: KafkaSettings) -> list[Row]:
    offsets = TopicOffsets(kafka)
    try:
        end = offsets.latest([0])[0]
    finally:
        offsets.close()
    found = fetch(Client.CONFLUENT, kafka, [OffsetRange(0, 0, end)])
    return [json.loads(record.value or b"") for records in found for record in records]


def _latest(table: HistoryTable, rows: Iterable[Row]) -> Latest:
    latest: Latest = {}
    for row in sorted(rows, key=lambda row: int(row["told"])):
        key = tuple(row[name] for name in table.key)
        latest[key] = {name: value for name, value in row.items() if name != "told"}
    return latest
