"""PromQL of the rules.

Every operand is brought to the same labels, those of what it is about and those that
the scrape configuration gave its target (``job``, and perhaps ``cluster``), without
those that a restart may change. So operands match by themselves, a monitor that comes
back on another host goes on with its figures, and those of two monitors never mix as
long as a label of the target tells them apart.
"""

from __future__ import annotations

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
    """How many channels are blind, those beyond the label budget too."""
    return latest('sds_channels{verdict="blind"}', "verdict")


def growth(counter: str, window: str, *without: str) -> str:
    """By how much an absolute figure has grown within a window, exactly.

    ``increase`` extrapolates, which gives fractions, and says nothing of a counter
    that came back higher from under another place. A counter that began anew within
    the window counts from 0.

    Args:
        counter: A selector.
        window: A duration.
        without: Labels of the metric of which the greatest counts.
    """
    lowest = _aggregated("min", f"min_over_time({counter}[{window}])", without)
    return f"{latest(counter, *without)} - {lowest}"


def unless_muted(vector: str) -> str:
    """Without the channels of whose troubles nobody is to be told now."""
    return f"({vector})\nunless {latest(_MUTED)} > time()"


def named(vector: str) -> str:
    """Each channel with the name that people call it by, in the label `name`."""
    return (
        f"({vector})\n* ignoring (name) group_left (name) {latest('sds_channel_info')}"
    )


_MUTED = "sds_channel_muted_until_timestamp_seconds"


def _aggregated(how: str, vector: str, without: tuple[str, ...]) -> str:
    return f"{how} without ({', '.join((*_PLACE, *without))}) ({vector})"
