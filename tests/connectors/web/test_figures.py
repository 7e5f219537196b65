"""Every figure of a channel in words."""

from __future__ import annotations

from collections.abc import Callable

from connectors.web.figures import column_groups, page_groups
from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import BloomGauge, ChannelTotals

MakeTotals = Callable[..., ChannelTotals]
GROUPS = page_groups(CHANNEL_FIGURES)
FIGURES = {figure.key: figure for _, figures in GROUPS for figure in figures}


def test_figures_of_a_channel_have_readable_forms(
    totals: MakeTotals, histogram: Callable[..., Histogram]
) -> None:
    """Counts, shares, percentiles, sizes and rates each have their form."""
    channel = totals(
        messages=1_284,
        acknowledged_in_time=1_281,
        unacknowledged=3,
        definite_latency=histogram(*[900] * 94, *[4_000] * 4, 700_000, 700_000),
        deliveries_first_pass=90,
        deliveries_recovered=5,
        deliveries_lost=5,
        deliveries_retracted=1,
        repair_answered=29,
        repair_expired=1,
        repair_redundant=11,
        frames={"content.spec": 1_000, "sync.nim": 234},
        bytes_bloom=12_345,
        bloom_worst=BloomGauge(bits_set=500, m_bits=1_000, k=1),
    )
    assert {key: FIGURES[key].text(channel) for key in ALL_FORMS} == ALL_FORMS


ALL_FORMS = {
    "messages": "1,284",
    "in_time": "99.7 %",
    "ack_p50": "≤ 1 s",
    "ack_p95": "≤ 5 s",
    "ack_p99": "> 10 min",
    "delivered": "96.0 %",
    "answered": "96.6 %",
    "repair_responses": "40",
    "redundant": "27.5 %",
    "repair_p50": "\N{EN DASH}",
    "frames_all": "1,234",
    "bytes_bloom": "12.3 kB",
    "bloom_false_positive_ratio": "50 %",
    "unacknowledged": "3",
}


def test_share_of_nothing_is_a_dash(
    totals: MakeTotals,
) -> None:
    """It cannot be used for sorting."""
    nothing = totals()
    texts = {f.text(nothing) for f in FIGURES.values()}
    assert texts == {"0", "0 B", "0 %", "\N{EN DASH}"}
    for figure in FIGURES.values():
        unknown = figure.text(nothing) == "\N{EN DASH}"
        assert (figure.value(nothing) is None) == unknown, figure.key


def test_share_with_an_objective_follows_its_definition(
    totals: MakeTotals,
) -> None:
    """Unwitnessed messages and retracted losses do not lower it."""
    channel = totals(
        acknowledged_in_time=19,
        unacknowledged=1,
        unwitnessed=80,
        deliveries_first_pass=97,
        deliveries_recovered=1,
        deliveries_lost=2,
        deliveries_retracted=1,
    )
    shares = {share.key: share.of_totals(channel) for share in CHANNEL_FIGURES.shares}
    assert shares["in_time"] == (19, 20)
    assert shares["delivered"] == (99, 100)


def test_every_figure_is_unique_and_explained() -> None:
    """Keys are part of URLs; headings and meanings are displayed."""
    keys = [figure.key for _, figures in GROUPS for figure in figures]
    assert len(keys) == len(set(keys))
    assert all(figure.heading and figure.meaning for figure in FIGURES.values())


def test_columns_of_all_channels_keep_their_headings() -> None:
    """In their own order, without groups that have no column."""
    found = column_groups(CHANNEL_FIGURES)
    assert [(title, [f.key for f in figures]) for title, figures in found] == [
        (
            "Acknowledgement",
            ["messages", "ack_p50", "ack_p95", "in_time", "unacknowledged"],
        ),
        ("Deliveries", ["delivered", "deliveries_lost"]),
        ("Missing dependencies", ["gaps_open", "gaps_lost"]),
        ("Repair", ["answered", "redundant"]),
    ]
