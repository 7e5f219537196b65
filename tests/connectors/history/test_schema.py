"""The two tables and their rows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.history.schema import (
    CHANNEL_MINUTES,
    INCIDENTS,
    TABLES,
    HistoryTable,
    NumberedIncident,
    NumberedMinute,
    Row,
    channel_incident,
    incident_row,
    minute_row,
)
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    incident_object,
)
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelTotals
from tests.support.history.rows import MONDAY_MS, description, lost, numbered_totals
from tests.support.properties import CAREFUL

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
times = st.integers(-(2**31), 2**42)
incidents = st.builds(
    ChannelIncident,
    texts,
    st.builds(
        Incident,
        st.sampled_from(IncidentKind),
        texts,
        texts,
        times,
        times,
        st.none() | times,
        st.dictionaries(texts, times, max_size=3),
        st.lists(texts, max_size=3),
        st.just(b"") | st.binary(min_size=32, max_size=32),
        st.binary(max_size=40),
    ),
    st.booleans(),
)


def through_parquet(table: HistoryTable, rows: list[Row]) -> list[Row]:
    """The rows as they come back from a file."""
    file = io.BytesIO()
    pq.write_table(table.arrow(rows), file)
    return table.rows(pq.read_table(file))


@given(st.lists(incidents, max_size=3), st.integers(0, 2**63 - 1))
@CAREFUL
def test_incident_round_trips(found: list[ChannelIncident], told: int) -> None:
    """Through Parquet and through the JSON in Kafka."""
    rows = [incident_row(NumberedIncident(told, one)) for one in found]
    assert through_parquet(INCIDENTS, rows) == rows
    assert msgspec.json.decode(msgspec.json.encode(rows)) == rows
    assert [channel_incident(row) for row in rows] == found
    assert [row["told"] for row in rows] == [told] * len(rows)


def test_incident_has_the_fields_of_the_report() -> None:
    """In the report's order, followed by the sequence number."""
    assert INCIDENTS.schema.names == [*incident_object(lost("m")), "told"]


def figures_of(part: dict[str, Any], *path: str) -> Iterator[tuple[str, int | str]]:
    """The report's figures by their names in a row; percentiles are none."""
    for name, value in part.items():
        if isinstance(value, dict):
            yield from figures_of(value, *path, name)
        elif name not in ("p50", "p95", "p99"):
            yield "_".join([*path, name]), value


def test_minute_has_every_figure_of_the_report_under_its_name() -> None:
    """Names of nested objects are joined by underscores and are unique."""
    totals = numbered_totals()
    row = minute_row(NumberedMinute(7, "town", MONDAY_MS, totals))
    figures = list(figures_of(CHANNEL_FIGURES.report(totals)))
    assert len(figures) == len(dict(figures))
    others = {
        name: value
        for name, value in row.items()
        if (name, value) not in figures and not name.endswith("_buckets")
    }
    assert others == {
        "channel": "town",
        "minute": MONDAY_MS,
        "participants_lately": totals.participants_lately,
        "epoch_messages_max": totals.epoch_messages_max,
        "bloom_bits_set": None,
        "bloom_bits": None,
        "bloom_hashes": None,
        "told": 7,
    }
    assert row["gaps_tap_gap"] == totals.gaps_tap_gap


def test_every_histogram_has_its_buckets() -> None:
    """The buckets add up to the count."""
    totals = numbered_totals()
    row = minute_row(NumberedMinute(7, "town", MONDAY_MS, totals))
    names = [name.removesuffix("_buckets") for name in row if name.endswith("_buckets")]
    assert all(sum(row[f"{one}_buckets"]) == row[f"{one}_count"] for one in names)
    found = {row[f"{one}_sum"]: row[f"{one}_buckets"] for one in names}
    histograms = [
        getattr(totals, field.name)
        for field in msgspec.structs.fields(ChannelTotals)
        if field.type is Histogram
    ]
    assert found == {one.sum_ms: one.counts for one in histograms}


def test_minute_round_trips() -> None:
    """Through Parquet."""
    row = minute_row(NumberedMinute(7, "to\x00wn", MONDAY_MS, numbered_totals()))
    assert through_parquet(CHANNEL_MINUTES, [row]) == [row]
    assert list(row) == CHANNEL_MINUTES.schema.names


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_field_has_a_description(table: HistoryTable) -> None:
    """Descriptions are unique, and key fields are never null."""
    texts = [description(field) for field in table.schema]
    assert all(text.endswith(".") for text in texts)
    assert len(set(texts)) == len(texts)
    assert not any(table.schema.field(name).nullable for name in table.key)
    assert {*table.key, table.time, "told"} <= set(table.schema.names)
