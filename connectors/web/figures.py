"""Every figure of a channel that the pages show, once."""

from __future__ import annotations

from connectors.web import words
from connectors.web.figure import Figure, Ratio, count, percentile, share, size
from sds_core.observer.sds.totals import ChannelTotals


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
            count("messages", "Messages", "distinct content messages"),
            percentile(
                "ack_p50",
                "p50",
                "half of the definite acknowledgements came within this time",
                "definite_latency",
            ),
            percentile(
                "ack_p95",
                "p95",
                "95 % of the definite acknowledgements came within this time",
                "definite_latency",
            ),
            percentile(
                "ack_p99",
                "p99",
                "99 % of the definite acknowledgements came within this time",
                "definite_latency",
            ),
            share(
                "in_time",
                "In time",
                "messages acknowledged by their deadline, of those that others could "
                "have acknowledged",
                acknowledged_in_time,
            ),
            count(
                "acknowledged_definite",
                "Definite",
                "messages that another participant's causal history names",
            ),
            count(
                "acknowledged_probable",
                "Probable",
                "messages that only filters of others hold",
            ),
            count(
                "unacknowledged",
                "Unacknowl\N{SOFT HYPHEN}edged",
                "messages whose deadline passed although others could have "
                "acknowledged them",
                grave=True,
            ),
            count(
                "unwitnessed",
                "Unwitnessed",
                "messages whose deadline passed while nobody else spoke: no fault",
            ),
            count(
                "in_flight",
                "In flight",
                "messages not yet acknowledged whose deadline has not passed",
            ),
        ),
    ),
    (
        "Deliveries",
        (
            share(
                "delivered",
                "Delivered",
                "pairs of a message and a participant that reached it, of all that "
                "ended",
                delivered,
            ),
            count(
                "deliveries_first_pass", "First pass", "were never shown to be missing"
            ),
            count(
                "deliveries_recovered", "Recovered", "were missing, and came in time"
            ),
            count(
                "deliveries_lost",
                "Not delivered",
                "were still missing at the deadline",
                grave=True,
            ),
            count(
                "deliveries_retracted",
                "Came later",
                "were shown after they had been counted as not delivered",
            ),
            percentile(
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
            count(
                "gaps_open",
                "Open now",
                "messages that others refer to and no tap has shown yet",
            ),
            count(
                "gaps_opened",
                "Opened",
                "all that were ever missing for longer than the settle time",
            ),
            count("gaps_late", "Late", "came by themselves"),
            count("gaps_repaired", "Repaired", "came after a repair request"),
            count(
                "gaps_recovered_late",
                "Recovered late",
                "came when the last repair request was no longer live",
            ),
            count(
                "gaps_lost",
                "Lost",
                "never came, and nobody but the sender has shown them",
                grave=True,
            ),
            count(
                "gaps_tap_gap",
                "Tap gap",
                "never came to a tap, but the network had them",
            ),
            count(
                "gaps_retracted",
                "Came later",
                "came after they had been counted as lost",
            ),
            percentile(
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
            share(
                "answered",
                "Answered",
                "repair episodes that ended with a response, of all that ended",
                _answered,
            ),
            count("repair_answered", "Episodes answered", "ended with a response"),
            count("repair_expired", "Expired", "ended without one"),
            count(
                "repair_requests", "Requests", "repair requests, one per frame and id"
            ),
            count(
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
            percentile(
                "repair_p50",
                "Response p50",
                "half of the answers came within this time of the first request",
                "repair_response",
            ),
            percentile(
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
            count(
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
            count("replicas", "Replicas", "further copies of one broadcast"),
            count(
                "rebroadcasts_repair",
                "Sent again: repair",
                "messages broadcast again after a repair request",
            ),
            count(
                "rebroadcasts_retry",
                "Sent again: retry",
                "messages broadcast again by their senders",
            ),
            size("bytes_content", "Content", "bytes of content in frames"),
            size("bytes_history", "Histories", "bytes of causal histories in frames"),
            size("bytes_bloom", "Filters", "bytes of bloom filters in frames"),
            size("bytes_repair", "Requests", "bytes of repair requests in frames"),
            Figure(
                "false_positives",
                "False positives",
                "false-positive rate of the fullest bloom filter in use",
                _saturation_text,
                _saturation,
            ),
            count(
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
