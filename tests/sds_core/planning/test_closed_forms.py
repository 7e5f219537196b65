"""Closed forms beside the simulator, over a grid.

The seeds are fixed: by chance, one comparison in twenty lies outside its 95 % interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from sds_core.message_channel.events import Cause
from sds_core.planning import closed_forms
from sds_core.planning.channel import ChannelPlan, changed
from sds_core.planning.estimates import Estimate, estimated
from sds_core.planning.experiment import run, scenario_of, times_of
from sds_core.simulation.log import Arrival, Entry, Transmission
from sds_core.simulation.simulator import simulate
from sds_core.wire import BloomFilter, BloomParameters, part_sizes

pytestmark = pytest.mark.slow

PLAN = ChannelPlan(participants=4, messages_per_day=8_640)
SEEDS = range(1, 11)
_RECEPTIONS = 400
_START_MS = 1_786_000_000_000

GRID: dict[str, dict[str, str]] = {
    "no loss": {},
    "loss": {"loss": "0.1"},
    "much loss": {"loss": "0.3", "participants": "3"},
    "two": {"loss": "0.2", "participants": "2"},
    "slow": {"loss": "0.2", "participants": "2", "delay_ms": "3000"},
    "nim": {"loss": "0.1", "profile": "nim_sds"},
    "segments": {
        "loss": "0.1", "payload_least_bytes": "210000", "payload_most_bytes": "210000",
        "segment_parity": "0.25", "participants": "3",
    },
}  # fmt: skip


class FormCheck(NamedTuple):
    """A closed form, and the same figure of each simulation of a cell of the grid."""

    cell: str
    name: str
    exact: float
    simulated: list[float]

    def holds(self, coverage: float) -> bool:
        """Whether the closed form lies in the interval."""
        estimate = estimated(self.simulated, coverage)
        # All runs may agree on 1 where the ratio is a little less.
        rounding = 0.0 if estimate.low < estimate.high else 0.005
        return estimate.low - rounding <= self.exact <= estimate.high + rounding


@pytest.fixture(scope="module")
def comparisons() -> list[FormCheck]:
    """All cells of the grid."""
    found = []
    for cell, changes in GRID.items():
        plan = changed(PLAN, changes)
        outcomes = [run(plan, seed, receptions=_RECEPTIONS) for seed in SEEDS]
        exact = {
            "first_pass": closed_forms.first_pass(plan),
            "first_peer_in_time": closed_forms.first_peer_in_time(plan, 5.0),
        }
        for name, value in exact.items():
            if value is not None:
                values = [getattr(outcome, name) for outcome in outcomes]
                found.append(FormCheck(cell, name, value, values))
        if plan.loss and plan.segments() == (1, 0):
            shares = [_missed(plan, seed) for seed in SEEDS]
            exact_share = closed_forms.missed_messages(plan)
            assert exact_share is not None
            found.append(FormCheck(cell, "missed_messages", exact_share, shares))
    return found


def _log(plan: ChannelPlan, seed: int) -> Iterator[Entry]:
    return simulate(scenario_of(plan, times_of(plan, _RECEPTIONS)), seed, _START_MS)


def _missed(plan: ChannelPlan, seed: int) -> float:
    """Return the share of the messages whose first sending does not reach all."""
    reached: dict[int, int] = {}
    for entry in _log(plan, seed):
        if isinstance(entry, Transmission) and entry.cause is Cause.CONTENT:
            reached[entry.number] = 0
        elif isinstance(entry, Arrival) and entry.transmission.number in reached:
            reached[entry.transmission.number] += 1
    full = Counter(reached.values())[plan.participants - 1]
    return 1 - full / len(reached)


@pytest.mark.long
def test_closed_forms_lie_in_the_intervals(comparisons: list[FormCheck]) -> None:
    """Of the 95 % intervals at most a tenth misses, and of 99.9 % none."""
    assert len(comparisons) == 18
    outside = [one for one in comparisons if not one.holds(0.95)]
    assert len(outside) <= len(comparisons) // 10, outside
    assert [one for one in comparisons if not one.holds(0.999)] == []


@pytest.mark.long
def test_wrong_form_lies_outside(comparisons: list[FormCheck]) -> None:
    """The intervals are narrow enough to tell a loss that is half as large again."""
    lossy = [one for one in comparisons if one.cell == "two"]
    assert lossy
    for one in lossy:
        wrong = one.exact + (0.1 if one.name == "missed_messages" else -0.1)
        assert not one._replace(exact=wrong).holds(0.95)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"causal_history": "2", "profile": "nim_sds"},
        {"causal_history": "50", "profile": "js_sds"},
        {"filter_capacity": "500", "filter_rate": "0.01"},
    ],
    ids=str,
)
def test_frame_parts_are_those_of_the_simulator(changes: dict[str, str]) -> None:
    """To the byte, once the causal history is full."""
    plan = changed(PLAN, changes | {"payload_least_bytes": "200", "participants": "2"})
    frames = [
        part_sizes(entry.frame.dialect, entry.value)
        for entry in _log(plan, 1)
        if isinstance(entry, Transmission) and entry.cause is Cause.CONTENT
    ]
    assert frames[-1] == closed_forms.frame_parts(plan, 200)


def test_fixed_syncs_count_participants_by_their_clocks() -> None:
    """In nim-sds; the run has whole intervals of each participant."""
    plan = changed(PLAN, GRID["nim"])
    exact = closed_forms.fixed_syncs_per_day(plan)
    assert exact == 4 * 86_400 / 30
    assert closed_forms.fixed_syncs_per_day(PLAN) is None
    outcome = run(plan, 1, receptions=_RECEPTIONS)
    syncs = outcome.sync_bytes_per_day / sum(closed_forms.frame_parts(plan, 0))
    # The ids of sync messages are shorter than those of content.
    assert syncs == pytest.approx(exact, abs=4 * 86_400 / outcome.seconds, rel=0.005)


@pytest.mark.parametrize("ids", [5_000, 10_000, 15_000, 25_000])
def test_false_positives_of_filters_by_their_ids(ids: int) -> None:
    """With the real filter: within four deviations of the binomial."""
    bloom, asked = BloomParameters(10_000, 0.001), 40_000
    plain = BloomFilter(PLAN.participant().dialect, bloom)
    plain.add_all([f"{number:064x}" for number in range(ids)])
    hits = sum(plain.contains(f"other {number}") for number in range(asked))
    (rate,) = closed_forms.false_positive_rates(np.array([float(ids)]), bloom)
    assert hits == pytest.approx(
        asked * rate, abs=4 * (asked * rate * (1 - rate)) ** 0.5
    )


@pytest.mark.long
def test_false_acknowledgements_are_the_rate_of_exposed_messages() -> None:
    """In small filters that roll over, which the lead has filled."""
    plan = changed(
        PLAN,
        {
            "profile": "nim_sds", "participants": "2", "loss": "0.4",
            "filter_capacity": "60", "filter_rate": "0.05", "causal_history": "60",
            # Few ids come while a message is exposed, so its filters are alike.
            "retransmission_interval_s": "5", "sync_interval_s": "5",
        },
    )  # fmt: skip
    outcomes = [run(plan, seed, receptions=500) for seed in SEEDS]

    def figure(name: str) -> Estimate:
        return estimated([getattr(outcome, name) for outcome in outcomes])

    exact, simulated = (
        figure(f"false_acknowledgements{end}") for end in ("", "_simulated")
    )
    assert 0.2 < figure("exposed").value < 0.4
    assert simulated.value > 0
    assert simulated.low <= exact.value <= simulated.high


@pytest.mark.parametrize(
    ("ids", "bloom"),
    [
        (2_500, BloomParameters(10_000, 0.001)),
        (7_999, BloomParameters(10_000, 0.001)),
        (8_000, BloomParameters(12_000, 0.001)),
    ],
)
def test_young_channel_has_its_first_filter(ids: int, bloom: BloomParameters) -> None:
    """In nim-sds, a later filter is larger, and never has fewer than 8,000 ids."""
    plan = changed(PLAN, {"profile": "nim_sds", "filter_ids": str(ids)})
    (rate,) = closed_forms.false_positive_rates(np.array([float(ids)]), bloom)
    assert closed_forms.false_acknowledgement_rate(plan) == pytest.approx(rate)


def test_full_filter_follows_from_ids_a_day() -> None:
    """10,397 ids of the default filter; segments count each."""
    assert closed_forms.days_to_full_filter(PLAN) == pytest.approx(10_397.2 / 8_640)
    segmented = changed(PLAN, GRID["segments"])
    assert closed_forms.days_to_full_filter(segmented) == pytest.approx(
        10_397.2 / 8_640 / 4
    )


def test_offline_participants_have_no_closed_form() -> None:
    """Who is away decides."""
    plan = changed(PLAN, {"offline_share": "0.5"})
    assert closed_forms.first_pass(plan) is None
    assert closed_forms.missed_messages(plan) is None
    assert closed_forms.first_peer_in_time(plan, 5.0) is None


@pytest.mark.parametrize(("delay_ms", "share"), [("5000", 0.75), ("5001", 0.0)])
def test_constant_delay_of_exactly_the_target_is_in_time(
    delay_ms: str, share: float
) -> None:
    """As in simulations; half of the messages would be wrong for a constant."""
    plan = changed(
        PLAN,
        {"participants": "3", "loss": "0.5", "delay_sigma": "0", "delay_ms": delay_ms},
    )
    assert closed_forms.first_peer_in_time(plan, 5.0) == pytest.approx(share)
    outcome = run(changed(plan, {"loss": "0"}), 1, receptions=60)
    assert outcome.first_peer_in_time == float(share > 0)
