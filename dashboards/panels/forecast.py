"""Panels of the forecasts, which a monitor computes once an hour."""

from __future__ import annotations

from dashboards.panels import queries
from dashboards.panels.base import Panel
from dashboards.panels.charts import figure, lines, ratios
from dashboards.panels.frame import in_lines
from dashboards.panels.queries import CHANNELS, JOB, select
from dashboards.panels.series import Query
from dashboards.panels.tables import Column, channel_rows


def _first(time: str) -> str:
    series = select(f"sds_plan_{time}_timestamp_seconds", CHANNELS)
    return f"1000 * min by (channel) ({series})"


_HEADROOM = select("sds_plan_limit_headroom_ratio", CHANNELS)
_NEAREST = f"bottomk(10, min by (channel, limit) ({_HEADROOM}))"

LIMITS: list[Panel] = in_lines(
    [
        channel_rows(
            "When limits are reached",
            "Channels that may reach one of their limits within 90 days. The earliest "
            "date is the lower bound of the forecast's 80 % interval. If a date is in "
            "the past, the channel has already reached the limit. For charts of all "
            "limits, open Planning on the status page.",
            Column(
                "Earliest",
                queries.named(f"bottomk(20, {_first('limit_earliest')})", CHANNELS),
                unit="dateTimeFromNow",
            ),
            Column("Median", _first("limit"), unit="dateTimeFromNow"),
            Column(
                "Least headroom", f"min by (channel) ({_HEADROOM})", unit="percentunit"
            ),
            height=8,
        ),
        ratios(
            "Headroom of the nearest limits",
            "Unused share of each limit, for the ten limits with the smallest unused "
            "shares. If the share is 0, the channel has reached the limit.",
            Query(queries.named(_NEAREST, CHANNELS), "{{name}} {{limit}}"),
        ),
    ],
    2,
)
"""Panels that show when channels reach limits."""


def costs(prefix: str, many: str) -> list[Panel]:
    """Return panels on the future traffic of views, and on the freshness of forecasts.

    The names of the metrics begin with `prefix`. `many` is the plural noun for the
    views, such as "channels".
    """
    computed = queries.greatest(f"{prefix}_plan_computed_timestamp_seconds", JOB)
    number, kinds = f"{prefix}_plan_{many}", ("yes", "no", "not_computed")
    panels: list[Panel] = [
        *(
            lines(
                f"{name} a day, next seven days",
                f"Forecast of {name.lower()} per day, summed over all {many} that "
                "have both a forecast and a label. Each bound is the sum of the "
                f"bounds of all {many}, so the true interval is narrower.",
                Query(
                    queries.total(
                        f"{prefix}_plan_day_{name.lower()}", CHANNELS, "bound"
                    ),
                    "{{bound}}",
                ),
                unit=unit,
            )
            for name, unit in (("Bytes", "bytes"), ("Messages", "short"))
        ),
        figure(
            "Forecasts",
            f"Number of {many} with and without a forecast. The value 'no' usually "
            "means that the history is too short. The value 'not computed' means that "
            "the maximum number of forecasts is reached.",
            *(
                Query(queries.total(number, JOB, forecast=kind), kind.replace("_", " "))
                for kind in kinds
            ),
        ),
        figure(
            "Staleness of the forecasts",
            "Time since the monitor last computed the forecasts. A time above two "
            "hours means that the computation fails. For the reason, open Planning on "
            "the status page.",
            f"time() - {computed}",
            unit="s",
        ),
    ]
    return in_lines(panels, 2, 2)
