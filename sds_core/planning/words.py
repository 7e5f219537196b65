"""Displays figures and limits of forecasts, for the terminal and for pages."""

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
    """Return the frame part that a figure measures in bytes, or an empty text."""
    return figure.removeprefix(_PART) if figure.startswith(_PART) else ""


def figure_name(figure: str) -> str:
    """Return the displayed name of a forecast's figure. Names of parts are indented."""
    part = part_of(figure)
    return f"  {part}" if part else _FIGURES.get(figure, figure)


def limit_name(figure: str) -> str:
    """Return the displayed name of a figure's limit."""
    return _LIMITS.get(figure, figure)


def amount(figure: str, value: float) -> str:
    """Return a figure's value as text with its unit."""
    if figure == HEADROOM:
        return f"{100 * value:.0f} %"
    if "bytes" not in figure and figure not in ("retransmission", "kafka.storage"):
        return f"{value:,.0f}"
    return byte_size(value)


def interval(figure: str, value: Interval) -> str:
    """Return both ends of a figure's interval as text."""
    return f"{amount(figure, value.low)} to {amount(figure, value.high)}"


def figure_rows(figures: Mapping[str, Outlook]) -> list[tuple[str, str, str, str]]:
    """Return a row per figure: name, last seven days, next seven days, interval."""
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
    """Describe a limit and its times in one line. The forecast covers `days`."""
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
    """Return a mean and half the width of its interval (``?`` for a single run)."""
    if math.isnan(estimate.value):
        return "-"
    half = (estimate.high - estimate.low) / 2
    mean = text(estimate.value)
    if not half:
        return mean
    return f"{mean} ± {text(half) if math.isfinite(half) else '?'}"
