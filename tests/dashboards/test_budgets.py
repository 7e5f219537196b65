"""When alerts on error budgets begin and end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboards.build import GENERATED
from tests.support.dashboards.promtool_runs import assert_cases_hold

FACTORS = {"1h": 14.4, "6h": 6.0, "1d": 3.0, "3d": 1.0}
"""By the long window, how many times too fast a budget must be used up."""

SHORT_MINUTES = {"1h": 5, "6h": 30, "1d": 120, "3d": 360}
"""By the long window, the short one."""

OBJECTIVES = {"delivery": 0.99, "acknowledgement": 0.95}
ALERTS = {
    "delivery": "SdsDeliveryBudgetBurn",
    "acknowledgement": "SdsAcknowledgementBudgetBurn",
}

every_objective = pytest.mark.parametrize("objective", OBJECTIVES)


def series(objective: str, channel: str, good: str, failed: str) -> dict[str, str]:
    """All that is scraped of a channel, by name.

    Args:
        objective: Which of its events there are.
        channel: Its id.
        good: Values of those that went well.
        failed: Values of those that did not.
    """
    counters = {
        "delivery": {
            'sds_deliveries_total{outcome="first_pass"}': good,
            'sds_deliveries_total{outcome="lost"}': failed,
            "sds_delivery_losses_retracted_total{}": "0x500",
        },
        "acknowledgement": {
            "sds_messages_acknowledged_in_time_total{}": good,
            "sds_messages_unacknowledged_total{}": failed,
        },
    }[objective] | {
        f'sds_channel_objective_ratio{{objective="{objective}"}}': (
            f"{OBJECTIVES[objective]}x500"
        ),
        f'sds_channel_info{{name="{channel}"}}': "1x500",
    }
    place = f'{{job="sds", channel="{channel}", '
    return {name.replace("{", place): values for name, values in counters.items()}


def cases(
    objective: str,
    scraped: dict[str, str],
    expected: dict[int, set[tuple[str, str]]],
) -> dict[str, Any]:
    """What is scraped, and by minute which channels then burn in which windows."""
    burning = f'count by (channel, window) (ALERTS{{alertname="{ALERTS[objective]}"}})'
    return {
        "rule_files": [
            str(GENERATED / f"prometheus/{name}.yml")
            for name in ("recording", "alerts")
        ],
        "evaluation_interval": "1m",
        "group_eval_order": ["sds-recording", "sds-channel"],
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values}
                    for name, values in scraped.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": burning,
                        "eval_time": f"{minute}m",
                        "exp_samples": [
                            {
                                "labels": f'{{channel="{channel}", window="{window}"}}',
                                "value": 1,
                            }
                            for channel, window in sorted(found)
                        ],
                    }
                    for minute, found in expected.items()
                ],
            }
        ],
    }


def near_limits(objective: str) -> Iterator[tuple[str, float]]:
    """Channels that burn a tenth slower and faster than each pair allows."""
    for window, factor in FACTORS.items():
        for nearness in (0.9, 1.1):
            burnt = nearness * factor
            if burnt * (1 - OBJECTIVES[objective]) < 1:
                yield f"{nearness:g} of {window}", burnt


@every_objective
@pytest.mark.needs("promtool")
def test_budget_alert_fires_just_above_its_limit(
    objective: str, tmp_path: Path
) -> None:
    """Each pair of windows has its own factor."""
    scraped: dict[str, str] = {}
    expected = set()
    for channel, burnt in near_limits(objective):
        failed = round(10_000 * burnt * (1 - OBJECTIVES[objective]))
        scraped |= series(
            objective, channel, f"0+{10_000 - failed}x80", f"0+{failed}x80"
        )
        expected |= {(channel, one) for one, least in FACTORS.items() if burnt > least}
    assert len(expected) > len(FACTORS)
    assert_cases_hold(cases(objective, scraped, {75: expected}), tmp_path)


@pytest.mark.slow
@every_objective
@pytest.mark.needs("promtool")
def test_budget_alert_ends_with_its_short_window(
    objective: str, tmp_path: Path
) -> None:
    """The long window still contains the hour of failures."""
    scraped = series(objective, "c", "0x60 0+10x440", "0+10x60 600x440")
    # What a window adds up are slices, each as long as the shortest window.
    over = {window: 66 + short for window, short in SHORT_MINUTES.items()}
    expected = {
        minute: {("c", window) for window, end in over.items() if end > minute}
        for minute in (60, *over.values())
    }
    assert_cases_hold(cases(objective, scraped, expected), tmp_path)
