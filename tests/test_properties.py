"""How Hypothesis runs properties."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def test_no_time_decides_a_property() -> None:
    """A busy machine is slow, not wrong."""
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
