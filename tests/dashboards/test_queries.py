"""Results of the panels' PromQL, computed by Prometheus."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboards.panels import queries
from dashboards.panels.queries import JOB
from tests.support.dashboards.expressions import substitute
from tests.support.dashboards.promtool_runs import assert_cases_hold

VARIABLES = {"job": "sds-monitor", "__range": "10m", "__rate_interval": "5m"}

SERIES = {
    # Lost 4 deliveries of 40 in ten minutes, one of them shown after all.
    'sds_deliveries_total{channel="a", outcome="first_pass"}': "100+3.6x10",
    'sds_deliveries_total{channel="a", outcome="lost"}': "7+0.4x10",
    'sds_delivery_losses_retracted_total{channel="a"}': "3+0.1x10",
    'sds_channel_objective_ratio{channel="a", objective="delivery"}': "0.9x10",
    'sds_channel_verdict{channel="a", verdict="failing"}': "1x10",
    'sds_channel_verdict{channel="a", verdict="ok"}': "0x10",
    'sds_channel_info{channel="a", name="Team A"}': "1x10",
    # A retraction of a loss from before the range.
    'sds_dependency_gaps_closed_total{channel="a", outcome="lost"}': "5x10",
    'sds_dependency_losses_retracted_total{channel="a"}': "0+0.1x10",
    # Nobody delivered anything.
    'sds_deliveries_total{channel="b", outcome="first_pass"}': "9x10",
    'sds_deliveries_total{channel="b", outcome="lost"}': "0x10",
    'sds_delivery_losses_retracted_total{channel="b"}': "0x10",
    'sds_channel_objective_ratio{channel="b", objective="delivery"}': "0.9x10",
    'sds_channel_verdict{channel="b", verdict="failing"}': "0x10",
    'sds_channel_verdict{channel="b", verdict="ok"}': "1x10",
    'sds_channel_info{channel="b", name="b"}': "1x10",
    # Scraped under another name until a moment ago.
    'sds_channel_info{channel="b", name="was b"}': "1x8",
}

A, B = '{channel="a"}', '{channel="b"}'

CASES: dict[str, tuple[str, dict[str, float]]] = {
    "a retracted loss is delivered": (
        queries.delivered(JOB, window="10m"),
        {"{}": 37 / 40},
    ),
    "without deliveries there is no ratio": (
        queries.delivered(JOB, "channel"),
        {A: 37 / 40},
    ),
    "three failed where four may": (
        queries.delivery_budget_used(JOB),
        {A: 3 / 4},
    ),
    "losses are counted less the retracted": (
        queries.lost_deliveries(JOB, "channel"),
        {A: 3, B: 0},
    ),
    "more retracted than lost is no loss": (
        queries.lost_messages(JOB),
        {"{}": 0},
    ),
    "a verdict is a number with a name": (
        queries.named(queries.trouble(JOB), JOB),
        {'{channel="a", name="Team A"}': 5, '{channel="b", name="b"}': 0},
    ),
    "an absent sum is what stands in for it": (
        queries.or_else(queries.total("absent_metric", 'job="x"'), -1),
        {"{}": -1},
    ),
}


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("case", CASES)
def test_query_has_the_expected_result(case: str, tmp_path: Path) -> None:
    """To a millionth."""
    expression, expected = CASES[case]
    # Rounded to a millionth: promtool 2.42 compares to the last bit.
    rounded = f"round({substitute(expression, VARIABLES)}, 0.000001)"
    test = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name.replace("{", '{job="sds-monitor", '), "values": v}
                    for name, v in SERIES.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": rounded,
                        "eval_time": "10m",
                        "exp_samples": [
                            {"labels": labels, "value": value}
                            for labels, value in expected.items()
                        ],
                    }
                ],
            }
        ],
    }
    assert_cases_hold(test, tmp_path)
