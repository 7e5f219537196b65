"""The server before the job runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from connectors.web.sources import StoredViews
from sds_core.observer import blob
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.freshness import Freshness
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.planning.plan import Plan
from streaming.board import Board
from streaming.cli.serving import CurrentSnapshot, PendingJob, status_server
from streaming.position import Position
from tests.support.streaming.ledger import show


def test_figures_are_published_after_their_incidents() -> None:
    """Otherwise a restart would report for seconds that nothing is lost."""
    pending = PendingJob()
    totals = blob.totals_part(blob.pack(ChannelTotals(gaps_lost=1), None))
    show(pending.board, {CHANNELS.key("town"): totals})
    with (
        status_server(pending, "127.0.0.1", 0) as url,
        httpx.Client(base_url=url) as client,
    ):
        assert client.get("/readyz").status_code == 503
        assert client.get("/api/v1/incidents").status_code == 503
        assert "sds_messages_total" not in client.get("/metrics").text


@dataclass
class Begun:
    """A job that can be queried.

    Attributes:
        board: Its figures.
    """

    board: Board

    @property
    def stored(self) -> Mapping[str, StoredViews]:
        """Nothing."""
        return {}


def test_scrape_returns_the_named_metrics() -> None:
    """Of both collectors of the monitor, in the order of the whole answer."""
    begun = Begun(Board())
    totals = blob.totals_part(blob.pack(ChannelTotals(messages=7), None))
    show(begun.board, {CHANNELS.key("town"): totals})
    plans = {"sds": Plan(computed_ms=1_000)}
    with status_server(begun, "127.0.0.1", 0, plans=lambda: plans) as url:
        names = ["sds_plan_computed_timestamp_seconds", "sds_x", "sds_messages_total"]
        text = httpx.get(f"{url}/metrics", params={"name[]": names}).text
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        'sds_messages_total{channel="other"} 7.0',
        "sds_plan_computed_timestamp_seconds 1.0",
    ]


def test_figures_are_judged_once_a_second_and_batch() -> None:
    """With thousands of channels, not for each request anew."""
    now_ms = 100_000
    board = Board()
    show(board, {})
    board.set_position(Position(now_ms))
    entry = ChannelEntry("town", mute_until_ms=now_ms + 1_500)
    board.set(table=ChannelTable([entry]))
    current = CurrentSnapshot(Begun(board), lambda: now_ms, lambda: 0.0)
    first = current()
    now_ms += 900
    assert current() is first
    totals = blob.totals_part(blob.pack(ChannelTotals(), None))
    show(board, {CHANNELS.key("town"): totals})
    second = current()
    assert second.views["sds"].muted == {"town"}
    assert current() is second
    now_ms += 1_000
    assert current().views["sds"].muted == frozenset()


def test_silence_of_kafka_grows_although_nothing_else_changes() -> None:
    """Lag and silence, also if the clock of played traffic stands still."""
    board = Board()
    show(board, {})
    board.set_job(event_time_lag_seconds=1.5, kafka=Freshness(7, answered_s=100.0))
    now_s = 115.0
    current = CurrentSnapshot(Begun(board), lambda: 5, lambda: now_s)
    assert not current().job.kafka.is_stale
    assert current().job.event_time_lag_seconds == 1.5
    now_s = 116.0
    assert current().job.kafka.is_stale
    assert current().job.event_time_lag_seconds == 17.5
    now_s = 176.0
    assert current().job.event_time_lag_seconds == 77.5
    board.set_job(kafka=Freshness(8, answered_s=175.0))
    assert current().job.event_time_lag_seconds == 1.5
