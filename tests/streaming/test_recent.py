"""Figures of channels minute by minute for the last hour, beside the checkpoint."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from sds_core.observer.growth import GrowthSince, Recorded
from sds_core.observer.histogram import Histogram
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals
from streaming.damage import DamagedCheckpoint
from streaming.ledger.ledger import Ledger
from streaming.ledger.recent import RECENT_MS, RecentMinutes
from tests.support.streaming.ledger import ledger_in
from tests.support.toy.league import LEAGUES, LeagueMinute, LeagueTotals

MONDAY_MS = 1_786_276_800_000
STEP_MS = 5 * MINUTE_MS


def minute(number: int, messages: int, *latencies_ms: int) -> ChannelMinute:
    """Return a minute by its number since Monday; each acknowledgement is definite."""
    latency = Histogram()
    for latency_ms in latencies_ms:
        latency.observe(latency_ms)
    totals = ChannelTotals(messages=messages, definite_latency=latency, gaps_open=7)
    return ChannelMinute(MONDAY_MS + number * MINUTE_MS, totals)


def ends(found: list[Recorded]) -> list[int]:
    """Return the ends in minutes since Monday."""
    return [(one.end_ms - MONDAY_MS) // MINUTE_MS for one in found]


def every_minute(recent: RecentMinutes, channel: str) -> list[int]:
    """Return the ends of all stored minutes of a channel."""
    rows = recent.rows(channel, 0, 1 << 62)
    return [(one["minute"] - MONDAY_MS) // MINUTE_MS + 1 for one in rows]


def opened(path: Path) -> RecentMinutes:
    """The minutes of channels in a file."""
    return RecentMinutes(Ledger(path), CHANNELS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "monitor" / "ledger.sqlite"


@pytest.fixture
def recent(path: Path) -> RecentMinutes:
    """An empty store."""
    return opened(path)


def test_growth_is_counted_from_the_last_minute_before_a_moment(
    recent: RecentMinutes,
) -> None:
    """Counts and durations grow; a gauge is that of now."""
    recent.record({"a": [minute(0, 5, 900), minute(3, 8, 900, 4_000)]})
    at_ms = MONDAY_MS + 3 * MINUTE_MS
    (before,) = recent.at(at_ms).values()
    assert before.end_ms == MONDAY_MS + MINUTE_MS
    now = minute(9, 20, 900, 4_000, 4_000).totals
    growth = GrowthSince(CHANNEL_FIGURES, now, before.values)
    assert growth.messages == 15
    assert growth.definite_latency.percentile_ms(50) == 5_000
    assert growth.definite_latency.count == 2
    assert growth.gaps_open == 7
    assert GrowthSince(CHANNEL_FIGURES, now, None).messages == 20


def test_last_minute_of_each_step_is_returned(recent: RecentMinutes) -> None:
    """A minute that ends with a step belongs to it; the running step has none."""
    recent.record({"a": [minute(n, n) for n in (0, 3, 4, 5, 12, 15)]})
    until_ms = MONDAY_MS + 3 * STEP_MS
    for channels in (["a"], ["b", "a"]):
        found = recent.steps(channels, MONDAY_MS, until_ms, STEP_MS)
        assert {name: ends(some) for name, some in found.items()} == {
            name: [5, 6, 13] if name == "a" else [] for name in channels
        }
    recent.forget("a")
    assert recent.steps(["a"], MONDAY_MS, until_ms, STEP_MS) == {"a": []}


def test_minute_that_is_stored_late_is_in_the_answer_at_once(
    recent: RecentMinutes,
) -> None:
    """That of a quiet channel ends by a timeout, one batch after T has passed it."""
    recent.record({"quiet": [minute(0, 10)], "busy": [minute(4, 7)]})
    since_ms, until_ms = MONDAY_MS, MONDAY_MS + STEP_MS

    def steps() -> list[list[int]]:
        found = recent.steps(["quiet", "busy"], since_ms, until_ms, STEP_MS)
        return [ends(found["quiet"]), ends(found["busy"])]

    assert steps() == [[1], [5]]
    assert ends(list(recent.at(until_ms).values())) == [1, 5]
    recent.record({"quiet": [minute(4, 90)], "busy": [minute(5, 8)]})
    assert steps() == [[5], [5]]
    assert ends(list(recent.at(until_ms).values())) == [5, 5]


def test_later_minutes_do_not_drop_an_answer(recent: RecentMinutes) -> None:
    """The page asks for the same one for five minutes, for thousands of channels."""
    recent.record({"a": [minute(4, 7)]})
    asked = ["a"], MONDAY_MS, MONDAY_MS + STEP_MS, STEP_MS
    steps, at = recent.steps(*asked)["a"], recent.at(MONDAY_MS + STEP_MS)
    recent.record({"a": [minute(5, 8)]})
    assert recent.steps(*asked)["a"] is steps
    assert recent.at(MONDAY_MS + STEP_MS) is at


def test_only_the_last_hour_and_the_minute_before_it_are_stored(
    recent: RecentMinutes,
) -> None:
    """Also if one batch brings hours; a quiet channel keeps its last minute."""
    kept = RECENT_MS // MINUTE_MS
    recent.record({"quiet": [minute(0, 1)], "a": [minute(n, n) for n in range(200)]})
    # The first is the one before.
    assert every_minute(recent, "a") == list(range(200 - kept, 201))
    before_ms = MONDAY_MS + (200 - kept) * MINUTE_MS
    found = recent.at(before_ms)
    assert ends([found["quiet"], found["a"]]) == [1, 200 - kept]
    recent.record({"a": [minute(200, 200)]})
    recent.record({"a": [minute(500, 202)]})
    assert every_minute(recent, "a") == [201, 501]
    found = recent.at(MONDAY_MS + 480 * MINUTE_MS)
    assert ends([found["quiet"], found["a"]]) == [1, 201]


def test_replayed_batch_stores_the_same_minutes(recent: RecentMinutes) -> None:
    """And a start on the checkpoint keeps them."""
    batch = {"a": [minute(n, n) for n in range(100)]}
    recent.record(batch)
    known = every_minute(recent, "a"), recent.at(MONDAY_MS + STEP_MS)
    recent.record(batch)
    recent.begin({"a": minute(9, 99).totals}, MONDAY_MS + RECENT_MS)
    assert (every_minute(recent, "a"), recent.at(MONDAY_MS + STEP_MS)) == known


def test_channel_of_an_older_release_begins_with_its_figures_at_the_start(
    recent: RecentMinutes,
) -> None:
    """So that a quiet one has grown by nothing, instead of by an unknown number."""
    recent.begin({"a": minute(0, 5).totals}, MONDAY_MS + 90_000)
    assert ends(list(recent.at(MONDAY_MS).values())) == [1]


def test_forgotten_channel_has_no_minutes(recent: RecentMinutes) -> None:
    """Others keep theirs."""
    recent.record({"a": [minute(0, 5)], "b": [minute(0, 6)]})
    recent.forget("a")
    assert list(recent.at(MONDAY_MS + MINUTE_MS)) == ["b"]
    assert every_minute(recent, "a") == []


def test_minutes_with_other_figures_are_dropped(
    path: Path, recent: RecentMinutes
) -> None:
    """Values have no names, so those of another release would be misread."""
    recent.record({"a": [minute(0, 5)]})
    assert every_minute(opened(path), "a") == [1]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE fields SET names = 'messages'")
    assert every_minute(opened(path), "a") == []


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (b"\xff", "figures cannot be decoded"),
        (b"\x91\x01", "1 figures instead of"),
    ],
)
def test_damaged_figures_are_named_with_their_file(
    path: Path, recent: RecentMinutes, figures: bytes, said: str
) -> None:
    """With the remedy."""
    recent.record({"a": [minute(0, 5)]})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE minutes SET figures = ?", (figures,))
    with pytest.raises(
        DamagedCheckpoint, match=rf"ledger\.sqlite is damaged \({said}.*last hour"
    ):
        recent.at(MONDAY_MS + MINUTE_MS)


def test_rows_name_the_view_as_its_kind_does(tmp_path: Path) -> None:
    """A league is no channel."""
    recent = RecentMinutes(ledger_in(tmp_path), LEAGUES)
    recent.record({"north": [LeagueMinute(MONDAY_MS, LeagueTotals(), "north")]})
    (row,) = recent.rows("north", 0, 1 << 62)
    assert row["league"] == "north"
    assert "channel" not in row


def test_answers_that_are_asked_for_within_a_batch_do_not_stay(tmp_path: Path) -> None:
    """The page asks in another thread, which sees what is committed."""
    ledger = ledger_in(tmp_path)
    recent = RecentMinutes(ledger, CHANNELS)
    at_ms = MONDAY_MS + 9 * MINUTE_MS
    asked = MONDAY_MS, at_ms, MINUTE_MS

    def ask() -> tuple[list[int], list[int]]:
        at = ends(list(recent.at(at_ms).values()))
        return at, ends(recent.steps(["town"], *asked)["town"])

    def ask_elsewhere() -> None:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    with ledger.batch(0, "here"):
        recent.record({"town": [minute(0, 1)]})
    with ledger.batch(1, "here"):
        recent.record({"town": [minute(1, 2)]})
        ask_elsewhere()
    assert ask() == ([2], [1, 2])
    with ledger.batch(2, "here"):
        recent.forget("town")
        ask_elsewhere()
    assert ask() == ([], [])


def test_answer_has_every_channel_while_minutes_become_old(tmp_path: Path) -> None:
    """A commit between two queries of one answer changes nothing in it."""
    reading = ledger_in(tmp_path)
    recent = RecentMinutes(reading, CHANNELS)
    writing = Ledger(tmp_path / "ledger.sqlite")
    writer = RecentMinutes(writing, CHANNELS)
    with writing.batch(0, "here"):
        writer.record({"quiet": [minute(0, 1)], "busy": [minute(0, 1)]})

    def commit_between(statement: str) -> None:
        if "FROM minutes" in statement and not writing.has(1, "here"):
            with writing.batch(1, "here"):
                newest = RECENT_MS // MINUTE_MS + 1
                writer.record({"busy": [minute(newest, 2)]})

    with reading.transaction() as connection:
        connection.set_trace_callback(commit_between)
        answer = recent.at(MONDAY_MS + 9 * MINUTE_MS)
    assert sorted(answer) == ["busy", "quiet"]
    assert writing.has(1, "here")
