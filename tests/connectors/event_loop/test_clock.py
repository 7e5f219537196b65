"""The clock never stands still, whatever the system's clock does."""

from __future__ import annotations

import time

import pytest

from connectors.event_loop.clock import SteadyClock


def test_clock_that_is_ahead_is_caught_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs at half speed until then, and never goes back."""
    wall_ms, passed_ms = 1_000_000, 0
    monkeypatch.setattr(time, "time_ns", lambda: wall_ms * 1_000_000)
    monkeypatch.setattr(time, "monotonic_ns", lambda: passed_ms * 1_000_000)
    clock = SteadyClock()
    assert clock() == 1_000_000
    wall_ms, passed_ms = 999_000, 50
    assert clock() == 1_000_025
    wall_ms, passed_ms = 999_001, 51
    assert clock() == 1_000_025
    wall_ms, passed_ms = 999_002, 52
    assert clock() == 1_000_026
    wall_ms, passed_ms = 1_001_050, 2_100
    assert clock() == 1_001_050
    wall_ms = 2_000_000
    assert clock() == 2_000_000
