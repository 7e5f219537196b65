"""What the monitor finds in simulated traffic is what really happened in it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import load_scenario, scenario_names
from sds_core.simulation.comparison import compare
from sds_core.simulation.truth import Truth
from tests.support.monitor import report_of

START_MS = 1_760_000_000_000
# The flood has its benchmark; its 100,000 frames would say no more here.
NAMES = [name for name in scenario_names() if name != "flood"]
SEEDS = (1, 2, 3)


def truth_and_report(name: str, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of one simulation."""
    scenario = load_scenario(name)
    truth = Truth(name, seed)
    report = report_of(simulated_records(scenario, seed, START_MS, 4, truth))
    return truth.document(), report


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_the_truth(name: str, seed: int) -> None:
    """In total and for each channel."""
    truth, report = truth_and_report(name, seed)
    assert [one for one in compare(truth, report) if not one.same] == []
    assert report["channels"].keys() == truth["channels"].keys()


def test_the_scenarios_show_something_of_nearly_every_outcome() -> None:
    """Or their agreement would say little."""
    seen: Counter[str] = Counter()
    for name in NAMES:
        totals = truth_and_report(name, 1)[0]["totals"]
        for group in ("gaps", "repair", "rebroadcasts", "acknowledged", "frames"):
            for outcome, count in totals[group].items():
                seen[f"{group}.{outcome}"] += count
        seen["unacknowledged"] += totals["unacknowledged"]
        seen["unwitnessed"] += totals["unwitnessed"]
    never = {outcome for outcome, count in seen.items() if not count}
    # Open and retracted gaps, and those recovered late, stand in the truth of the
    # recording, which the job is tested against.
    assert never <= {
        "gaps.open",
        "gaps.retracted",
        "gaps.recovered_late",
        "repair.requests_for_received",
    }


@pytest.mark.parametrize("name", ["lossy", "mixed-dialects", "churn"])
def test_a_seed_gives_the_same_figures_whenever_it_is_played(name: str) -> None:
    """What goes wrong once can be played again tomorrow."""
    today, tomorrow = (
        figures_from(name, START_MS),
        figures_from(name, START_MS + 86_400_000),
    )
    assert today == tomorrow


def figures_from(name: str, start_ms: int) -> dict[str, Any]:
    """The truth's totals of a simulation that begins at a time."""
    truth = Truth(name, 7)
    for _ in simulated_records(load_scenario(name), 7, start_ms, 4, truth):
        pass
    figures: dict[str, Any] = truth.document()["totals"]
    return figures


def test_clean_and_quiet_channels_raise_no_alarm() -> None:
    """Nothing is missing, and nobody is blamed."""
    for name in ("clean", "quiet"):
        _, report = truth_and_report(name, 1)
        assert report["totals"]["gaps"]["lost"] == 0
        verdicts = {one["verdict"] for one in report["channels"].values()}
        assert verdicts <= {"ok", "quiet"}, name
