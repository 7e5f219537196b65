"""Every figure of a channel once: what it is called, what it means, how it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from connectors.web import words
from sds_core.observer.totals import BUCKETS_MS, ChannelTotals, Histogram


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


def acknowledged_in_time(totals: ChannelTotals) -> Ratio:
    """Of the messages that others could have acknowledged (section 4)."""
    part = totals.acknowledged_in_time
    return Ratio(part, part + totals.unacknowledged)


def delivered(totals: ChannelTotals) -> Ratio:
    """Of the deliveries that ended, those that were not lost (section 5)."""
    return eventual_delivery(
        totals.deliveries_first_pass + totals.deliveries_recovered,
        totals.deliveries_lost,
        totals.deliveries_retracted,
    )


def eventual_delivery(reached: int, lost: int, retracted: int) -> Ratio:
    """(ended - lost + retracted) / ended: a loss that was retracted is none."""
    # What is retracted in an interval may have been lost before it.
    return Ratio(reached + min(retracted, lost), reached + lost)


def _count(
    key: str, heading: str, meaning: str, field: str = "", grave: bool = False
) -> Figure:
    def value(totals: ChannelTotals) -> int:
        counted: int = getattr(totals, field or key)
        return counted

    return Figure(key, heading, meaning, lambda t: words.number(value(t)), value, grave)


def _share(
    key: str, heading: str, meaning: str, ratio: Callable[[ChannelTotals], Ratio]
) -> Figure:
    return Figure(
        key,
        heading,
        meaning,
        lambda t: words.share(*ratio(t), decimals=1),
        lambda t: ratio(t).value,
        least_first=True,
    )


def _percentile(key: str, heading: str, meaning: str, field: str) -> Figure:
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


def _bytes(key: str, heading: str, meaning: str) -> Figure:
    return Figure(
        key,
        heading,
        meaning,
        lambda t: words.size(getattr(t, key)),
        lambda t: getattr(t, key),
    )


def _answered(totals: ChannelTotals) -> Ratio:
    return Ratio(totals.repair_answered, totals.repair_answered + totals.repair_expired)


def _redundant(totals: ChannelTotals) -> Ratio:
    return Ratio(totals.repair_redundant, totals.repair_responses)


def _saturation(totals: ChannelTotals) -> float | None:
    worst = totals.bloom_worst
    return None if worst is None else worst.false_positive_ratio


def _saturation_text(totals: ChannelTotals) -> str:
    ratio = _saturation(totals)
    if ratio is None:
        return words.NOTHING
    return words.percent(float(f"{ratio:.2g}")) if ratio >= 1e-6 else "< 0.0001 %"


GROUPS: tuple[tuple[str, tuple[Figure, ...]], ...] = (
    (
        "Acknowledgement",
        (
            _count("messages", "Messages", "distinct content messages"),
            _percentile(
                "ack_p50",
                "p50",
                "half of the definite acknowledgements came within this time",
                "definite_latency",
            ),
            _percentile(
                "ack_p95",
                "p95",
                "95 % of the definite acknowledgements came within this time",
                "definite_latency",
            ),
            _percentile(
                "ack_p99",
                "p99",
                "99 % of the definite acknowledgements came within this time",
                "definite_latency",
            ),
            _share(
                "in_time",
                "In time",
                "messages acknowledged by their deadline, of those that others could "
                "have acknowledged",
                acknowledged_in_time,
            ),
            _count(
                "acknowledged_definite",
                "Definite",
                "messages that another participant's causal history names",
            ),
            _count(
                "acknowledged_probable",
                "Probable",
                "messages that only filters of others hold",
            ),
            _count(
                "unacknowledged",
                "Unacknowl\N{SOFT HYPHEN}edged",
                "messages whose deadline passed although others could have "
                "acknowledged them",
                grave=True,
            ),
            _count(
                "unwitnessed",
                "Unwitnessed",
                "messages whose deadline passed while nobody else spoke: no fault",
            ),
            _count(
                "in_flight",
                "In flight",
                "messages not yet acknowledged whose deadline has not passed",
            ),
        ),
    ),
    (
        "Deliveries",
        (
            _share(
                "delivered",
                "Delivered",
                "pairs of a message and a participant that reached it, of all that "
                "ended",
                delivered,
            ),
            _count(
                "deliveries_first_pass", "First pass", "were never shown to be missing"
            ),
            _count(
                "deliveries_recovered", "Recovered", "were missing, and came in time"
            ),
            _count(
                "deliveries_lost",
                "Not delivered",
                "were still missing at the deadline",
                grave=True,
            ),
            _count(
                "deliveries_retracted",
                "Came later",
                "were shown after they had been counted as not delivered",
            ),
            _percentile(
                "recovery_p95",
                "Recovery p95",
                "95 % of those that were missing came within this time",
                "delivery_recovery",
            ),
        ),
    ),
    (
        "Missing dependencies",
        (
            _count(
                "gaps_open",
                "Open now",
                "messages that others refer to and no tap has shown yet",
            ),
            _count(
                "gaps_opened",
                "Opened",
                "all that were ever missing for longer than the settle time",
            ),
            _count("gaps_late", "Late", "came by themselves"),
            _count("gaps_repaired", "Repaired", "came after a repair request"),
            _count(
                "gaps_recovered_late",
                "Recovered late",
                "came when the last repair request was no longer live",
            ),
            _count(
                "gaps_lost",
                "Lost",
                "never came, and nobody but the sender has shown them",
                grave=True,
            ),
            _count(
                "gaps_tap_gap",
                "Tap gap",
                "never came to a tap, but the network had them",
            ),
            _count(
                "gaps_retracted",
                "Came later",
                "came after they had been counted as lost",
            ),
            _percentile(
                "gap_p95",
                "Filled p95",
                "95 % of those that came did so within this time",
                "gap_duration",
            ),
        ),
    ),
    (
        "Repair",
        (
            _share(
                "answered",
                "Answered",
                "repair episodes that ended with a response, of all that ended",
                _answered,
            ),
            _count("repair_answered", "Episodes answered", "ended with a response"),
            _count("repair_expired", "Expired", "ended without one"),
            _count(
                "repair_requests", "Requests", "repair requests, one per frame and id"
            ),
            _count(
                "repair_responses",
                "Responses",
                "messages broadcast again in answer to a request",
            ),
            Figure(
                "redundant",
                "Redundant",
                "responses that came on top of another, of all responses",
                lambda t: words.share(*_redundant(t), decimals=1),
                lambda t: _redundant(t).value,
            ),
            _percentile(
                "repair_p50",
                "Response p50",
                "half of the answers came within this time of the first request",
                "repair_response",
            ),
            _percentile(
                "repair_p95",
                "Response p95",
                "95 % of the answers came within this time of the first request",
                "repair_response",
            ),
        ),
    ),
    (
        "Traffic",
        (
            _count(
                "participants_lately",
                "Participants",
                "distinct senders within the last 10 min",
            ),
            Figure(
                "frames",
                "Frames",
                "frames of all kinds, rebroadcasts included",
                lambda t: words.number(sum(t.frames.values())),
                lambda t: sum(t.frames.values()),
            ),
            _count("replicas", "Replicas", "further copies of one broadcast"),
            _count(
                "rebroadcasts_repair",
                "Sent again: repair",
                "messages broadcast again after a repair request",
            ),
            _count(
                "rebroadcasts_retry",
                "Sent again: retry",
                "messages broadcast again by their senders",
            ),
            _bytes("bytes_content", "Content", "bytes of content in frames"),
            _bytes("bytes_history", "Histories", "bytes of causal histories in frames"),
            _bytes("bytes_bloom", "Filters", "bytes of bloom filters in frames"),
            _bytes("bytes_repair", "Requests", "bytes of repair requests in frames"),
            Figure(
                "false_positives",
                "False positives",
                "false-positive rate of the fullest bloom filter in use",
                _saturation_text,
                _saturation,
            ),
            _count(
                "message_id_collisions",
                "Id collisions",
                "frames with a known message id but another sender or Lamport "
                "timestamp",
                grave=True,
            ),
        ),
    ),
)
"""All figures under the headlines that they belong to."""


def chosen(*keys: str) -> list[tuple[str, list[Figure]]]:
    """Some of the figures under their headlines, in the order of `GROUPS`."""
    picked = (
        (title, [figure for figure in figures if figure.key in keys])
        for title, figures in GROUPS
    )
    return [(title, figures) for title, figures in picked if figures]
