"""Every process of a real set-up is killed: the short form of `make chaos`."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from connectors.simulator.records import simulated_records
from sds_core.simulation.comparison import compare
from sds_core.simulation.truth import Truth
from tests.support.chaos.plan import JOB, Victim, strikes
from tests.support.chaos.play import Play
from tests.support.chaos.together import MOST_KILLS, shares_of
from tests.support.chaos.traffic import scenario
from tests.support.monitor import report_of

KILLS = int(os.environ.get("SDS_MONITOR_CHAOS_KILLS", len(Victim)))
SEED = 11


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_report_survives_the_kill_of_every_process(tmp_path: Path) -> None:
    """It equals that of a job that nobody disturbed, and the truth."""
    outcome = Play(tmp_path, SEED, print).run(KILLS)
    assert not outcome.differences, "\n".join(outcome.differences[:30])
    assert outcome.kills.total() == KILLS
    assert outcome.records > 0


@pytest.mark.slow
@pytest.mark.long
def test_traffic_has_an_exact_truth_however_long_it_is_played() -> None:
    """No filter gets so full that it would mislead a correct monitor."""
    long = replace(scenario(), duration_s=1_500)
    truth = Truth(long.name, SEED)
    records = simulated_records(long, SEED, 1_760_000_000_000, 4, truth)
    report = report_of(list(records))
    assert [one for one in compare(truth.document(), report) if not one.same] == []


def test_the_same_seed_plans_the_same_kills() -> None:
    """And another one others."""
    assert strikes(40, 1) == strikes(40, 1) != strikes(40, 2)
    short = strikes(9, 1)
    assert strikes(40, 1)[: len(short)] == short


def test_orderly_stop_does_not_count_as_a_kill() -> None:
    """It comes in addition to the kills that were asked for."""
    planned = strikes(100, 1)
    kills = [strike for strike in planned if strike.victim.is_killed]
    assert len(kills) == 100 < len(planned)
    assert planned[-1] == kills[-1]


@pytest.mark.parametrize(
    ("kills", "jobs", "plays"), [(1, 1, 1), (200, 1, 1), (201, 1, 2), (1_001, 2, 6)]
)
def test_no_play_is_so_long_that_the_monitor_forgets(
    kills: int, jobs: int, plays: int
) -> None:
    """The kills are shared out, and none is left out."""
    shares = shares_of(kills, jobs)
    assert len(shares) == plays
    assert sum(shares) == kills
    assert max(shares) <= MOST_KILLS


@pytest.mark.parametrize("seed", range(5))
def test_short_run_kills_every_process(seed: int) -> None:
    """Longer ones kill the job most often."""
    first = strikes(len(Victim), seed)
    assert {strike.victim for strike in first} == set(Victim)
    counts = Counter(strike.victim for strike in strikes(100, seed))
    assert set(counts) == set(Victim)
    assert sum(counts[victim] for victim in JOB) > 45
