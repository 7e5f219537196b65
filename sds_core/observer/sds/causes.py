"""Finds likely causes of a bad verdict on a channel (docs/figures.md, 12).

Each rule needs several failures with a common property, and checks that the failures
do not have this property by chance. For example, the rule for a common sender applies
only if other participants sent messages too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from sds_core.observer.causes import Cause, Surroundings
from sds_core.observer.sds.evidence import STEP_MS, Evidence, Found, count_without
from sds_core.observer.sds.suspects import (
    Abandoned,
    FullFilters,
    Origin,
    Recipient,
    Suspects,
    Unrequested,
)
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.verdict import Verdict
from sds_core.text import counted, number

LEAST = 3
"""Minimum number of failed messages or deliveries on which a cause is based."""

CHANCE = 0.001
"""If all failures concern the same sender or participant, this is a cause only if the
probability of such a coincidence is at most this number.

The computation assumes that all senders or participants have the same risk of failure.
"""

_NAMED_LATE_MS = 60_000
"""A capture gap can explain a lost message only if a history first names the message at
most this time after the gap."""

_GAP_SHARE = 2
"""The capture gaps of a tap can be a cause only if their total length is at most the
verdict's window divided by this number.

If the gaps are longer, most failures would coincide with gaps by chance.
"""


def causes_of(totals: ChannelTotals, around: Surroundings) -> Sequence[Cause]:
    """Return the likely causes of a bad verdict, the most convincing first."""
    evidence = totals.evidence
    if evidence is None:
        return ()
    if gap := _tap_gap(evidence, around):
        return (gap,)
    if totals.verdict is Verdict.BLIND or _is_doubtful(evidence, around):
        return ()
    suspects = totals.suspects or Suspects()
    found = [*_common(evidence, suspects, totals, around)]
    if totals.verdict_reason == "bloom_saturated":
        found += _filters(suspects.filters, around)
    return found


def _common(
    evidence: Evidence, suspects: Suspects, totals: ChannelTotals, around: Surroundings
) -> Iterator[Cause]:
    origin, recipient = suspects.origin, suspects.recipient
    if origin is not None and _is_telling(
        origin.failed, origin.sent / (origin.sent + origin.arrived)
    ):
        yield _one_sender(origin)
    if recipient is not None and _is_telling(
        recipient.failed, recipient.failed / (recipient.failed + recipient.arrived)
    ):
        yield _one_participant(recipient)
    unrequested = suspects.unrequested
    if unrequested is not None and unrequested.messages >= LEAST:
        yield _no_requests(unrequested, totals, around)
    abandoned = suspects.abandoned
    if abandoned is not None and abandoned.messages >= LEAST:
        unacknowledged = sum(count for *_, count in evidence.unacknowledged)
        if 2 * abandoned.messages >= unacknowledged:
            yield _no_retries(abandoned)


def _is_telling(failed: int, share: float) -> bool:
    return failed >= LEAST and share ** (failed - 1) <= CHANCE


def _one_sender(origin: Origin) -> Cause:
    others = counted(origin.arrived, "message")
    return Cause(
        "one_sender",
        f"all {number(origin.failed)} lost or undelivered messages are from {{}}, "
        f"while {others} of others arrived",
        "all from {}",
        (origin.name,),
        {
            "sender": origin.name,
            "failed": origin.failed,
            "sent": origin.sent,
            "others_arrived": origin.arrived,
        },
    )


def _one_participant(recipient: Recipient) -> Cause:
    return Cause(
        "one_participant",
        f"only {{}} lacks the {number(recipient.failed)} undelivered messages: all "
        "others have them",
        "only {} lacks messages",
        (recipient.name,),
        {
            "participant": recipient.name,
            "failed": recipient.failed,
            "others_arrived": recipient.arrived,
        },
    )


def _no_requests(
    found: Unrequested, totals: ChannelTotals, around: Surroundings
) -> Cause:
    horizon_ms = around.settings.horizon_ms
    begin_ms = around.clock_ms - horizon_ms
    is_young = (totals.first_event_ms or 0) > begin_ms
    span = "since the first record" if is_young else "for an hour"
    return Cause(
        "no_repair_requests",
        f"nobody requests repair, so SDS-R is probably off: no request {span}, "
        f"although requests for {counted(found.messages, 'message')} were due",
        "nobody requests repair",
        (),
        {
            "deliveries": found.deliveries,
            "messages": found.messages,
            "participants": found.participants,
        },
    )


def _no_retries(found: Abandoned) -> Cause:
    times = counted(found.most, "time")
    if found.least != found.most:
        times = f"{number(found.least)} to {times}"
    names = found.senders if len(found.senders) == 1 else []
    senders = "{}" if names else counted(len(found.senders), "sender")
    return Cause(
        "retries_ended",
        f"{senders} stopped retrying: {counted(found.messages, 'message')} without "
        f"acknowledgement, resent {times} each",
        f"{senders} stopped retrying",
        names,
        {
            "messages": found.messages,
            "senders": found.senders,
            "retries_least": found.least,
            "retries_most": found.most,
        },
    )


def _filters(filters: FullFilters | None, around: Surroundings) -> Iterator[Cause]:
    if filters is None or filters.full < 2 or 2 * filters.full < filters.known:
        return
    limit = around.settings.saturated_rate
    capacity = round(
        -filters.m_bits / filters.k * math.log1p(-(limit ** (1 / filters.k)))
    )
    yield Cause(
        "filters_saturated",
        f"the filters of {number(filters.full)} of "
        f"{counted(filters.known, 'participant')} are saturated: one of their size "
        f"serves about {counted(capacity, 'message')}",
        "filters saturated",
        (),
        {
            "saturated": filters.full,
            "participants": filters.known,
            "capacity": capacity,
        },
    )


def _tap_gap(evidence: Evidence, around: Surroundings) -> Cause | None:
    lost, unacknowledged = evidence.lost, evidence.unacknowledged
    failed = sum(count for *_, count in (*lost, *unacknowledged))
    if failed < LEAST or evidence.undelivered:
        return None
    settings = around.settings
    window_ms = settings.verdict_window_ms
    # Even if a message was sent before a capture gap, the gap can hide the message's
    # acknowledgement, unless the message's deadline is before the gap.
    before_ms = settings.ack_deadline_ms
    for name, holes in around.holes.items():
        recent = [
            (from_ms, to_ms)
            for from_ms, to_ms in holes
            if to_ms >= around.clock_ms - window_ms - settings.gap_deadline_ms
        ]
        length_ms = sum(to_ms - from_ms for from_ms, to_ms in recent)
        if not recent or length_ms * _GAP_SHARE > window_ms:
            continue
        if _lie_in(lost, recent, 0, _NAMED_LATE_MS) and _lie_in(
            unacknowledged, recent, before_ms, 0
        ):
            return Cause(
                "tap_gap",
                f"all {number(failed)} messages found lost or unacknowledged coincide "
                "with a capture gap of tap {}, which may have missed that they arrived",
                "capture gap of tap {}",
                (name,),
                {"tap": name, "failed": failed, "gap_ms": length_ms},
            )
    return None


def _lie_in(
    found: Iterable[Found], holes: Iterable[tuple[int, int]], before: int, after: int
) -> bool:
    """Whether each piece of evidence begins in a capture gap.

    Each gap is extended by `before` at its start and by `after` at its end, ms.
    """
    return all(
        any(
            from_ms - before - STEP_MS <= since_ms <= to_ms + after + STEP_MS
            for from_ms, to_ms in holes
        )
        for since_ms, _, _ in found
    )


def _is_doubtful(evidence: Evidence, around: Surroundings) -> bool:
    if around.excused is None:
        return False
    failures = (*evidence.lost, *evidence.undelivered, *evidence.unacknowledged)
    counted_ = sum(count for *_, count in failures)
    return count_without(failures, around.excused) != counted_
