"""Alerts on the error budgets of a channel's SLOs."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards import CHANNEL
from dashboards.rules.alert import Alert, Severity, Subject
from dashboards.rules.pace import LIFE
from dashboards.rules.promql import latest, shown
from dashboards.rules.recording import ACKNOWLEDGEMENT, DELIVERY, Indicator
from dashboards.thresholds import BURN_RATES, BurnRate

_TEXTS = {
    DELIVERY: (
        "SdsDeliveryBudgetBurn",
        "More deliveries fail than the channel's SLO allows.",
        "of the deliveries that ended in the last",
        "were lost",
    ),
    ACKNOWLEDGEMENT: (
        "SdsAcknowledgementBudgetBurn",
        "More messages stay unacknowledged than the channel's SLO allows.",
        "of the messages whose deadline fell in the last",
        "were not acknowledged in time",
    ),
}


def budget_alerts() -> Iterator[Alert]:
    """Yield an alert for each combination of an SLO and a pair of windows."""
    for indicator in (DELIVERY, ACKNOWLEDGEMENT):
        for burn in BURN_RATES:
            yield _alert(indicator, burn)


def _alert(indicator: Indicator, burn: BurnRate) -> Alert:
    name, summary, events, failed = _TEXTS[indicator]
    long = LIFE(burn.long)
    times = "" if burn.factor == 1 else f"{burn.factor:g} times "
    return Alert(
        name,
        Severity(burn.severity),
        shown(_burning(indicator, burn)),
        summary,
        f"{{{{ $labels.name }}}}: {{{{ $value | humanizePercentage }}}} {events} "
        f"{long} {failed}, more than {times}what the SLO allows.",
        subject=Subject.CHANNEL,
        dashboard=CHANNEL,
        labels={"window": long},
    )


def _burning(indicator: Indicator, burn: BurnRate) -> str:
    objective = latest(
        f'sds_channel_objective_ratio{{objective="{indicator.objective}"}}', "objective"
    )
    limit = f"{burn.factor:g} * (1 - {objective})"
    return (
        f"{indicator.ratio(burn.long)} > {limit}\n"
        f"and {indicator.ratio(burn.short)} > {limit}\n"
        f"and {indicator.events(burn.long)} >= {burn.least_events}"
    )
