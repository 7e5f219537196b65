"""Verdicts that were shown, beside the checkpoint and in the history."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sds_core.observer import blob
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.freshness import Freshness, MissingTopic
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.shown_verdicts import (
    DAY_MS,
    NOT_WATCHED,
    ShownVerdict,
    minutes_by_verdict,
    spans_of,
)
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from streaming.board import Board
from streaming.ledger.findings import Destination
from streaming.ledger.verdicts import VerdictStore
from streaming.verdicts import VerdictRecorder
from tests.support.snapshots import with_channels
from tests.support.streaming.history import MONDAY_MS, Checkpoint, pending
from tests.support.streaming.ledger import show

NOON_MS = MONDAY_MS + DAY_MS // 2


def at(minute: float) -> int:
    """A time so many minutes after noon, Unix ms."""
    return NOON_MS + round(minute * MINUTE_MS)


def totals(verdict: Verdict = Verdict.OK, **values: object) -> ChannelTotals:
    """A channel that the tap `tap` mirrors, with the reason `why`."""
    return ChannelTotals(
        verdict=verdict, verdict_reason="why", observers=["tap"], **values
    )  # type: ignore[arg-type]


class Monitor:
    """The job without Spark: a board, the recorder, and what the page shows."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.start()

    def start(self) -> None:
        """Start as the next process does, with an empty board."""
        self.checkpoint.restart()
        self.board = Board()
        self.board.set_job(running=True)
        self.store = VerdictStore(self.checkpoint.findings, with_history=True)
        self.recorder = VerdictRecorder({CHANNELS.prefix: self.store}, self.board)
        self._wall_ms: int | None = None

    def publish(self, *gone: str, **channels: ChannelTotals) -> None:
        """Publish channels, as a batch does."""
        packed = {
            CHANNELS.key(name): blob.totals_part(blob.pack(one, None))
            for name, one in channels.items()
        }
        show(self.board, packed, gone=[CHANNELS.key(name) for name in gone])

    def tap(self, last_seen_ms: int) -> None:
        """Publish the tap."""
        seen = TapTotals(last_seen_ms=last_seen_ms)
        show(self.board, {TAPS.key("tap"): blob.totals_part(blob.pack(seen, None))})

    def look(self, now_ms: int, clock_ms: int = 0, **job: object) -> Snapshot:
        """Look at what is shown, a second after the look before.

        The time of the page goes faster.
        """
        self._wall_ms = now_ms if self._wall_ms is None else self._wall_ms + 1_000
        self.board.set_job(**job)
        snapshot = judge_blindness(replace(self.board.snapshot, clock_ms=clock_ms))
        self.recorder.look(snapshot, now_ms, self._wall_ms)
        return snapshot

    def rows(self, name: str = "town") -> list[tuple[int, str]]:
        """Stored rows as minutes after noon, and verdict."""
        found = self.store.find([name], MONDAY_MS, MONDAY_MS + 9 * DAY_MS)[name]
        return [((row.minute_ms - NOON_MS) // MINUTE_MS, row.verdict) for row in found]


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    """A monitor on a new checkpoint."""
    return Monitor(Checkpoint(tmp_path / "monitor", tmp_path / "history"))


def test_what_is_stored_is_what_was_shown(monitor: Monitor) -> None:
    """A channel whose taps were silent was blind, whatever its own verdict."""
    monitor.tap(at(0))
    monitor.publish(town=totals())
    monitor.look(at(0), clock_ms=at(0))
    shown = monitor.look(at(1), clock_ms=at(1))
    assert shown.views["sds"].totals["town"].verdict is Verdict.BLIND
    assert monitor.board.snapshot.views["sds"].totals["town"].verdict is Verdict.OK
    assert monitor.rows() == [(0, "ok"), (1, "blind")]
    (_, row) = monitor.store.find(["town"], at(0), at(9))["town"]
    assert row.reason == "tap_hole"
    # The tap is back, and the channel has no new totals of its own.
    monitor.tap(at(30))
    monitor.look(at(30), clock_ms=at(30))
    assert monitor.rows()[-1] == (30, "ok")


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"event_time_lag_seconds": 61.0}, "behind"),
        ({"kafka": Freshness(1, 0.0, silent_s=16.0)}, "no_answer"),
        ({"missing_topic": MissingTopic("frames", 1)}, "no_topic"),
        ({"running": False}, "stopped"),
    ],
)
def test_minutes_in_which_the_figures_were_old_are_not_watched(
    monitor: Monitor, job: Mapping[str, object], reason: str
) -> None:
    """With the reason; a verdict that may be old is none."""
    monitor.publish(town=totals())
    monitor.look(at(0))
    monitor.publish(town=totals(Verdict.FAILING))
    monitor.look(at(1), **job)
    assert monitor.rows() == [(0, "ok"), (1, NOT_WATCHED)]
    (*_, row) = monitor.store.find(["town"], at(0), at(9))["town"]
    assert row.reason == reason


def test_minutes_without_a_process_are_not_watched(monitor: Monitor) -> None:
    """A killed process leaves no word of its end."""
    monitor.publish(town=totals())
    monitor.look(at(0))
    monitor.look(at(0.2))
    monitor.start()
    monitor.publish(town=totals())
    monitor.look(at(5.5))
    monitor.look(at(5.6))
    monitor.look(at(6))
    assert monitor.rows() == [(0, NOT_WATCHED), (6, "ok")]


def test_restart_within_seconds_is_no_pause(monitor: Monitor) -> None:
    """As for an operator who looks at the page."""
    monitor.publish(town=totals())
    monitor.look(at(0))
    monitor.look(at(0.5))
    monitor.recorder.close()
    monitor.start()
    monitor.publish(town=totals())
    monitor.look(at(0.7))
    monitor.look(at(1))
    assert monitor.rows() == [(0, "ok")]


def test_nothing_is_stored_after_the_end(monitor: Monitor) -> None:
    """The checkpoint may be another process's then."""
    monitor.publish(town=totals())
    monitor.look(at(0))
    monitor.recorder.close()
    monitor.publish(town=totals(Verdict.FAILING))
    monitor.look(at(1))
    assert monitor.rows() == [(0, "ok")]


def test_repeated_batch_writes_nothing_twice(monitor: Monitor) -> None:
    """A verdict that is shown again is no change."""
    for second in range(5):
        monitor.publish(town=totals(Verdict.FAILING))
        monitor.look(at(second / 60))
    assert monitor.checkpoint.findings.count_pending() == 1


def test_look_costs_what_has_changed(monitor: Monitor) -> None:
    """With thousands of channels, they are not all gone through every second."""
    monitor.publish(**{f"c{n}": totals() for n in range(50)})
    asked: list[object] = []
    log = monitor.recorder._logs[CHANNELS.prefix]  # noqa: SLF001 - see above
    observe = log.observe

    def noted(*args: object, **kwargs: object) -> object:
        asked.append(args[3])
        return observe(*args, **kwargs)  # type: ignore[arg-type]

    log.observe = noted  # type: ignore[method-assign, assignment]
    for second in range(3):
        monitor.look(at(second / 60))
    monitor.publish(c7=totals(Verdict.FAILING))
    monitor.look(at(0.1))
    monitor.look(at(0.2))
    monitor.look(at(0.3))
    every = {f"c{n}" for n in range(50)}
    assert asked == [None, every, set(), {"c7"}, {"c7"}, set()]


def test_channel_that_is_forgotten_ends_with_a_row(monitor: Monitor) -> None:
    """It is neither fine nor quiet from then on."""
    monitor.publish(town=totals())
    monitor.look(at(0))
    monitor.publish("town")
    monitor.look(at(1))
    (_, row) = monitor.store.find(["town"], at(0), at(9))["town"]
    assert row == ShownVerdict(at(1), NOT_WATCHED, "forgotten")


def test_muted_channel_has_its_verdict(monitor: Monitor) -> None:
    """The page shows it too; only alerts and the sentence leave it out."""
    monitor.publish(town=totals(Verdict.FAILING))
    monitor.recorder.look(
        with_channels(monitor.board.snapshot, muted=frozenset({"town"})), at(0)
    )
    assert monitor.rows() == [(0, "failing")]


def test_rows_of_two_days_stay_beside_the_checkpoint(monitor: Monitor) -> None:
    """Of the last 24 hours, with the begin of their first day."""
    monitor.publish(town=totals())
    for day in range(5):
        monitor.look(at(0) + day * DAY_MS)
        monitor.look(at(0) + day * DAY_MS + 10_000)
    kept = [minute * MINUTE_MS // DAY_MS for minute, _ in monitor.rows()]
    assert min(kept) >= 2


def test_rows_wait_while_the_disk_fails(
    monitor: Monitor, caplog: pytest.LogCaptureFixture
) -> None:
    """And the job goes on."""
    monitor.publish(town=totals())
    path = monitor.checkpoint.directory / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE verdicts RENAME TO away")
    monitor.look(at(0))
    monitor.publish(town=totals(Verdict.FAILING))
    monitor.look(at(0.1))
    assert [one[:40] for one in caplog.messages] == [
        f"verdicts cannot be stored yet: {path}"[:40]
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE away RENAME TO verdicts")
    monitor.look(at(0.2))
    assert monitor.rows() == [(0, "failing")]


def test_wrong_clock_of_the_monitor_is_taken_back(monitor: Monitor) -> None:
    """What it dated hours ahead goes, and the strip goes on."""
    monitor.publish(town=totals())
    monitor.look(at(600))
    monitor.look(at(0))
    assert monitor.rows() == [(0, "ok")]


def test_channel_that_was_forgotten_while_the_clock_was_wrong_ends_with_a_row(
    monitor: Monitor,
) -> None:
    """Its row from before the wrong clock would count until the end of the day."""
    monitor.publish(town=totals())
    monitor.look(at(0))
    monitor.look(at(600))
    monitor.publish("town")
    monitor.look(at(601))
    monitor.look(at(5))
    assert monitor.rows() == [(0, "ok"), (5, NOT_WATCHED)]
    monitor.look(at(602))
    assert monitor.rows() == [(0, "ok"), (5, NOT_WATCHED), (601, NOT_WATCHED)]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("pause_minutes", [0, 90])
def test_history_forgets_what_a_wrong_clock_showed(
    monitor: Monitor, restarts: bool, pause_minutes: int
) -> None:
    """The same minutes have the same verdicts days later.

    When the clock passes a minute again, its row is replaced, also if the monitor did
    not run in that minute.
    """

    def watch(first: int, last: int, verdict: Verdict) -> None:
        for minute in range(first, last):
            monitor.publish(town=totals(verdict))
            monitor.look(at(minute))

    def shown() -> dict[str, int]:
        rows = monitor.checkpoint.stored().find_verdicts(["town"], MONDAY_MS, at(480))[
            "town"
        ]
        return minutes_by_verdict(spans_of(rows, MONDAY_MS, at(480)))

    watch(120, 126, Verdict.FAILING)
    watch(126, 128, Verdict.DEGRADED)
    monitor.checkpoint.export(MONDAY_MS)
    watch(0, 60, Verdict.OK)
    monitor.checkpoint.export(MONDAY_MS)
    if restarts:
        monitor.start()
    watch(60 + pause_minutes, 480, Verdict.OK)
    monitor.checkpoint.export(MONDAY_MS)
    same_day = shown()
    assert same_day[Verdict.FAILING] == same_day[Verdict.DEGRADED] == 0
    assert same_day[Verdict.OK] + same_day[NOT_WATCHED] == 480
    assert same_day[Verdict.OK] >= 480 - pause_minutes - 2
    for day in (1, 2, 3):
        monitor.look(at(day * 1440))
    assert shown() == same_day


def test_history_has_what_the_checkpoint_has_no_more(monitor: Monitor) -> None:
    """Its last row of a key counts; a row in the outbox is found too."""
    monitor.publish(town=totals())
    monitor.look(at(0))
    monitor.publish(town=totals(Verdict.FAILING))
    monitor.look(at(0.1))
    monitor.checkpoint.export()
    findings, history = monitor.checkpoint.findings, monitor.checkpoint.settings
    assert pending(findings, Destination.PARQUET) == []
    monitor.store.record([("town", ShownVerdict(at(1), "ok", "ok"))], at(4 * 1440))
    monitor.store.expire(at(4 * 1440))
    found = monitor.checkpoint.stored().find_verdicts(["town", "none"], at(0), at(9))
    assert found == {
        "town": [
            ShownVerdict(at(0), "failing", "why"),
            ShownVerdict(at(1), "ok", "ok"),
        ],
        "none": [],
    }
    # The page's last day needs no history.
    shutil.rmtree(history.directory)
    found = monitor.checkpoint.stored().find_verdicts(
        ["town"], at(3 * 1440), at(4 * 1440)
    )
    assert found == {"town": []}


def test_job_without_a_history_queues_nothing(monitor: Monitor) -> None:
    """Nothing would delete the rows."""
    store = VerdictStore(monitor.checkpoint.findings, with_history=False)
    store.record([("town", ShownVerdict(at(0), "ok", "ok"))], at(0))
    assert monitor.checkpoint.findings.count_pending() == 0
    assert monitor.rows() == [(0, "ok")]
