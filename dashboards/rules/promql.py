"""PromQL of the rules.

Every operand is brought to the same labels, those of what it is about and those that
the scrape configuration gave its target (``job``, and perhaps ``cluster``), without
those that a restart may change. So operands match by themselves, and a monitor that
comes back on another host goes on with its figures. One monitor per ``job`` is the
rule: those that share one are taken for a monitor that moves.
"""

from __future__ import annotations

from datetime import timedelta

from dashboards.rules.pace import Pace
from dashboards.thresholds import BEFORE_WINDOW

ALL_LABELLED = "job:sds_channels_labelled:all"
"""1 while every channel has a label of its own, else 0; absent before priming."""

_PLACE = ("instance", "pod")
"""Labels of where a program runs; it keeps its figures when it moves."""


def summed(vector: str, *without: str) -> str:
    """The sum over places and over some labels of the metric."""
    return _aggregated("sum", vector, without)


def latest(vector: str, *without: str) -> str:
    """The maximum over places and over some labels of the metric.

    For figures that are absolute: where an old place is still seen beside the new one,
    a sum would count both.
    """
    return _aggregated("max", vector, without)


def blind_channels() -> str:
    """How many channels are blind, those beyond the label budget too.

    Those that are muted are left aside; beyond the budget nobody knows them.
    """
    blind = latest('sds_channels{verdict="blind"}', "verdict")
    verdicts = latest('sds_channel_verdict{verdict="blind"}', "verdict")
    muted = f"sum without (channel) ({verdicts} == 1 and {latest(_MUTED)} > time())"
    return f"({blind} - ({muted} or 0 * {blind}))"


def growth(
    figure: str, window: timedelta, pace: Pace, *without: str, may_fall: bool = False
) -> str:
    """By how much an absolute figure has grown within a window, exactly.

    ``increase`` extrapolates, which gives fractions, and says nothing of a counter
    that came back higher from under another place or after a gap.

    It is compared with the last value before the window. A series that began within
    the window is compared with 0 if it is of something first seen now; with its own
    lowest value if it may only be new to Prometheus: a monitor seen for the first
    time, or a channel that got a label. So is a counter that began anew.

    Args:
        figure: A selector.
        window: How far back.
        pace: Of the traffic.
        without: Labels of the metric of which the greatest counts.
        may_fall: It is no counter, and is compared with its lowest value since.
    """
    since = pace(window)
    earlier = f"[{pace(BEFORE_WINDOW)}] offset {since}"
    now = latest(figure, *without)
    lowest = _aggregated("min", f"min_over_time({figure}[{since}])", without)
    before = latest(f"last_over_time({figure}{earlier})", *without)
    return (
        f"{now}\n- (\n"
        f"{before} <= {lowest if may_fall else now}\n"
        f"or (0 * {lowest} unless {before} "
        f"and on (job) min_over_time({ALL_LABELLED}{earlier}) == 1)\n"
        f"or {lowest}\n)"
    )


def unless_muted(vector: str) -> str:
    """Without the channels of whose troubles nobody is to be told now."""
    return f"({vector})\nunless {latest(_MUTED)} > time()"


def named(vector: str) -> str:
    """Each channel with the name that people call it by, in the label `name`."""
    # After a change of it the old name is still seen for some minutes: the newest.
    names = f"topk without (name) (1, {latest('timestamp(sds_channel_info)')}) ^ 0"
    return f"({vector})\n* ignoring (name) group_left (name) {names}"


_MUTED = "sds_channel_muted_until_timestamp_seconds"


def _aggregated(how: str, vector: str, without: tuple[str, ...]) -> str:
    return f"{how} without ({', '.join((*_PLACE, *without))}) ({vector})"
