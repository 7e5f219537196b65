"""Rows of hours, which forecasts are made of."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from connectors.history.parquet import ParquetHistory
from connectors.history.query import SPARING, hourly_rows
from connectors.history.schema import CHANNEL_MINUTES, Row
from sds_core.observer.sds.totals import BloomGauge
from tests.support.history.rows import DAY_MS, MONDAY_MS, minute

MINUTE_MS = 60_000
COUNTERS = ("messages", "bytes_content")
GAUGES = ("epoch_messages_max", "bloom_bits_set", "bloom_bits", "bloom_hashes")


def test_row_has_the_last_counts_and_the_greatest_gauges(tmp_path: Path) -> None:
    """Of its hour, from the valid row of each minute."""
    gauge = BloomGauge(700, 150_000, 10)
    ParquetHistory(tmp_path).write(
        CHANNEL_MINUTES,
        [
            minute(MONDAY_MS, 1, messages=1, epoch_messages_max=9, bloom_worst=gauge),
            minute(MONDAY_MS + 59 * MINUTE_MS, 4, messages=3, epoch_messages_max=2),
            minute(MONDAY_MS + 59 * MINUTE_MS, 3, messages=2),
            minute(MONDAY_MS + 60 * MINUTE_MS, 5, messages=4, bytes_content=8),
        ],
    )
    rows = hourly_rows(tmp_path, None, MONDAY_MS, MONDAY_MS + DAY_MS, COUNTERS, GAUGES)[
        "town"
    ]
    assert [row["messages"] for row in rows] == [3, 4]
    assert [row["minute"] - MONDAY_MS for row in rows] == [3_540_000, 3_600_000]
    assert [row["epoch_messages_max"] for row in rows] == [9, 0]
    assert [row["bloom_bits_set"] for row in rows] == [700, None]
    assert [row["bloom_hashes"] for row in rows] == [10, None]


def test_only_the_channel_and_the_range_are_read(tmp_path: Path) -> None:
    """Both ends are times of minutes; the later one is outside."""
    history = ParquetHistory(tmp_path)
    other = minute(MONDAY_MS, 1, messages=5) | {"channel": "village"}
    rows = [minute(MONDAY_MS + day * DAY_MS, day + 1, messages=day) for day in range(4)]
    history.write(CHANNEL_MINUTES, [*rows, other])
    found = hourly_rows(
        tmp_path, ["town"], MONDAY_MS + DAY_MS, MONDAY_MS + 3 * DAY_MS, COUNTERS, GAUGES
    )
    assert [row["messages"] for row in found.pop("town")] == [1, 2]
    assert not found
    every = hourly_rows(tmp_path, None, 0, 2 * MONDAY_MS, COUNTERS, GAUGES)
    assert sorted(every) == ["town", "village"]


def test_query_beside_a_job_has_limits(tmp_path: Path) -> None:
    """It has one thread, and fails rather than take more memory than it may."""
    assert SPARING["threads"] == 1
    ParquetHistory(tmp_path).write(CHANNEL_MINUTES, [minute(MONDAY_MS, 1, messages=1)])

    def read(**limits: str) -> dict[str, list[Row]]:
        config = {**SPARING, **limits}
        return hourly_rows(
            tmp_path, None, 0, 2 * MONDAY_MS, COUNTERS, GAUGES, config=config
        )

    assert list(read()) == ["town"]
    with pytest.raises(duckdb.OutOfMemoryException):
        read(memory_limit="1KB")
