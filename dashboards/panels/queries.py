"""Builds the PromQL of the panels: selections, sums and ratios.

Each ratio is the quotient of two sums. Each quantile is computed from buckets that are
summed over series. Therefore, no figure is an average of averages.
"""

from __future__ import annotations

from sds_core.observer.verdict import Verdict

JOB = 'job="$job"'
"""Scope: all series of one monitor."""

CHANNEL = f'{JOB}, channel="$channel"'
"""Scope: the series of one channel of one monitor."""

CHANNELS = f'{JOB}, channel=~"$channel"'
"""Scope: the series of the selected channels of one monitor."""

RATE_WINDOW = "$__rate_interval"
"""Grafana's variable for a window that is at least as long as four scrape intervals and
as one step of the graph."""

RANGE = "$__range"
"""Grafana's variable for the dashboard's time range."""

TROUBLE = {
    Verdict.FAILING: 5,
    Verdict.BLIND: 4,
    Verdict.DEGRADED: 3,
    Verdict.WARMING_UP: 2,
    Verdict.QUIET: 1,
    Verdict.OK: 0,
}
"""Verdict -> its number, in the order of the status page. A worse verdict has a greater
number."""


def select(metric: str, scope: str, **labels: str) -> str:
    """Return the selector of a metric's series in a scope, with the given labels."""
    matchers = [scope] if scope else []
    matchers += [f'{name}="{value}"' for name, value in labels.items()]
    return f"{metric}{{{', '.join(matchers)}}}" if matchers else metric


def total(metric: str, scope: str, *by: str, **labels: str) -> str:
    """Return the sum of a gauge, grouped by the labels `by`; see `select`."""
    return _aggregated("sum", select(metric, scope, **labels), by)


def greatest(metric: str, scope: str, *by: str, **labels: str) -> str:
    """Return the maximum of a gauge, grouped by the labels `by`; see `select`."""
    return _aggregated("max", select(metric, scope, **labels), by)


def rate(
    metric: str, scope: str, *by: str, window: str = RATE_WINDOW, **labels: str
) -> str:
    """Return a counter's summed rate, grouped by the labels `by`; see `select`."""
    series = select(metric, scope, **labels)
    return _aggregated("sum", f"rate({series}[{window}])", by)


def increase(
    metric: str, scope: str, *by: str, window: str = RATE_WINDOW, **labels: str
) -> str:
    """Return a counter's summed growth, grouped by the labels `by`; see `select`."""
    series = select(metric, scope, **labels)
    return _aggregated("sum", f"increase({series}[{window}])", by)


def in_range(metric: str, scope: str, *by: str, **labels: str) -> str:
    """Return a counter's growth in the dashboard's time range; see `increase`."""
    return increase(metric, scope, *by, window=RANGE, **labels)


def counted(metric: str, scope: str, *by: str, **labels: str) -> str:
    """Return `in_range`, rounded to a whole number of events."""
    # `increase` extrapolates to the ends of the range, so it returns fractions.
    return f"round({in_range(metric, scope, *by, **labels)})"


def or_else(expression: str, value: int = 0) -> str:
    """Return a query with the result of `expression`, or `value` if it has no series.

    The result of `expression` must have no labels.
    """
    return f"{expression} or vector({value})"


def share(part: str, whole: str) -> str:
    """Return the ratio of two sums.

    If `whole` is 0, the result has no series. Division by 0 would return NaN.
    """
    return f"({part}) / (({whole}) > 0)"


def share_in_range(
    part: str, whole: str, scope: str, /, *by: str, **labels: str
) -> str:
    """Return the ratio of two counters' growth in the dashboard's time range.

    `labels` select series of the counter `part`, but not of the counter `whole`.
    """
    return share(in_range(part, scope, *by, **labels), in_range(whole, scope, *by))


def quantile(q: float, histogram: str, scope: str, **labels: str) -> str:
    """Return the quantile `q`, in [0, 1], of a histogram whose series are summed."""
    buckets = rate(f"{histogram}_bucket", scope, "le", **labels)
    return f"histogram_quantile({q}, {buckets})"


def quantile_in_range(q: float, histogram: str, scope: str) -> str:
    """Return the quantile `q` of the durations in the dashboard's time range."""
    buckets = in_range(f"{histogram}_bucket", scope, "le")
    return f"histogram_quantile({q}, {buckets})"


def named(per_channel: str, scope: str) -> str:
    """Add the label `name`, the display name, to a vector labelled only `channel`."""
    scraped = f"timestamp({select('sds_channel_info', scope)})"
    # For some minutes after a rename, Prometheus returns both the old name and the new
    # name. Use the new name.
    newest = _aggregated("max", scraped, ("channel", "name"))
    names = f"topk by (channel) (1, {newest}) ^ 0"
    return f"({per_channel}) * on (channel) group_left (name) {names}"


def worst(per_channel: str, scope: str, count: int = 10) -> str:
    """Return the `count` channels with the greatest values, and their display names."""
    return named(f"topk({count}, {per_channel})", scope)


def delivered(scope: str, *by: str, window: str = RATE_WINDOW) -> str:
    """Return the eventual delivery ratio: (ended - lost + retracted) / ended."""
    ended = rate("sds_deliveries_total", scope, *by, window=window)
    lost = rate("sds_deliveries_total", scope, *by, outcome="lost", window=window)
    retracted = rate("sds_delivery_losses_retracted_total", scope, *by, window=window)
    return share(f"{ended} - {lost} + {retracted}", ended)


def delivery_budget_used(scope: str) -> str:
    """Return, for each channel, the used share of its delivery error budget.

    Only failures in the dashboard's time range count as use.
    """
    failed = f"1 - {delivered(scope, 'channel', window=RANGE)}"
    return share(failed, f"1 - {objective('delivery', scope, 'channel')}")


def acknowledged(scope: str, window: str = RATE_WINDOW) -> str:
    """Return which share of the judged messages was acknowledged in time."""
    in_time = rate("sds_messages_acknowledged_in_time_total", scope, window=window)
    missed = rate("sds_messages_unacknowledged_total", scope, window=window)
    return share(in_time, f"{in_time} + {missed}")


def lost_messages(scope: str, *by: str) -> str:
    """Return how many dependencies were found lost in the dashboard's time range.

    Losses that were retracted in the time range are subtracted.
    """
    lost = counted("sds_dependency_gaps_closed_total", scope, *by, outcome="lost")
    retracted = counted("sds_dependency_losses_retracted_total", scope, *by)
    # `lost - retracted` may be negative: `retracted` includes retractions of losses
    # that were found before the time range.
    return f"clamp_min({lost} - {retracted}, 0)"


def lost_deliveries(scope: str, *by: str) -> str:
    """Return how many deliveries were found lost in the dashboard's time range.

    Losses that were retracted in the time range are subtracted.
    """
    lost = counted("sds_deliveries_total", scope, *by, outcome="lost")
    retracted = counted("sds_delivery_losses_retracted_total", scope, *by)
    return f"clamp_min({lost} - {retracted}, 0)"


def trouble(scope: str, metric: str = "sds_channel_verdict") -> str:
    """Return the number in `TROUBLE` of the verdict of each channel or group."""
    terms = " or ".join(
        f"{rank} * {select(metric, scope, verdict=verdict.value)}"
        for verdict, rank in TROUBLE.items()
    )
    return _aggregated("max", terms, ("channel",))


def objective(name: str, scope: str, *by: str) -> str:
    """Return the SLO `name` of channels; `name` is `delivery` or `acknowledgement`."""
    return greatest("sds_channel_objective_ratio", scope, *by, objective=name)


def _aggregated(operator: str, series: str, by: tuple[str, ...]) -> str:
    grouping = f" by ({', '.join(by)}) " if by else ""
    return f"{operator}{grouping}({series})"
