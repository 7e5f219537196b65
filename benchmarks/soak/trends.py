"""Does a measure of a long run grow? Slopes with their confidence intervals.

A run has ten parts of equal length. The slope is that of Theil and Sen: the median of
the slopes between all pairs of the parts' medians. Outliers, such as a sample during a
compaction, hardly move it. The start of a run, in which caches fill, does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

import msgspec

from sds_core.observer.settings import DEFAULTS
from sds_core.text import byte_size

_PARTS = 10
"""Parts of a run, each of which counts with its median. A compaction or a long batch
moves several samples in a row, so samples depend on each other, and the interval of
their slope would be too narrow."""
_HOUR_S = 3_600


class Measure(NamedTuple):
    """Something that is measured, and how much it may grow.

    Attributes:
        key: Name of the values in a sample.
        text: Returns a value with its unit.
        limit: Allowed growth in an hour, as a share of the level.
        floor: Allowed growth in an hour beside that, in the unit of the values.
        reason: Why it grows without a limit; empty if it must not.
        follows_state: Whether it grows with the state, so for as long as views remember
            messages; a run with a shorter warm-up decides nothing.
    """

    key: str
    text: Callable[[float], str] = byte_size
    limit: float = 0.01
    floor: float = 0.0
    reason: str = ""
    follows_state: bool = False


_COUNT: Final = "{:,.4g}".format
_HISTORY: Final = "kept for `--history-days`"
_MIB: Final = 2.0**20

GROWS: Final = "GROWS"
LEVEL: Final = "level"
REMEMBERED_S: Final = DEFAULTS.horizon_ms / 1_000
"""For so long views remember messages, seconds."""

MEASURES: Final = (
    Measure("heap", floor=_MIB),
    Measure("JVM memory", floor=4 * _MIB, follows_state=True),
    Measure("driver memory", floor=4 * _MIB, follows_state=True),
    Measure("workers memory", floor=4 * _MIB, follows_state=True),
    Measure("mirror memory", floor=_MIB),
    *(
        Measure(f"{role} {what}", _COUNT, floor=1)
        for role in ("JVM", "driver", "mirror")
        for what in ("threads", "descriptors")
    ),
    Measure("state bytes", floor=_MIB, follows_state=True),
    Measure("channels", _COUNT, floor=60),
    Measure("groups", _COUNT, reason="at most 500 groups; a group is never forgotten"),
    Measure("series", _COUNT),
    Measure("checkpoint files", _COUNT, follows_state=True),
    Measure("checkpoint bytes", follows_state=True),
    Measure("ledger bytes", follows_state=True),
    Measure("history files", _COUNT, reason=_HISTORY),
    Measure("history bytes", reason=_HISTORY),
    Measure("pending", _COUNT, floor=1, follows_state=True),
    Measure("temporary files", _COUNT, floor=1),
    Measure("temporary bytes", floor=_MIB, follows_state=True),
    Measure("age", "{:.2f} s".format, floor=0.05),
)


class Soak(msgspec.Struct):
    """A run.

    Attributes:
        version: Version of sds-monitor.
        date: Day, ISO 8601.
        machine: Processor, cores and memory.
        seed: Seed of the traffic.
        warm_up_s: Length of the start that does not count.
        records: Records in the topic at the end.
        channels: Channels in the report at the end.
        forgotten: Channels that were forgotten.
        requests: Requests for metrics, pages and API.
        failures: Those that failed; a line each.
        differences: What differed from the undisturbed job; a line each.
        times_s: Time of each sample since the start of the traffic.
        samples: Values of each measure.
    """

    version: str
    date: str
    machine: str
    seed: int
    warm_up_s: float
    records: int = 0
    channels: int = 0
    forgotten: int = 0
    requests: int = 0
    failures: list[str] = []
    differences: list[str] = []
    times_s: list[float] = []
    samples: dict[str, list[float]] = {}

    def add(self, at_s: float, sample: dict[str, float]) -> None:
        """Add the values at a time."""
        self.times_s.append(round(at_s, 1))
        for key, value in sample.items():
            self.samples.setdefault(key, []).append(value)

    def trends(self) -> list[tuple[Measure, Trend]]:
        """Return the trend of each measure."""
        # Of so many intervals, one in twenty runs has one that is wrong by chance.
        confidence = 1 - 0.05 / len(MEASURES)
        first = sum(at_s < self.warm_up_s for at_s in self.times_s)
        return [
            (
                one,
                trend(self.times_s[first:], self.samples[one.key][first:], confidence),
            )
            for one in MEASURES
        ]

    def problems(self) -> list[str]:
        """Return what is wrong; a line each."""
        growing = [
            f"{measure.key} grows by {signed(measure, one.slope)} an hour"
            for measure, one in self.trends()
            if one.verdict(measure, self.warm_up_s) == GROWS
        ]
        return [*growing, *self.failures, *self.differences]


class Trend(NamedTuple):
    """How a measure develops.

    Attributes:
        level: Median of the values.
        slope: Growth in an hour.
        low, high: Its confidence interval.
    """

    level: float
    slope: float
    low: float
    high: float

    def verdict(self, measure: Measure, warm_up_s: float) -> str:
        """Return whether the measure grows beyond its limit, in words."""
        if measure.reason:
            return "by design"
        if measure.follows_state and warm_up_s < REMEMBERED_S:
            return "filling"
        limit = allowed(measure, self.level)
        if self.low > limit:
            return GROWS
        return LEVEL if self.high <= limit else "open"


def trend(
    times_s: Sequence[float], values: Sequence[float], confidence: float = 0.95
) -> Trend:
    """Return the trend of some values.

    Raises:
        ValueError: There are too few.
    """
    if len(values) < _PARTS:
        message = f"{len(values)} samples after the warm-up: {_PARTS} are needed"
        raise ValueError(message)
    from scipy.stats import theilslopes  # A second, at the start of each test worker.

    at_s, medians = (_medians(one) for one in (times_s, values))
    slope, _, low, high = theilslopes(medians, at_s, confidence)
    hourly = (_HOUR_S * float(one) for one in (slope, low, high))
    return Trend(median(values), *hourly)


def _medians(values: Sequence[float]) -> list[float]:
    """Return the median of each of `_PARTS` parts of equal length, within one."""
    ends = [number * len(values) // _PARTS for number in range(_PARTS + 1)]
    return [median(values[begin:end]) for begin, end in pairwise(ends)]


def allowed(measure: Measure, level: float) -> float:
    """Return by how much a measure of a level may grow in an hour."""
    return measure.floor + measure.limit * level


def rows(run: Soak) -> list[tuple[str, ...]]:
    """Return a row for each measure: level, growth in an hour, limit, verdict."""
    return [
        (
            measure.key,
            measure.text(found.level),
            signed(measure, found.slope),
            f"{signed(measure, found.low)} to {signed(measure, found.high)}",
            measure.reason or signed(measure, allowed(measure, found.level)),
            found.verdict(measure, run.warm_up_s),
        )
        for measure, found in run.trends()
    ]


HEAD: Final = ("measure", "level", "an hour", "interval", "limit", "verdict")


def signed(measure: Measure, value: float) -> str:
    """Return a growth with its sign."""
    return f"{'-' if value < 0 else '+'}{measure.text(abs(value))}"
