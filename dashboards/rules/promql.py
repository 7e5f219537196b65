"""PromQL of the rules.

Every operand keeps the labels that name its subject, and the target labels of the
scrape configuration (``job``, perhaps ``cluster``). Labels that a restart may change
are dropped. Operands thus usually match without `on` or `ignoring`. If a monitor
restarts on another host, its series continue. Each monitor needs a ``job`` of its own:
monitors with the same ``job`` look like one monitor that moves.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from dashboards.rules.pace import Pace
from dashboards.thresholds import BEFORE_WINDOW

ALL_LABELLED = "job:sds_channels_labelled:all"
"""1 while every channel has a label of its own, else 0; absent until the monitor
exports `sds_channels`."""

_PLACE = ("instance", "pod")
"""Labels that change when a monitor moves to another host."""


def summed(vector: str, *without: str) -> str:
    """Return the sum over all hosts and over all values of the labels `without`."""
    return _aggregated("sum", vector, without)


def latest(vector: str, *without: str) -> str:
    """Return the maximum over all hosts and over all values of the labels `without`.

    After a move, Prometheus returns the series of both hosts for some time.
    """
    return _aggregated("max", vector, without)


def earliest(vector: str, *without: str) -> str:
    """Return the minimum over all hosts and over all values of the labels `without`."""
    return _aggregated("min", vector, without)


def blind_channels() -> str:
    """Return the number of blind channels that are not muted.

    The number includes channels beyond the label limit, because no metric shows whether
    they are muted.
    """
    blind = latest('sds_channels{verdict="blind"}', "verdict")
    verdicts = latest('sds_channel_verdict{verdict="blind"}', "verdict")
    until = latest("sds_channel_muted_until_timestamp_seconds")
    muted = f"sum without (channel) ({verdicts} == 1 and {until} > time())"
    return f"({blind} - ({muted} or 0 * {blind}))"


def growth(
    figure: str, window: timedelta, pace: Pace, *, may_fall: bool = False
) -> str:
    """Return the exact growth of a counter or gauge within a window.

    ``increase`` extrapolates, which gives fractions. If a counter returns with a higher
    value on another host or after a gap, ``increase`` misses this growth.

    The growth is the current value minus a base. Usually, the base is the last value
    before the window. If the series began in the window because its subject is new, the
    base is 0. If only the series is new, because Prometheus scrapes the monitor for the
    first time or because the channel got a label, the base is the lowest value. The
    base is also the lowest value if the counter restarted, or, with `may_fall`, if the
    figure fell below the last value before the window.
    """
    since = pace(window)
    earlier = f"[{pace(BEFORE_WINDOW)}] offset {since}"
    now = latest(figure)
    lowest = earliest(f"min_over_time({figure}[{since}])")
    before = latest(f"last_over_time({figure}{earlier})")
    return (
        f"{now}\n- (\n"
        f"{before} <= {lowest if may_fall else now}\n"
        f"or (0 * {lowest} unless {before} "
        f"and on (job) min_over_time({ALL_LABELLED}{earlier}) == 1)\n"
        f"or {lowest}\n)"
    )


def unless_muted(vector: str, views: str = "sds_channel") -> str:
    """Drop the series of muted channels; `views` is the prefix of channel metrics."""
    muted = f"{views}_muted_until_timestamp_seconds"
    return f"({vector})\nunless {latest(muted)} > time()"


def most_findings(
    which: Literal["excused", "unexcused"], kind: str, window: str
) -> str:
    """Return the maximum number of excused or unexcused findings within a window."""
    series = f'sds_{which}_findings{{kind="{kind}"}}'
    return latest(f"max_over_time({series}[{window}])", "kind")


def unless_excused(vector: str, kind: str, least: int, window: str) -> str:
    """Drop channels with excused findings and fewer than `least` unexcused findings.

    The kind is a key of `sds_core.observer.sds.excused.ALERTS`.
    """
    return (
        f"({vector})\nunless ({most_findings('excused', kind, window)} > 0 "
        f"unless {most_findings('unexcused', kind, window)} >= {least})"
    )


def shown(vector: str, views: str = "sds_channel") -> str:
    """Drop the series of muted channels, and add the display name to the other series.

    The label `name` has the display name. For `views`, see `unless_muted`.
    """
    # After a rename, Prometheus returns both names for some minutes: use the newer.
    names = f"topk without (name) (1, {latest(f'timestamp({views}_info)')}) ^ 0"
    vector = unless_muted(vector, views)
    return f"({vector})\n* ignoring (name) group_left (name) {names}"


def _aggregated(how: str, vector: str, without: tuple[str, ...]) -> str:
    return f"{how} without ({', '.join((*_PLACE, *without))}) ({vector})"
