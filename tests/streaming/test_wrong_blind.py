"""No channel is blind without a cause, whatever the clocks and the speed are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from connectors.simulator.records import simulation_of
from sds_core.observer.freshness import Arrivals, Freshness
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.verdict import Verdict
from streaming.board import Board
from streaming.cli.serving import current_snapshot
from streaming.position import Position
from tests.support.accuracy.play import PARTITIONS, START_MS
from tests.support.accuracy.suite import NAMES, scenario_of
from tests.support.monitor import Monitor, batches

SEEDS = (1,)

_RECORDS = 40
"""Of a batch: a quiet topic has so many heartbeats in less than a minute."""


@dataclass(frozen=True)
class Pace:
    """How traffic is played.

    Attributes:
        speed: Seconds of record time per second.
        offset_ms: By how much the taps' clocks are fast.
    """

    speed: float
    offset_ms: int = 0


PACES = (
    Pace(0.2),
    Pace(1, -90_000),
    Pace(1, 90_000),
    Pace(5),
    Pace(5, -90_000),
    Pace(10, 90_000),
)


class Watched:
    """A monitor that is looked at while traffic is played at some pace.

    Attributes:
        board: Its figures.
        verdicts: What channels were called, and how often it was looked at.
    """

    def __init__(self, pace: Pace, begin_ms: int, end_ms: int) -> None:
        self._pace, self._begin_ms, self._end_ms = pace, begin_ms, end_ms
        self._arrivals = Arrivals().after_answer(True, Freshness(), 0.0)
        self.board = Board()
        self.verdicts: Counter[tuple[Verdict, str]] = Counter()

    def look(self, time_ms: int) -> None:
        """Look just before a record comes.

        Args:
            time_ms: Time of the record.
        """
        now_s = self._passed_s(time_ms)
        self.board.set_job(
            kafka=Freshness(START_MS, answered_s=now_s), arrivals=self._arrivals
        )
        # As `simulate` does it: the traffic ends now, by the clock of the taps.
        left_ms = round((self._end_ms - time_ms) / self._pace.speed)
        wall_ms = self._end_ms - self._pace.offset_ms - left_ms
        shown = current_snapshot(self.board, lambda: wall_ms, lambda: now_s)
        for totals in shown.views["sds"].totals.values():
            self.verdicts[totals.verdict, totals.verdict_reason] += 1

    def arrive(self, time_ms: int) -> None:
        """Note that the topic has grown up to a record.

        Args:
            time_ms: Time of the record.
        """
        now_s = self._passed_s(time_ms)
        answer = Freshness(START_MS, answered_s=now_s)
        self._arrivals = self._arrivals.after_answer(True, answer, now_s)

    def _passed_s(self, time_ms: int) -> float:
        return (time_ms - self._begin_ms) / 1000 / self._pace.speed


def watched(name: str, seed: int) -> Iterator[tuple[Pace, Watched]]:
    """Play a scenario at all paces; yields each when it is over."""
    records = list(simulation_of(scenario_of(name), seed, START_MS, PARTITIONS).records)
    monitor = Monitor()
    times = [record.timestamp_ms for record in records]
    plays = {pace: Watched(pace, times[0], times[-1]) for pace in PACES}
    before_ms = times[0]
    for batch, clock_ms in batches(records, _RECORDS):
        last_but_one_ms = max([before_ms, *(one.timestamp_ms for one in batch[:-1])])
        time_ms = max(last_but_one_ms, batch[-1].timestamp_ms)
        monitor.read(batch, clock_ms)
        found = monitor.snapshot
        views = {CHANNELS.prefix: found.views["sds"].totals, TAPS.prefix: found.taps}
        for play in plays.values():
            play.arrive(last_but_one_ms)
            play.look(time_ms)
            play.arrive(time_ms)
            play.board.publish(play.board.following(views))
            play.board.set_position(Position(clock_ms))
        before_ms = time_ms
    yield from plays.items()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_no_channel_is_blind_for_a_clock_or_a_speed(name: str, seed: int) -> None:
    """Only a gap of the taps makes one blind; only one scenario has any."""
    for pace, play in watched(name, seed):
        reasons = {
            reason for verdict, reason in play.verdicts if verdict is Verdict.BLIND
        }
        assert reasons == ({"tap_hole"} if name == "tap-blind" else set()), pace
        assert play.verdicts.total() > 50
