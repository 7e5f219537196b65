"""PromQL of the rules.

The subject of a series is the channel, group or tap that the series is about. Every
operand of an expression keeps the labels that name its subject (for example
``channel``), and the target labels of the scrape configuration (``job``, perhaps
``cluster``). Labels that a restart may change are dropped. Thus, operands usually match
without `on` or `ignoring`, and the series of a monitor continue if it restarts on
another host. Each monitor needs a ``job`` of its own, because monitors with the same
``job`` look like one monitor that moves between hosts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from dashboards.rules.pace import Pace
from dashboards.thresholds import BEFORE_WINDOW

ALL_LABELLED = "job:sds_channels_labelled:all"
"""This series is 1 while every channel has a label of its own, else 0. The series is
absent until the monitor exports `sds_channels`."""

ALL_GROUPS_LABELLED = "job:mvds_groups_labelled:all"
"""As `ALL_LABELLED`, for groups, which have a cardinality limit of their own."""

_PLACE = ("instance", "pod")
"""Labels that change when a monitor moves to another host."""


def summed(vector: str, *without: str) -> str:
    """Return PromQL for the sum over all hosts and over the labels in `without`."""
    return _aggregated("sum", vector, without)


def latest(vector: str, *without: str) -> str:
    """Return PromQL for the maximum over all hosts and over the labels in `without`.

    After a monitor moves to another host, Prometheus returns the series of both hosts
    for some time.
    """
    return _aggregated("max", vector, without)


def earliest(vector: str, *without: str) -> str:
    """Return PromQL for the minimum over all hosts and over the labels in `without`."""
    return _aggregated("min", vector, without)


def all_blind(views: str = "sds_channel") -> str:
    """Return PromQL for the number of blind channels or groups, even if muted.

    For `views`, see `unless_muted`. Only this number includes channels beyond the label
    limit, because these channels have no series of their verdicts.
    """
    return latest(f'{views}s{{verdict="blind"}}', "verdict")


def unmuted_blind(views: str = "sds_channel") -> str:
    """Return PromQL for the number of blind channels or groups that are not muted.

    For `views`, see `unless_muted`. The number includes all blind channels beyond the
    label limit, because no metric shows whether such a channel is muted.
    """
    blind = all_blind(views)
    verdicts = latest(f'{views}_verdict{{verdict="blind"}}', "verdict")
    until = latest(f"{views}_muted_until_timestamp_seconds")
    muted = f"sum without (channel) ({verdicts} == 1 and {until} > time())"
    return f"({blind} - ({muted} or 0 * {blind}))"


def growth(
    figure: str,
    window: timedelta,
    pace: Pace,
    *,
    may_fall: bool = False,
    all_labelled: str = ALL_LABELLED,
) -> str:
    """Return PromQL for the exact growth of a counter or gauge within a window.

    PromQL's ``increase`` is not exact: it extrapolates, so its result may be a
    fraction. If a series ends and continues with a higher value, on another host or
    after a gap, ``increase`` does not count the difference.

    The growth is the current value minus a base value:

    - Usually, the base is the last value before the window.
    - If the series began in the window because its subject (such as a channel) is
      new, the base is 0.
    - If the subject is older than the series, the base is the lowest value in the
      window. For example, Prometheus scrapes the monitor for the first time, or the
      channel got a label. For figures of groups, `all_labelled` must be
      `ALL_GROUPS_LABELLED`.
    - If the counter restarted, the base is also the lowest value in the window. Unless
      `may_fall`, a restart is found only if the current value is below the last value
      before the window, so a single wrong 0 is no restart. With `may_fall`, the same
      applies if any value in the window is below it: the figure is a gauge, or its
      subject may be forgotten and return.
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
        f"and on (job) min_over_time({all_labelled}{earlier}) == 1)\n"
        f"or {lowest}\n)"
    )


def unless_muted(vector: str, views: str = "sds_channel") -> str:
    """Drop the series of muted channels or groups.

    `views` is the prefix of the metrics about the settings of channels or groups.
    """
    muted = f"{views}_muted_until_timestamp_seconds"
    return f"({vector})\nunless {latest(muted)} > time()"


def most_findings(
    which: Literal["excused", "unexcused"], kind: str, window: str
) -> str:
    """Return PromQL for the maximum of a gauge of findings within a window.

    `which` and `kind` select the gauge's series.
    """
    series = f'sds_{which}_findings{{kind="{kind}"}}'
    return latest(f"max_over_time({series}[{window}])", "kind")


def unless_excused(vector: str, kind: str, least: int, window: str) -> str:
    """Drop channels with excused findings, unless enough findings are unexcused.

    At least `least` unexcused findings are enough. `kind` is a key of
    `sds_core.observer.sds.excused.ALERTS`.
    """
    return (
        f"({vector})\nunless ({most_findings('excused', kind, window)} > 0 "
        f"unless {most_findings('unexcused', kind, window)} >= {least})"
    )


def shown(vector: str, views: str = "sds_channel") -> str:
    """Drop the series of muted channels; add the label `name` to the other series.

    `name` is the display name of the channel. For `views`, see `unless_muted`.
    """
    # After a channel is renamed, Prometheus returns both names for some minutes. The
    # expression selects the newer name.
    names = f"topk without (name) (1, {latest(f'timestamp({views}_info)')}) ^ 0"
    vector = unless_muted(vector, views)
    return f"({vector})\n* ignoring (name) group_left (name) {names}"


def _aggregated(how: str, vector: str, without: tuple[str, ...]) -> str:
    return f"{how} without ({', '.join((*_PLACE, *without))}) ({vector})"
