"""Scenarios of MVDS are read strictly, and errors say what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from sds_core.mvds.options import Mode
from sds_core.reading import TableError
from sds_core.simulation.mvds.scenario import MvdsScenario

LEAST: dict[str, Any] = {
    "protocol": "mvds",
    "name": "some",
    "description": "Some nodes.",
    "duration_s": 60,
    "nodes": 3,
    "interval_s": 10.0,
}


def test_scenario_has_defaults_for_all_that_is_left_out() -> None:
    """One group, one sender, epochs of a second, offers, no loss, one tap."""
    scenario = MvdsScenario.from_mapping(LEAST)
    assert (scenario.groups, scenario.senders, scenario.epoch_ms) == (1, 1, 1_000)
    assert (scenario.mode, scenario.backoff) == (Mode.INTERACTIVE, "document")
    assert scenario.network.loss == 0
    assert [tap.name for tap in scenario.taps] == ["tap"]
    assert scenario.total_ms == scenario.duration_ms == 60_000


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"nodes": 1}, "nodes"),
        ({"nodes": 201}, "nodes"),
        ({"senders": 4}, "senders is 4, but the maximum is 3"),
        ({"nodes": 150, "epoch_ms": 100}, "nodes is 150, but the maximum is 100"),
        ({"payload_bytes": 65_481}, "payload_bytes is 65481: .* from 1 to 65480"),
        ({"mode": "push"}, "mode"),
        ({"backoff": "random"}, "backoff"),
        ({"epochs": 3}, "epochs"),
        ({"taps": [{"name": "a"}, {"name": "a"}]}, "contain the name 'a' twice"),
        (
            {
                "network": {
                    "partitions": [{"from_s": 1, "until_s": 2, "participants": 3}]
                }
            },
            r"network.partitions\[0\].participants is 3, but the maximum is 2",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_value_is_refused_with_place_and_limit(
    wrong: dict[str, Any], words: str
) -> None:
    """Each kind of mistake."""
    with pytest.raises(TableError, match=words):
        MvdsScenario.from_mapping(LEAST | wrong)
