"""Texts for the figures and limits of forecasts, for the terminal and for pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from sds_core.planning.estimates import Estimate
from sds_core.planning.forecast import Interval, Outlook
from sds_core.planning.limits import Reached
from sds_core.text import byte_size, utc_time

HEADROOM = "epoch_headroom"

_FIGURES: Mapping[str, str] = {
    "retransmission": "bytes of retransmissions",
    "kafka.bytes": "bytes in Kafka",
    "kafka.bytes_per_second": "Kafka B/s, peak hour",
    "kafka.storage": "Kafka storage, peak",
    "epoch_messages": "epoch messages, peak",
    HEADROOM: "epoch headroom, least",
    "message_bytes": "message size, peak hour",
    "filter_ids": "ids in filter, peak",
}
_LIMITS: Mapping[str, str] = {
    "epoch_messages": "rate-limit budget",
    "message_bytes": "message size",
    "filter_ids": "filter",
}
_PART = "bytes."


def part_of(figure: str) -> str:
    """Return the name of the frame part that a figure ``bytes.<part>`` measures.

    For any other figure, return an empty text.
    """
    return figure.removeprefix(_PART) if figure.startswith(_PART) else ""


def figure_name(figure: str) -> str:
    """Return the displayed name of a forecast's figure.

    If the figure measures one frame part, its name is indented.
    """
    part = part_of(figure)
    return f"  {part}" if part else _FIGURES.get(figure, figure)


def limit_name(figure: str) -> str:
    """Return the displayed name of the limit that applies to a figure."""
    return _LIMITS.get(figure, figure)


def amount(figure: str, value: float) -> str:
    """Return a figure's value as text with its unit."""
    if figure == HEADROOM:
        return f"{100 * value:.0f} %"
    if "bytes" not in figure and figure not in ("retransmission", "kafka.storage"):
        return f"{value:,.0f}"
    return byte_size(value)


def interval(figure: str, value: Interval) -> str:
    """Return the text "<low> to <high>" for an interval of a figure's forecast."""
    return f"{amount(figure, value.low)} to {amount(figure, value.high)}"


def figure_rows(figures: Mapping[str, Outlook]) -> list[tuple[str, str, str, str]]:
    """Return a table row for each figure: name, past value, forecast, interval.

    The past value is for the last seven days of the history. The forecast and its
    interval are for the seven days after the history.
    """
    return [
        (
            figure_name(name),
            amount(name, one.past),
            amount(name, one.week.mid),
            interval(name, one.week),
        )
        for name, one in figures.items()
    ]


def limit_line(limit: Reached, days: int) -> str:
    """Return one line that states when a figure reaches its limit.

    `days` is the number of days that the forecast covers.
    """
    what = f"{limit_name(limit.name)} ({amount(limit.name, limit.limit)})"
    if limit.is_reached:
        return f"{what}: reached"
    if limit.note:
        what = f"{what}, {limit.note}"
    if limit.earliest_ms is None:
        return f"{what}: not within {days} days"
    middle, latest = (
        f"later than {days} days" if at_ms is None else utc_time(at_ms)
        for at_ms in (limit.at_ms, limit.latest_ms)
    )
    return f"{what}: {middle} (earliest {utc_time(limit.earliest_ms)}, latest {latest})"


def with_interval(estimate: Estimate, text: Callable[[float], str]) -> str:
    """Return a mean and half the width of its interval, as ``mean ± half``.

    If only one run has the figure, ``?`` replaces the half width. If the figure is
    exact, the half width is omitted. If no run has the figure, the text is ``-``.
    `text` converts a number to text.
    """
    if math.isnan(estimate.value):
        return "-"
    half = (estimate.high - estimate.low) / 2
    mean = text(estimate.value)
    if not half:
        return mean
    return f"{mean} ± {text(half) if math.isfinite(half) else '?'}"
