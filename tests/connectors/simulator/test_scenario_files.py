"""Shipped scenarios, and the user's own files."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from connectors.simulator import scenario_names
from connectors.simulator.scenario_files import (
    UnreadableScenario,
    load_scenario,
)
from sds_core.message_channel.events import Cause
from sds_core.simulation.log import Entry, Happening, Heartbeat, Sighting, Transmission
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.simulator import simulate
from sds_core.wire import Dialect

pytestmark = pytest.mark.slow

START_MS = 1_760_000_000_000
NAMES = [
    "bursty", "churn", "clean", "clock-skew", "flood", "lossy", "lost-tail",
    "mixed-dialects", "partition", "phones", "quiet", "repair-storm", "tap-blind",
    "unrepaired",
]  # fmt: skip
# What they contain is checked with their figures: tests/accuracy/test_hours.py.
OF_HOURS = ["clocks-8h", "nim-sync-8h", "phones-8h", "restarts-8h"]
OF_MVDS = ["mvds-batch", "mvds-interactive", "mvds-offline-90"]
OF_MODERATE_SIZE = [name for name in NAMES if name != "flood"]


def scenario_of(name: str) -> Scenario:
    """A shipped scenario of SDS."""
    scenario = load_scenario(name)
    assert isinstance(scenario, Scenario)
    return scenario


def counts(name: str, until_s: float) -> Counter[str]:
    """Simulate up to a time; return how much of each kind there was."""
    return add_counts(Counter(), simulated(name, until_s))


@functools.cache
def counts_by_phase(name: str) -> tuple[Counter[str], Counter[str]]:
    """Of one simulation, the counts while its traffic lasts and those of all of it."""
    scenario = scenario_of(name)
    log = simulated(name, scenario.duration_s + scenario.settle_s)
    end_ms = START_MS + scenario.duration_s * 1_000
    entries = list(log)
    traffic = list(takewhile(lambda entry: entry.at_ms < end_ms, entries))
    counted = add_counts(Counter(), traffic)
    return counted, add_counts(counted.copy(), entries[len(traffic) :])


def simulated(name: str, until_s: float) -> Iterator[Entry]:
    """What happens in a scenario up to a time."""
    end_ms = START_MS + until_s * 1_000
    log = simulate(scenario_of(name), 7, START_MS)
    return takewhile(lambda entry: entry.at_ms < end_ms, log)


def add_counts(counted: Counter[str], entries: Iterable[Entry]) -> Counter[str]:
    """Count how much of each kind there is; return the counter."""
    for entry in entries:
        counted[type(entry).__name__] += 1
        match entry:
            case Transmission():
                counted[entry.cause] += 1
                counted[entry.frame.dialect] += 1
            case Happening():
                counted[type(entry.event).__name__] += 1
    return counted


def test_shipped_scenarios_have_the_names_of_their_files() -> None:
    """Each has a description."""
    assert scenario_names() == sorted([*NAMES, *OF_HOURS, *OF_MVDS])
    for name in scenario_names():
        scenario = load_scenario(name)
        assert scenario.name == name
        assert scenario.description


def test_scenarios_of_mvds_are_read_as_such() -> None:
    """By the key `protocol`; the others are of SDS."""
    read = {name for name in scenario_names() if _is_mvds(name)}
    assert read == set(OF_MVDS)


def _is_mvds(name: str) -> bool:
    return isinstance(load_scenario(name), MvdsScenario)


@pytest.mark.parametrize("name", OF_MODERATE_SIZE)
def test_scenario_runs_to_its_end_at_a_moderate_size(name: str) -> None:
    """Each makes hundreds to thousands of frames, and a tap writes them."""
    _, counted = counts_by_phase(name)
    assert 200 < counted["Transmission"] < 6_000
    assert counted[Cause.CONTENT] > 100
    assert counted[Sighting.__name__] > 200
    assert counted[Heartbeat.__name__] > 100


@pytest.mark.parametrize(
    "name",
    ["bursty", "churn", "clock-skew", "lossy", "mixed-dialects", "partition",
     "repair-storm", "tap-blind"],
)  # fmt: skip
def test_scenario_with_loss_has_repairs(name: str) -> None:
    """A scenario with loss but without repairs would be useless."""
    counted, _ = counts_by_phase(name)
    assert counted["RepairRequested"] > 10
    assert counted["RepairAnswered"] == counted[Cause.REPAIR] > 10


def test_clean_scenario_has_no_repair_requests() -> None:
    """What is missing for the moment comes before anybody asks.

    Now and then nobody has spoken for 30 s, and a message is sent again.
    """
    _, counted = counts_by_phase("clean")
    assert counted[Cause.REPAIR] == 0
    assert counted[Cause.RETRY] < counted[Cause.CONTENT] / 50
    assert counted["IrretrievablyLost"] == counted["RepairRequested"] == 0
    assert counted["Acknowledged"] == counted[Cause.CONTENT]


def test_mixed_scenario_has_many_frames_of_both_dialects() -> None:
    """Neither is a matter of a few frames."""
    counted = counts("mixed-dialects", 300)
    assert min(counted[Dialect.SPEC], counted[Dialect.NIM]) > 50


def test_flood_makes_two_thousand_frames_a_second() -> None:
    """Virtual seconds: about 2,000 frames in each, in all of 200 channels."""
    counted = counts("flood", 3)
    assert 4_500 < counted["Transmission"] < 7_500


def test_unknown_name_lists_the_known_ones() -> None:
    """The error also says that a path is possible."""
    with pytest.raises(
        UnreadableScenario,
        match=r"'lousy' \(did you mean 'lossy'\?\).*TOML.*lossy, lost-tail",
    ):
        load_scenario("lousy")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        (b"name = ", "is not TOML"),
        (b"\xff", "is not TOML"),
        (b"name = " + b"[" * 5_000, "is not TOML"),
        (b'name = "x"', "lacks the key 'description'"),
        (b'name = "x"\ntaps = 3', "taps is 3: allowed is a list"),
        (b"duration = 3", "has no key 'duration' (did you mean 'duration_s'?): "),
        (
            b"duration_s = -1",
            "duration_s is -1: allowed is a number above 0 to 2592000",
        ),
        (
            b'profiles = [{ base = "nim-sds" }]',
            "profiles[0].base is 'nim-sds' (did you mean 'nim_sds'?): allowed is ",
        ),
    ],
)
def test_bad_scenario_file_is_named_with_the_reason(
    tmp_path: Path, text: bytes | None, said: str
) -> None:
    """Every error is one line."""
    file = tmp_path / "mine.toml"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(UnreadableScenario) as caught:
        load_scenario(str(file))
    assert str(caught.value).startswith(f"{file}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_is_read_by_its_path(tmp_path: Path) -> None:
    """A name that ends in `.toml` is a path."""
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\ndescription = "d"\nduration_s = 10\nparticipants = 2\n'
        '[[channels]]\nname = "ch"\ntraffic = { mean_interval_s = 1 }\n'
    )
    assert load_scenario(str(file)).name == "mine"
