"""A figure that is added to the table in one place is found everywhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from connectors.history.schema import (
    CHANNEL_MINUTES,
    HistoryTable,
    NumberedMinute,
    Row,
    minute_row,
    minutes_schema,
)
from connectors.prometheus.collector import SnapshotCollector
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from docs import make_history, make_metrics
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import Figure, Line, counter
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures
from tests.support.history.rows import description
from tests.support.snapshots import snapshot_of
from tests.support.web.stored import stored

CLOCK_MS = 1_786_276_990_123
MINUTE_MS = CLOCK_MS // 60_000 * 60_000


class GreetingTotals(ChannelTotals):
    """Totals of a channel with one more field."""

    greetings: int = 0


GREETINGS = Figure(
    "greetings",
    "Messages that say hello.",
    report=("words.greetings",),
    series=(counter("sds_greetings_total").of(),),
    group=CHANNEL_FIGURES.groups[0],
    heading="Hellos",
    column=11,
    grave=True,
    line=Line("traffic", "hellos"),
)
TABLE: FigureTable[Any] = FigureTable(
    GreetingTotals,
    CHANNEL_FIGURES.names,
    [*CHANNEL_FIGURES.entries, GREETINGS],
    groups=CHANNEL_FIGURES.groups,
    charts=CHANNEL_FIGURES.charts,
    report_order=CHANNEL_FIGURES.report_order,
)
FEW, MANY = (
    GreetingTotals(greetings=n, first_event_ms=MINUTE_MS) for n in (4_711, 8_822)
)
SNAPSHOT = snapshot_of(
    primed=True,
    clock_ms=CLOCK_MS,
    channels={"few": FEW, "many": MANY, "more": MANY},
    kind=replace(CHANNELS, figures=TABLE),
    labels=("few",),
    job=JobFigures(running=True, event_time_lag_seconds=1.0, version="1.2.3"),
)
ROW = minute_row(NumberedMinute(1, "few", MINUTE_MS, FEW), TABLE)


def find_minutes(
    _: str, since_ms: int, until_ms: int, __: Collection[str]
) -> list[Row]:
    """The history: the minute of `ROW`."""
    return [ROW] if since_ms <= ROW["minute"] < until_ms else []


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of the pages and the API with this table."""
    sources = Sources(
        lambda: SNAPSHOT, stored(find_minutes=find_minutes), Path("nowhere")
    )
    app = create_app(sources, CollectorRegistry())
    with (
        WebServer(app, port=0) as server,
        httpx.Client(base_url=server.url) as made,
    ):
        yield made


def test_report_has_it() -> None:
    """At its place, and in the sum."""
    assert TABLE.report(FEW)["words"] == {"greetings": 4_711}
    assert TABLE.sum([FEW, MANY]).greetings == 13_533


def test_exporter_has_it() -> None:
    """With its help, for the channel with a label and for the others together."""
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: SNAPSHOT))
    text = generate_latest(registry).decode()
    assert "# HELP sds_greetings_total Messages that say hello.\n" in text
    assert 'sds_greetings_total{channel="few"} 4711.0\n' in text
    assert 'sds_greetings_total{channel="other"} 17644.0\n' in text


def test_api_has_it_and_its_growth(client: httpx.Client) -> None:
    """Under its path in the report, and under its field in the minutes."""
    channel = client.get("/api/v1/channels/few").json()
    assert channel["words"] == {"greetings": 4_711}
    minutes = client.get("/api/v1/minutes?channel=few&hours=1").json()
    assert minutes["intervals"][-1]["figures"]["greetings"] == 4_711


def test_channel_page_has_it_and_its_line_in_the_chart(client: httpx.Client) -> None:
    """With heading, meaning and value, and as a column of the chart's table."""
    html = client.get("/channel?id=few&hours=1").text
    assert "<dt>Hellos</dt>" in html
    assert '<dd class="grave">4,711</dd>' in html
    assert "<dd>Messages that say hello.</dd>" in html
    assert '<th scope="col" class="figure">hellos</th>' in html


def test_page_of_all_channels_has_a_column_that_sorts(client: httpx.Client) -> None:
    """The most first."""
    html = client.get("/?sort=greetings").text
    assert "Hellos<span" in html
    assert html.index("8,822") < html.index("4,711")


def test_history_has_it() -> None:
    """With its help and its type, in every row."""
    field = minutes_schema(TABLE).field("words_greetings")
    assert (str(field.type), description(field)) == ("int64", GREETINGS.help)
    assert ROW["words_greetings"] == 4_711
    assert list(ROW) == minutes_schema(TABLE).names


def test_pages_of_metrics_and_history_have_it() -> None:
    """In tables made from the same declaration."""
    metrics = make_metrics.page([make_metrics.Section.of("", "", TABLE)])
    row = "| `sds_greetings_total` | counter |  | Messages that say hello. |"
    assert row in metrics
    table = HistoryTable(
        "minutes", minutes_schema(TABLE), CHANNEL_MINUTES.key, CHANNEL_MINUTES.time
    )
    row = "| `words_greetings` | Messages that say hello. |"
    assert row in make_history.fields(table, frozenset())
