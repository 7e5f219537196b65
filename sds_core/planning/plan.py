"""The newest forecasts of a running monitor, and their metrics (``sds_plan_*``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from sds_core.metrics import Metric, MetricKind, Sample, in_seconds, one_sample
from sds_core.observer.kinds import AnyKind
from sds_core.planning.fleet import Fleet
from sds_core.planning.forecast import Forecast
from sds_core.planning.limits import Reached
from sds_core.planning.measures import measures_of


class Plan(msgspec.Struct, frozen=True):
    """Forecasts of the views of one kind.

    Attributes:
        computed_ms: When the forecasts were computed, Unix ms of wall time; None before
            the first computation.
        days: Number of days that the forecasts cover.
        interval: Percentage of the simulated futures inside a forecast's intervals.
        views, without, total: See `Fleet`.
        hidden: Number of views that have no forecast because the number of forecasts,
            or the time for them, is limited.
        problem: Why the newest computation failed; empty if it succeeded. After a
            failure, the other attributes are those of the previous plan.
    """

    computed_ms: int | None = None
    days: int = 0
    interval: int = 0
    views: dict[str, Forecast] = {}
    without: dict[str, str] = {}
    total: Forecast | None = None
    hidden: int = 0
    problem: str = ""

    @classmethod
    def of(
        cls, fleet: Fleet, computed_ms: int, days: int, coverage: float, hidden: int = 0
    ) -> Plan:
        """Return the plan of a fleet. For `coverage`, see `ForecastSettings`.

        `hidden` is the number of further views, which are not in the fleet.
        """
        return cls(
            computed_ms,
            days,
            round(100 * coverage),
            dict(fleet.views),
            {name: str(why) for name, why in fleet.without.items()},
            fleet.total,
            fleet.hidden + hidden,
        )


Plans = Mapping[str, Plan]
"""The plan of each kind of view. The key is the kind's prefix."""

NO_PLAN = Plan(problem="only the command run computes forecasts")


def limits_first(views: Mapping[str, Forecast]) -> list[tuple[str, Reached]]:
    """Return all limits with their views, in ascending order of `earliest_ms`.

    Limits without `earliest_ms` come last, in ascending order of headroom.
    """
    limits = [(name, limit) for name, one in views.items() for limit in one.limits]

    def urgency(entry: tuple[str, Reached]) -> tuple[float, float]:
        _, limit = entry
        soon = limit.earliest_ms
        return (float("inf") if soon is None else soon, limit.headroom)

    return sorted(limits, key=urgency)


def plan_metrics(kind: AnyKind) -> list[Metric[Forecast]]:
    """Return the metrics of a single view's forecast, for one kind of view."""
    one, prefix = kind.names.one, f"{kind.prefix}_plan"
    figures: list[Metric[Forecast]] = [
        Metric(
            f"{prefix}_day_{figure}",
            MetricKind.GAUGE,
            f"Predicted {figure} of the {one} per day, mean of the next seven days.",
            ("bound",),
            partial(_week, figure),
        )
        for figure in ("bytes", "messages")
    ]
    if not measures_of(kind.published).gauges:
        return figures
    times = (
        ("limit", "by which half of the simulated futures reach", "at_ms"),
        (
            "limit_earliest",
            "by which 10 % of the simulated futures reach",
            "earliest_ms",
        ),
    )
    return [
        *figures,
        Metric(
            f"{prefix}_limit_headroom_ratio",
            MetricKind.GAUGE,
            f"Share of a limit that the newest value in the {one}'s history leaves "
            "unused.",
            ("limit",),
            lambda f: [((limit.name,), limit.headroom) for limit in f.limits],
        ),
        *(
            Metric(
                f"{prefix}_{name}_timestamp_seconds",
                MetricKind.GAUGE,
                f"Time {how} a limit of the {one}; absent for a limit that is not "
                "reached.",
                ("limit",),
                partial(_times, attribute),
            )
            for name, how, attribute in times
        ),
    ]


def plan_totals_metrics(kind: AnyKind) -> list[Metric[Plan]]:
    """Return the metrics about a whole plan: its time, and its numbers of views."""
    many, prefix = kind.names.many, f"{kind.prefix}_plan"
    return [
        one_sample(
            f"{prefix}_computed_timestamp_seconds",
            f"When the forecasts of {many} were computed.",
            lambda plan: in_seconds(plan.computed_ms),
        ),
        Metric(
            f"{prefix}_{many}",
            MetricKind.GAUGE,
            f"Number of {many} whose forecast is available (yes), is not available "
            "(no), or was not computed because of a limit (not_computed).",
            ("forecast",),
            lambda plan: [
                (("yes",), len(plan.views)),
                (("no",), len(plan.without)),
                (("not_computed",), plan.hidden),
            ],
        ),
    ]


def _week(figure: str, forecast: Forecast) -> list[Sample]:
    if figure not in forecast.figures:
        return []
    week = forecast.figures[figure].week
    return [((name,), end) for name, end in week._asdict().items()]


def _times(attribute: str, forecast: Forecast) -> list[Sample]:
    times = ((limit.name, getattr(limit, attribute)) for limit in forecast.limits)
    return [((name,), at_ms / 1000) for name, at_ms in times if at_ms is not None]
