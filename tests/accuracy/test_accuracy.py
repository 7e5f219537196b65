"""What the monitor finds in simulated traffic is what really happened in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from connectors.recording import load_recording
from docs import make_accuracy
from sds_core.message_channel.events import Cause
from tests.support.accuracy.figures import Figures, share, total
from tests.support.accuracy.play import START_MS, play
from tests.support.accuracy.suite import (
    NAMES,
    QUIET_WITHOUT_LOSS,
    catch_up,
    result_of,
    scenario_of,
)
from tests.support.monitor import Monitor, batches

pytestmark = pytest.mark.slow

SEEDS = (1, 2)
CALM = {"ok", "quiet", "warming_up"}


def figures(names: Iterable[str] = NAMES) -> Figures:
    """Those of some scenarios, over all seeds."""
    return total(result_of(name, seed).figures for name in names for seed in SEEDS)


def verdicts(name: str) -> set[tuple[str, str]]:
    """All verdicts that any channel of a scenario ever had, with their reasons."""
    return set(figures([name]).verdicts_ms)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_every_figure_equals_the_truth(name: str, seed: int) -> None:
    """Each figure equals the simulation's truth, in total and for each channel."""
    assert result_of(name, seed).differing == []


def test_scenarios_contain_nearly_every_outcome() -> None:
    """Agreement says little about an outcome that never occurs."""
    seen: Counter[str] = Counter()
    # With most seeds everything is acknowledged in time.
    plays = [*((name, 1) for name in NAMES), ("lost-tail", 3)]
    for name, seed in plays:
        totals = result_of(name, seed).totals
        for group in (
            "gaps",
            "repair",
            "rebroadcasts",
            "acknowledged",
            "deliveries",
            "frames",
        ):
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


def test_every_loss_that_leaves_evidence_is_found_and_no_other() -> None:
    """Real losses are distinguished from messages that only the tap missed."""
    found = figures().losses
    assert (found.wrong, found.missed, found.stale) == (0, 0, 0)
    assert found.found > 20
    assert found.tap_gaps > 50


def test_losses_without_evidence_are_counted() -> None:
    """They are never named, or seen by the tap."""
    found = figures(["lost-tail", "unrepaired"]).losses
    assert min(found.unnamed, found.trailing) > 0


def test_every_participant_shown_to_lack_a_message_is_found() -> None:
    """This also holds if the tap saw a frame long after it was composed."""
    found = figures().undelivered
    assert (found.missed, found.wrong) == (0, 0)
    assert found.found > 300


def test_delivery_outcomes_equal_the_truth() -> None:
    """A first pass may be a miss that was repaired before the next frame.

    Phones fetch what they missed before most of their frames.
    """
    said = figures(name for name in NAMES if name != "phones").deliveries
    assert said["first_pass", "none"] == said["recovered", "none"] == 0
    assert said["lost", "first"] == 0
    first, later = said["first_pass", "first"], said["first_pass", "later"]
    assert (share(first, later) or 0) > 0.98
    recovered, wrong = said["recovered", "later"], said["recovered", "first"]
    assert (share(recovered, wrong) or 0) > 0.99


def test_definite_latency_is_exact_and_no_acknowledgement_is_wrong() -> None:
    """Latencies are exact to the millisecond."""
    found = figures().acknowledgements
    assert (found.differing, found.error_ms, found.wrong, found.excess) == (0, 0, 0, 0)
    assert found.definite > 5_000
    assert found.probable > 500


def test_repairs_are_distinguished_from_retries() -> None:
    """A repair counts as a retry if no tap saw its request."""
    said = figures().rebroadcasts
    right, wrong = said["repair", Cause.REPAIR], said["repair", Cause.RETRY]
    assert (share(right, wrong) or 0) > 0.99
    assert (share(right, said["retry", Cause.REPAIR]) or 0) > 0.9
    assert said["retry", Cause.RETRY] > 50


@pytest.mark.parametrize(
    "name", ["clean", "quiet", QUIET_WITHOUT_LOSS, "phones", "tap-blind"]
)
def test_no_message_is_falsely_reported_lost(name: str) -> None:
    """The network has no loss, but a tap may have."""
    found = figures([name])
    assert (found.losses.wrong, found.undelivered.wrong) == (0, 0)


def test_clean_channels_never_raise_an_alarm() -> None:
    """No verdict is bad at any moment, and no participant is reported."""
    assert {verdict for verdict, _ in verdicts("clean")} <= CALM
    found = figures(["clean"])
    assert found.acknowledgements.unshown == found.undelivered.found == 0


def test_quiet_channels_without_loss_are_only_quiet() -> None:
    """A last message that one participant alone still shows is no fault."""
    assert {verdict for verdict, _ in verdicts(QUIET_WITHOUT_LOSS)} <= CALM


@pytest.mark.parametrize("name", ["clean", QUIET_WITHOUT_LOSS, "phones"])
def test_hardly_any_minute_has_a_wrong_verdict(name: str) -> None:
    """At most one in a thousand; phones come and go, and that is no fault."""
    found = figures([name])
    wrong_ms, all_ms = found.wrong_verdicts_ms.total(), found.verdicts_ms.total()
    assert wrong_ms <= all_ms / 1_000


def test_channels_of_phones_never_fail() -> None:
    """A phone that comes back lacks messages, and fetches them."""
    assert {verdict for verdict, _ in verdicts("phones")} <= {*CALM, "degraded"}
    assert figures(["phones"]).deliveries["recovered", "later"] > 50


def test_blind_tap_makes_no_channel_fail() -> None:
    """Between holes of its tap a channel may be reported as recovered."""
    assert {verdict for verdict, _ in verdicts("tap-blind")} <= {
        *CALM,
        "blind",
        "degraded",
    }


@pytest.mark.parametrize("name", NAMES)
def test_no_channel_is_blind_without_a_gap_of_its_taps(name: str) -> None:
    """Not for a moment, in any scenario."""
    assert figures([name]).wrong_blind_ms == 0


@pytest.mark.parametrize("size", [1_000, None])
def test_outage_of_the_job_changes_no_figure(size: int | None) -> None:
    """Reading an hour later, in any batches, gives the same figures."""
    found = catch_up(1, size)
    assert found.alike
    assert (found.lost, found.incidents) == (0, 0)
    assert found.verdicts == {"ok"}
    assert found.messages > 300


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_report_does_not_depend_on_batches(size: int) -> None:
    """It is equal to the byte, with each view restored from its blob each time."""
    records = load_recording()

    def reported(of_batch: int | None) -> str:
        monitor = Monitor(restarts=True)
        for batch in batches(records, of_batch):
            monitor.read(*batch)
        report = monitor.report(with_detail=True)
        assert report["incidents"]
        return json.dumps(report, sort_keys=True)

    assert reported(size) == reported(None)


@pytest.mark.parametrize("name", ["lossy", "mixed-dialects", "churn"])
def test_seed_gives_the_same_figures_every_time(name: str) -> None:
    """A failure can be reproduced later."""
    tomorrow_ms = START_MS + 86_400_000
    tomorrow: dict[str, Any] = play(scenario_of(name), 1, tomorrow_ms).truth["totals"]
    assert result_of(name, 1).totals == tomorrow


def test_page_lists_these_scenarios_and_its_command() -> None:
    """After adding a scenario, run ``make accuracy``."""
    page = Path(make_accuracy.PAGE).read_text(encoding="utf-8")
    for name in NAMES:
        assert f"| {name} |" in page
    assert make_accuracy.command(make_accuracy.SEEDS) in page
