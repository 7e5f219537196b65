"""The monitor is right over hours: phones, wrong clocks, restarts, nim-sds that syncs.

Here the first two and a half hours of each scenario are simulated, in seconds; the
whole eight are in docs/accuracy-hours.md.
"""

from __future__ import annotations

import pytest

from docs import make_accuracy_hours
from tests.support.accuracy.suite import HOURS, Result, result_of

# Compiled rules need a third of the time.
pytestmark = pytest.mark.slow


IN_CI = "nim-sync-8h"


def over_hours(*names: str) -> pytest.MarkDecorator:
    """Scenarios; half a minute each, so that `make test` plays a single one."""
    params = [
        pytest.param(name, marks=() if name == IN_CI else pytest.mark.long)
        for name in names
    ]
    return pytest.mark.parametrize("name", params)


def short(name: str) -> Result:
    """Two hours and a half of a scenario."""
    return result_of(name, 1, is_short=True)


@over_hours(*HOURS)
def test_every_figure_equals_the_truth_over_hours(name: str) -> None:
    """Each figure, in total and for each channel, repair of old messages included."""
    assert short(name).differing == []


@over_hours(*HOURS)
def test_no_channel_is_blind_without_a_gap_of_its_taps(name: str) -> None:
    """Not for a moment: a wrong clock is no gap."""
    found = short(name).figures
    assert found.gaps == 0
    assert found.wrong_blind_ms == 0


@over_hours("phones-8h", "restarts-8h")
def test_messages_older_than_an_hour_are_requested_and_repaired(name: str) -> None:
    """By participants that were away for hours, or have lost their state."""
    result = short(name)
    assert result.figures.old_repairs > 50
    assert result.totals["repair"]["answered"] > 100


def test_sync_frames_of_nim_sds_are_repaired() -> None:
    """Their ids stand in causal histories."""
    assert short("nim-sync-8h").figures.sync_repairs > 100


@over_hours("phones-8h", "restarts-8h", "nim-sync-8h")
def test_nobody_is_falsely_blamed_over_hours(name: str) -> None:
    """No loss, undelivered message or acknowledgement is told that is none."""
    found = short(name).figures
    assert (found.losses.wrong, found.losses.missed) == (0, 0)
    assert (found.undelivered.wrong, found.undelivered.missed) == (0, 0)
    assert (found.acknowledgements.wrong, found.acknowledgements.error_ms) == (0, 0)


def test_page_lists_these_scenarios_and_no_difference() -> None:
    """After adding a scenario of hours, run ``make accuracy-hours``."""
    page = make_accuracy_hours.PAGE.read_text(encoding="utf-8")
    for name in HOURS:
        assert f"| {name} |" in page
    assert "no figures of the reports differ" in page
    assert "this verdict was wrong for 0.0 minutes" in page
