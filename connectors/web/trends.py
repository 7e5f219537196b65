"""From the rows of a channel's minutes to what happened in each interval of time.

A row has absolute figures as they were at the end of its minute; a minute in which
nothing changed has none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from connectors.history.schema import Row
from sds_core.observer.histogram import BUCKETS_MS, Histogram

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS

HOURS: Mapping[int, int] = MappingProxyType(
    {1: _MINUTE_MS, 3: 3 * _MINUTE_MS, 6: 5 * _MINUTE_MS, 24: 15 * _MINUTE_MS}
)
"""How many hours can be looked back upon, and the interval for each in milliseconds."""

SHOWN_HOURS = 3
"""Looked back upon unless told otherwise."""

COUNTS = (
    "messages",
    "frames_content",
    "frames_sync",
    "frames_ephemeral",
    "acknowledged_in_time",
    "unacknowledged",
    "deliveries_first_pass",
    "deliveries_recovered",
    "deliveries_lost",
    "deliveries_retracted",
    "gaps_late",
    "gaps_repaired",
    "gaps_recovered_late",
    "gaps_lost",
    "gaps_tap_gap",
    "repair_answered",
    "repair_expired",
    "repair_redundant",
)
"""Fields of a row that only grow, and are followed here."""

_LATENCY = "ack_latency_ms_definite_buckets"

FIELDS = (*COUNTS, _LATENCY)
"""All fields of a row that are read here, besides its minute."""

FindMinutes = Callable[[str, int, int, Collection[str]], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Growth:
    """By how much figures grew.

    Attributes:
        counts: By each name of `COUNTS`.
        latency_counts: Definite acknowledgements by the bucket of their latency.
            Shape (13,).
    """

    counts: Mapping[str, int]
    latency_counts: Sequence[int]

    @property
    def latency(self) -> Histogram:
        """The acknowledgements as a histogram, without the sum of their latencies."""
        return Histogram(list(self.latency_counts))

    def __add__(self, other: Growth) -> Growth:
        """Growth of both together."""
        return _joined(self, other, 1)

    def __sub__(self, other: Growth) -> Growth:
        """Growth from the other on."""
        return _joined(self, other, -1)

    def is_below(self, other: Growth) -> bool:
        """Whether some figure is less, which none can become by itself."""
        return any(
            mine < theirs
            for mine, theirs in [
                *((self.counts[name], other.counts[name]) for name in COUNTS),
                *zip(self.latency_counts, other.latency_counts, strict=True),
            ]
        )


NOTHING = Growth(
    MappingProxyType(dict.fromkeys(COUNTS, 0)), (0,) * (len(BUCKETS_MS) + 1)
)
"""No growth at all."""


@dataclass(frozen=True, slots=True)
class Trend:
    """What happened to a channel, interval by interval.

    Attributes:
        begin_ms: When the first interval began, event time, Unix ms.
        step_ms: How long each is.
        growth: Of each interval; None where it is not known what was before.
    """

    begin_ms: int
    step_ms: int
    growth: Sequence[Growth | None]

    @property
    def begins_ms(self) -> range:
        """When each interval began, Unix ms."""
        end_ms = self.begin_ms + len(self.growth) * self.step_ms
        return range(self.begin_ms, end_ms, self.step_ms)

    @property
    def total(self) -> Growth:
        """All growth that is known."""
        return sum((one for one in self.growth if one is not None), start=NOTHING)


def recent_trend(
    find_minutes: FindMinutes,
    channel: str,
    *,
    first_event_ms: int,
    clock_ms: int,
    hours: int,
) -> Trend:
    """The trend of the last hours, the interval of the clock included.

    Args:
        find_minutes: See `Sources`.
        channel: Channel id.
        first_event_ms: When the channel was first seen on this checkpoint, event time,
            Unix ms: a row of before has other figures before it.
        clock_ms: Event time now, Unix ms.
        hours: A key of `HOURS`.

    Raises:
        NoHistory: There is no history.
        DamagedHistory: A file of it cannot be read.
    """
    step_ms = HOURS[hours]
    end_ms = (clock_ms // step_ms + 1) * step_ms
    begin_ms = end_ms - hours * _HOUR_MS
    rows = find_minutes(channel, begin_ms - step_ms, end_ms, FIELDS)
    earlier = [row for row in rows if row["minute"] < begin_ms]
    rows = rows[len(earlier) :]
    if rows and not earlier:
        # It was quiet, or not there. A day lies in no more than one further day of the
        # history's files.
        before_ms = begin_ms - 24 * _HOUR_MS
        earlier = list(find_minutes(channel, before_ms, begin_ms, FIELDS))
    before = None
    if earlier:
        before = _totals(earlier[-1])
    elif rows and begin_ms <= first_event_ms < rows[0]["minute"] + _MINUTE_MS:
        before = NOTHING
    return trend(rows, before, begin_ms=begin_ms, end_ms=end_ms, step_ms=step_ms)


def trend(
    rows: Sequence[Row],
    before: Growth | None,
    *,
    begin_ms: int,
    end_ms: int,
    step_ms: int,
) -> Trend:
    """The trend of rows that began in [begin_ms, end_ms).

    Args:
        rows: Rows of `CHANNEL_MINUTES` in order.
        before: The figures before the first of them; None if they are not known.
        begin_ms: When the first interval begins, Unix ms.
        end_ms: When the last one ends, a whole number of intervals later.
        step_ms: How long an interval is.
    """
    growth: list[Growth | None] = [NOTHING] * ((end_ms - begin_ms) // step_ms)
    for row in rows:
        index = (row["minute"] - begin_ms) // step_ms
        totals = _totals(row)
        known = growth[index]
        if before is None or known is None:
            growth[index] = None
        elif totals.is_below(before):
            # A new checkpoint counts from zero.
            growth[index] = known + totals
        else:
            growth[index] = known + (totals - before)
        before = totals
    return Trend(begin_ms, step_ms, growth)


def _totals(row: Row) -> Growth:
    """The figures of a row: the growth from zero."""
    # A field is null in rows that are older than it.
    return Growth(
        {name: row[name] or 0 for name in COUNTS},
        row[_LATENCY] or NOTHING.latency_counts,
    )


def _joined(one: Growth, other: Growth, sign: int) -> Growth:
    return Growth(
        {name: one.counts[name] + sign * other.counts[name] for name in COUNTS},
        [
            mine + sign * theirs
            for mine, theirs in zip(
                one.latency_counts, other.latency_counts, strict=True
            )
        ],
    )
