"""A scenario to change, as a mapping such as TOML gives."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def mapping() -> dict[str, Any]:
    """One channel of four on a perfect network, for a minute; one tap.

    All delays are equal, so that no answer overtakes what it answers.
    """
    return {
        "name": "small",
        "description": "one channel",
        "duration_s": 60,
        "participants": 4,
        "channels": [{"name": "ch", "traffic": {"mean_interval_s": 2}}],
        "network": {
            "delay": {"distribution": "uniform", "low_ms": 50, "high_ms": 50},
        },
        "taps": [
            {
                "name": "tap",
                "delay": {"distribution": "uniform", "low_ms": 10, "high_ms": 10},
            }
        ],
    }
