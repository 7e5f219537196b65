"""One figure of every channel: what it is called, what it means, how it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from connectors.web import words
from sds_core.observer.histogram import BUCKETS_MS, Histogram
from sds_core.observer.sds.totals import ChannelTotals


class Ratio(NamedTuple):
    """A part of a whole, both counts."""

    part: int
    of: int

    @property
    def value(self) -> float | None:
        """In [0, 1]; None of nothing."""
        return self.part / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of every channel.

    Attributes:
        key: Its name in a page's address.
        heading: What tables call it.
        meaning: One line that says what it is.
        text: From a channel's totals to its words.
        value: From a channel's totals to what channels are ordered by; None if there
            is nothing to measure.
        grave: Whether anything but zero is a fault.
        least_first: Whether little of it is trouble.
    """

    key: str
    heading: str
    meaning: str
    text: Callable[[ChannelTotals], str]
    value: Callable[[ChannelTotals], float | None]
    grave: bool = False
    least_first: bool = False


def count(key: str, heading: str, meaning: str, grave: bool = False) -> Figure:
    """A field that counts, by its name."""

    def value(totals: ChannelTotals) -> int:
        counted: int = getattr(totals, key)
        return counted

    return Figure(key, heading, meaning, lambda t: words.number(value(t)), value, grave)


def share(
    key: str, heading: str, meaning: str, ratio: Callable[[ChannelTotals], Ratio]
) -> Figure:
    """A part of a whole, of which little is trouble."""
    return Figure(
        key,
        heading,
        meaning,
        lambda t: words.share(*ratio(t), decimals=1),
        lambda t: ratio(t).value,
        least_first=True,
    )


def percentile(key: str, heading: str, meaning: str, field: str) -> Figure:
    """A percentile of a histogram; the key ends in it, as in `repair_p95`."""
    percent = int(key.rpartition("p")[2])

    def histogram(totals: ChannelTotals) -> Histogram:
        observed: Histogram = getattr(totals, field)
        return observed

    def value(totals: ChannelTotals) -> float | None:
        observed = histogram(totals)
        if not observed.count:
            return None
        # The open bucket has no bound.
        return observed.percentile_ms(percent) or BUCKETS_MS[-1] + 1

    return Figure(
        key,
        heading,
        meaning,
        lambda t: words.percentile(histogram(t), percent),
        value,
    )


def size(key: str, heading: str, meaning: str) -> Figure:
    """A field that counts bytes, by its name."""
    return Figure(
        key,
        heading,
        meaning,
        lambda t: words.size(getattr(t, key)),
        lambda t: getattr(t, key),
    )
