"""What is made from a table of figures, and which tables are refused."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from sds_core.metrics import MetricKind
from sds_core.observer.figure_table import (
    Column,
    ColumnType,
    FigureError,
    FigureTable,
    Names,
)
from sds_core.observer.figures import (
    ChartShape,
    Entry,
    Family,
    Figure,
    Line,
    Percentile,
    Scale,
    Share,
    Unit,
    counter,
    gauge,
    histogram,
)
from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.summing import greatest, least


class Room(msgspec.Struct, array_like=True):
    """Totals of a made-up kind of view, with a field of each type."""

    moves: int = 0
    visits: int = 0
    opened_ms: Annotated[int | None, least] = None
    tallest: Annotated[int, greatest] = 0
    stay: Histogram = msgspec.field(default_factory=Histogram)
    by_colour: dict[str, int] = {}
    mood: str = "calm"

    @property
    def fill(self) -> float | None:
        """Half, once somebody was there."""
        return 0.5 if self.visits else None


MOVES = counter("rooms_moves_total", "Moves by place.", "place")
PLAY = (ChartShape(key="play", title="Play", note="Moves.", scale=Scale.COUNT),)
STAY = Figure(
    "stay",
    "Time from entry to exit.",
    Unit.DURATIONS,
    report=("stay_ms",),
    series=(histogram("rooms_stay_seconds").of(),),
    group="Visits",
    percentiles=(Percentile(95),),
)
ENTRIES: tuple[Entry, ...] = (
    Figure(
        "moves",
        "Moves.",
        report=("play.moves", "moves_again"),
        series=(MOVES.of("inside"),),
        group="Visits",
        heading="Moves",
        line=Line("play", "moves"),
    ),
    STAY,
    Figure("visits", "Visits.", report=("play.visits",)),
    Figure("mood", "Mood.", Unit.WORD, report=("mood",)),
    Figure("tallest", "Tallest.", history=True),
    Figure(
        "opened_ms",
        "When it opened.",
        Unit.TIME,
        series=(gauge("rooms_opened_timestamp_seconds").of(),),
    ),
    Figure("fill", "Fill.", Unit.RATIO, series=(gauge("rooms_fill_ratio").of(),)),
    Family(
        "rooms_colours",
        MetricKind.GAUGE,
        "Visitors by colour.",
        ("colour",),
        samples=lambda room: [((name,), n) for name, n in room.by_colour.items()],
    ),
)


def table(*entries: Entry, **changes: Any) -> FigureTable[Room]:
    """The table of rooms, with other entries if there are any."""
    given = {"groups": ("Visits",), "charts": PLAY, "report_order": ("stay_ms",)}
    names = Names(label="room", one="room", many="rooms")
    return FigureTable(Room, names, entries or ENTRIES, **(given | changes))


def room(**figures: Any) -> Room:
    """A room in which somebody stayed for two seconds."""
    made = Room(**figures)
    made.stay.observe(2_000)
    return made


def test_report_has_each_figure_at_its_places_in_order() -> None:
    """Paths in the given order come first, then those of the entries."""
    report = table().report(room(moves=3, visits=2))
    assert list(report) == ["stay_ms", "play", "moves_again", "mood"]
    assert report["play"] == {"moves": 3, "visits": 2}
    assert report["moves_again"] == 3
    assert report["stay_ms"] == {
        "count": 1, "sum": 2_000, "p50": 2_500, "p95": 2_500, "p99": 2_500,
    }  # fmt: skip


def test_report_of_a_sum_has_no_words() -> None:
    """A mood of several rooms means nothing."""
    assert "mood" not in table().report(room(), is_sum=True)


def test_report_has_exact_percentiles_where_durations_are_known() -> None:
    """Count and sum stay those of the histogram."""
    found = table().report(room(), exact={"stay": [5, 1, 3]})["stay_ms"]
    assert (found["count"], found["p50"], found["p99"]) == (1, 3, 5)
    assert table().report(room(), exact={"stay": []})["stay_ms"]["p50"] is None


def test_metrics_are_in_the_order_of_their_first_series() -> None:
    """With the help of their figure, if they have none of their own."""
    made = {metric.name: metric for metric in table().metrics}
    assert list(made) == [
        "rooms_moves_total",
        "rooms_stay_seconds",
        "rooms_opened_timestamp_seconds",
        "rooms_fill_ratio",
        "rooms_colours",
    ]
    assert made["rooms_moves_total"].help == "Moves by place."
    assert made["rooms_stay_seconds"].help == "Time from entry to exit."
    totals = room(moves=4, opened_ms=1_500, by_colour={"red": 2})
    samples = {name: list(metric.samples(totals)) for name, metric in made.items()}
    assert samples == {
        "rooms_moves_total": [(("inside",), 4)],
        "rooms_stay_seconds": [((), totals.stay)],
        "rooms_opened_timestamp_seconds": [((), 1.5)],
        "rooms_fill_ratio": [],
        "rooms_colours": [(("red",), 2)],
    }


def test_columns_are_the_report_then_buckets_then_what_it_leaves_out() -> None:
    """A second place of one figure says that it is the same."""
    made = table().columns
    assert [(one.name, one.type) for one in made] == [
        ("stay_ms_count", ColumnType.INTEGER),
        ("stay_ms_sum", ColumnType.INTEGER),
        ("play_moves", ColumnType.INTEGER),
        ("moves_again", ColumnType.INTEGER),
        ("play_visits", ColumnType.INTEGER),
        ("mood", ColumnType.TEXT),
        ("stay_ms_buckets", ColumnType.COUNTS),
        ("tallest", ColumnType.INTEGER),
    ]
    again: Column = made[3]
    assert again.help == "Moves: the same as `play_moves`."
    totals = room(moves=3, tallest=9)
    assert table().row(totals) == {
        "stay_ms_count": 1, "stay_ms_sum": 2_000, "play_moves": 3, "moves_again": 3,
        "play_visits": 0, "mood": "calm", "stay_ms_buckets": totals.stay.counts,
        "tallest": 9,
    }  # fmt: skip


def test_totals_are_summed_by_the_types_and_annotations_of_their_fields() -> None:
    """Words keep their default, and the totals given are not changed."""
    first = room(moves=1, opened_ms=9, tallest=4, by_colour={"red": 1}, mood="wild")
    second = room(moves=2, tallest=3, by_colour={"red": 2, "blue": 5})
    total = table().sum([first, second])
    assert total == Room(
        moves=3,
        opened_ms=9,
        tallest=4,
        stay=total.stay,
        by_colour={"red": 3, "blue": 5},
    )
    assert (total.stay.count, first.stay.count) == (2, 1)
    assert table().sum([]) == Room()


def test_charts_take_the_growth_of_their_figures_and_shares() -> None:
    """A share brings the figures that it is made of."""
    share = Share(
        key="inside", help="Moves.", part=("moves",), rest=("visits",),
        line=Line("play", "inside"),
    )  # fmt: skip
    found = table(*ENTRIES, share)
    assert [one.field for one in found.grown] == ["moves", "visits"]
    assert found.in_chart("play") == [ENTRIES[0], share]


def test_page_shows_each_percentile_of_a_histogram() -> None:
    """In the order of the entries."""
    assert table().page_entries("Visits") == [ENTRIES[0], (STAY, Percentile(95))]


@pytest.mark.parametrize(
    ("share", "value"),
    [((3, 1, 0), 0.75), ((3, 1, 1), 1.0), ((3, 1, 5), 1.0), ((0, 0, 2), None)],
)
def test_share_counts_what_was_retracted_up_to_the_rest(
    share: tuple[int, int, int], value: float | None
) -> None:
    """In an interval, more may be retracted than was lost in it."""
    one = Share(key="s", help="S.", part=("a",), rest=("b",), retracted=("c",))
    counts = dict(zip("abc", share, strict=True))
    assert one.of_counts(counts).value == value


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (Figure("moves", "M."), "moves: is declared twice"),
        (Figure("colour", "C."), "colour: the totals have no attribute colour"),
        (
            Share(key="s", help="S.", part=("moves",), rest=("gone",)),
            "s: the totals have no attribute gone",
        ),
        (Figure("visits", "M.", group="X"), "visits: no group has the name X"),
        (
            Figure("visits", "M.", line=Line("x", "x")),
            "visits: no chart has the name x",
        ),
        (
            Figure("tallest", "M.", line=Line("play", "x")),
            "tallest: a figure that a chart shows must be in the report or the history",
        ),
        (
            Figure("fill", "F.", Unit.RATIO, report=("fill",)),
            "fill: a figure of unit RATIO or NUMBER cannot be in the report or history",
        ),
        (
            Figure("mood", "M.", Unit.WORD, series=(gauge("rooms_mood").of(),)),
            "mood: a figure of unit WORD cannot be in a metric or on a page",
        ),
        (
            Figure("visits", "M.", series=(MOVES.of(),)),
            "visits: wrong labels for rooms_moves_total",
        ),
        (
            Figure("visits", "M.", series=(gauge(MOVES.name).of(),)),
            "rooms_moves_total: is declared twice",
        ),
        (
            Figure("visits", "M.", series=(gauge("x", "", "y").of("z"),) * 2),
            "x: needs its own help text, because it has several series",
        ),
    ],
)
def test_table_that_contradicts_itself_is_refused(entry: Entry, why: str) -> None:
    """When it is made, and not at the first scrape; the error names the figure."""
    with pytest.raises(FigureError) as raised:
        table(ENTRIES[0], entry)
    assert str(raised.value) == why
    assert why.startswith(f"{raised.value.name}:")


def test_every_figure_of_a_channel_is_found_somewhere() -> None:
    """An entry that nothing shows would be of no use."""
    for figure in CHANNEL_FIGURES.figures:
        places = figure.report, figure.series, figure.group, figure.history
        assert any(places), figure.field
    assert {one.chart for one in _lines()} == {c.key for c in CHANNEL_FIGURES.charts}


def _lines() -> list[Line]:
    entries: list[Figure | Share] = [*CHANNEL_FIGURES.figures, *CHANNEL_FIGURES.shares]
    return [one.line for one in entries if one.line]
