"""Finds what the failures behind a bad verdict have in common.

The search uses facts that the verdict does not need: who sent the failed messages, who
else has them, and which messages were requested or retried. The facts are computed from
the model, once per batch and only while the verdict is bad.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.filters import FilterTrace
from sds_core.observer.sds.gap_table import GapTable
from sds_core.observer.sds.health import HealthState
from sds_core.observer.sds.messages import MessageTable
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.receivers import Receiver
from sds_core.observer.sds.requests import RequestTable
from sds_core.observer.sds.suspects import (
    Abandoned,
    FullFilters,
    Origin,
    Recipient,
    Suspects,
    Unrequested,
)
from sds_core.wire import Dialect, false_positive_rate

_MOST_MESSAGES = 2_000
"""The search covers at most this number of a channel's latest messages.

If an undelivered message is older, only retries are examined.
"""

_MOST_LOST = 50
"""If more messages are lost to all participants, only retries are examined."""

_MOST_COMPARED = 20
"""Maximum number of participants whose received messages are examined.

Participants that were heard most recently are preferred. The result also names at most
this number of senders of unacknowledged messages.
"""

_LEAST_SPREAD_MS = 60_000
"""Minimum time between the first and the last failed message.

If all failures are within one minute, they count as a single event, such as a short
absence. This may happen to any participant, so no sender or recipient is suspected.
"""

_MOST_PAIRS = 200
"""Maximum number of failed messages, the latest ones, to examine per participant."""


class Memory(NamedTuple):
    """The parts of the model that the search reads."""

    settings: RuleSettings
    health: HealthState
    messages: MessageTable
    gaps: GapTable
    requests: RequestTable
    receivers: Mapping[int, Receiver]
    participants: Participants
    filters: Mapping[int, FilterTrace]
    next_order: int
    dialects: frozenset[Dialect]


class _Sent(NamedTuple):
    at_ms: int
    sender: int


def suspects_of(memory: Memory, clock_ms: int) -> Suspects:
    """Return what the failures in the verdict's window have in common."""
    found = Suspects(
        abandoned=_abandoned(memory, clock_ms), filters=_full_filters(memory, clock_ms)
    )
    undelivered, losses = memory.health.undelivered, memory.health.losses
    first = min(undelivered, default=memory.next_order)
    if memory.next_order - first > _MOST_MESSAGES or len(losses) > _MOST_LOST:
        return found
    lost = _lost(memory)
    if lost:
        # For each lost message, `_origin` also needs its sender's previous message.
        before_ms = min(one.at_ms for one in lost) - memory.settings.verdict_window_ms
        earliest = memory.messages.first_seen_since(before_ms)
        if earliest is not None:
            first = min(first, max(earliest, memory.next_order - _MOST_MESSAGES))
    sent = {
        order: _Sent(at_ms, sender)
        for order, at_ms, sender in memory.messages.sent_since(first, memory.next_order)
    }
    if not sent.keys() >= undelivered.keys():
        return found
    return replace(
        found,
        origin=_origin(memory, sent, lost),
        recipient=None if lost else _recipient(memory, sent),
        unrequested=_unrequested(memory, sent),
    )


def _lost(memory: Memory) -> list[_Sent]:
    gaps = memory.gaps.many(key for key in memory.health.losses if key in memory.gaps)
    return [_Sent(gap.named_ms, gap.sender) for gap in gaps]


def _origin(
    memory: Memory, sent: Mapping[int, _Sent], lost: list[_Sent]
) -> Origin | None:
    undelivered = memory.health.undelivered
    senders = {one.sender for one in (*lost, *(sent[order] for order in undelivered))}
    if len(senders) != 1 or UNKNOWN in senders:
        return None
    (sender,) = senders
    # For a lost message, `at_ms` is the time when a frame first named the message. The
    # message was sent before this time, and after its sender's previous message.
    own_ms = [one.at_ms for one in sent.values() if one.sender == sender]
    begins = [max((ms for ms in own_ms if ms < one.at_ms), default=0) for one in lost]
    if 0 in begins:
        return None
    failed_ms = [sent[order].at_ms for order in undelivered]
    first_ms = min((*begins, *failed_ms))
    last_ms = max((*failed_ms, *(one.at_ms for one in lost)))
    if last_ms - first_ms < _LEAST_SPREAD_MS:
        return None
    meanwhile = {
        order: one for order, one in sent.items() if first_ms <= one.at_ms <= last_ms
    }
    others = {order for order, one in meanwhile.items() if one.sender != sender}
    if any(
        not one.missing.keys().isdisjoint(others) for one in memory.receivers.values()
    ):
        # A participant lacks a message of another sender too, so `sender` may not be
        # the cause.
        return None
    lacking = {by for lost_to in undelivered.values() for by in lost_to}
    compared = _compared(memory, lacking or memory.receivers)
    return Origin(
        memory.participants.name(sender),
        len(undelivered) + len(lost),
        len(meanwhile) - len(others) + len(lost),
        sum(
            any(_has(memory, by, order, sent[order]) for by in compared)
            for order in others
        ),
    )


def _recipient(memory: Memory, sent: Mapping[int, _Sent]) -> Recipient | None:
    undelivered = memory.health.undelivered
    lacking = {by for lost_to in undelivered.values() for by in lost_to}
    if len(lacking) != 1:
        return None
    (recipient,) = lacking
    failed_ms = [sent[order].at_ms for order in undelivered]
    if max(failed_ms) - min(failed_ms) < _LEAST_SPREAD_MS:
        return None
    others = memory.receivers.keys() - lacking
    failed = {order: sent[order] for order in undelivered}
    if any(_may_lack(memory, by, failed) for by in others):
        return None
    compared = _compared(memory, others)
    return Recipient(
        memory.participants.name(recipient),
        len(undelivered),
        sum(
            _has(memory, by, order, sent[order])
            for order in sorted(undelivered)[-_MOST_PAIRS:]
            for by in compared
        ),
    )


def _unrequested(memory: Memory, sent: Mapping[int, _Sent]) -> Unrequested | None:
    if len(memory.requests) or not memory.dialects:
        return None
    undelivered = memory.health.undelivered
    due_ms = max(map(memory.settings.repair_window_ms, memory.dialects))
    lacked: dict[int, list[int]] = {}
    for order in sorted(undelivered):
        for by in undelivered[order]:
            lacked.setdefault(by, []).append(order)
    found = []
    in_order = sorted(sent.items())
    for by in _compared(memory, set(lacked)):
        until_ms = memory.participants.last_ms(by) - due_ms
        # For each sender, its latest message that was sent at or before `until_ms`, and
        # that the participant received.
        latest = {
            one.sender: order
            for order, one in in_order
            if one.at_ms <= until_ms and _has(memory, by, order, one)
        }
        found += [
            (by, order)
            for order in lacked[by][-_MOST_PAIRS:]
            if latest.get(sent[order].sender, order) > order
        ]
    if not found:
        return None
    return Unrequested(
        len(found), len({order for _, order in found}), len({by for by, _ in found})
    )


def _abandoned(memory: Memory, clock_ms: int) -> Abandoned | None:
    settings, retries = memory.settings, []
    # The deadline of an earlier message has left the verdict's window.
    earliest_ms = clock_ms - settings.verdict_window_ms - settings.ack_deadline_ms
    senders: dict[int, None] = {}
    for key, (count, latest_ms) in memory.health.retries.items():
        message = memory.messages.get(key)
        if (
            message is None
            or message.seen_ms < earliest_ms
            or message.sender == UNKNOWN
            or message.definite
            or message.probable
            or not message.is_unacknowledged
        ):
            continue
        interval_ms = (latest_ms - message.seen_ms) / count
        silent_ms = max(3 * interval_ms, settings.ack_deadline_ms)
        spoke_ms = memory.participants.last_ms(message.sender)
        # If the sender also sends no other frames, it may be offline, so its message
        # does not count.
        if latest_ms + silent_ms < clock_ms and spoke_ms > latest_ms + 2 * interval_ms:
            retries.append(count)
            senders.setdefault(message.sender)
    if not retries:
        return None
    names = [memory.participants.name(sender) for sender in senders]
    return Abandoned(len(retries), names[:_MOST_COMPARED], min(retries), max(retries))


def _full_filters(memory: Memory, clock_ms: int) -> FullFilters | None:
    since_ms = clock_ms - memory.settings.verdict_window_ms
    rates = {
        (by, one.m_bits, one.k): false_positive_rate(one.bits_set, one.m_bits, one.k)
        for by, one in memory.filters.items()
        if by != UNKNOWN and memory.participants.last_ms(by) >= since_ms
    }
    if not rates:
        return None
    _, m_bits, k = max(rates, key=lambda one: rates[one])
    full = sum(rate > memory.settings.saturated_rate for rate in rates.values())
    return FullFilters(full, len(rates), m_bits, k)


def _may_lack(memory: Memory, by: int, failed: Mapping[int, _Sent]) -> bool:
    """Whether a participant may lack any of the messages in `failed`.

    The keys of `failed` are the orders of the messages.
    """
    receiver = memory.receivers[by]
    if receiver.waiting and not receiver.waiting.isdisjoint(failed.keys()):
        return True
    # Messages from `checked_to` on were sent after the participant's latest first copy.
    # A later frame of the participant may show that it lacks such a message.
    after_ms, until_ms = memory.participants.active_span(by)
    return receiver.checked_to <= max(failed) and any(
        order >= receiver.checked_to
        and one.sender != by
        and after_ms < one.at_ms <= until_ms
        for order, one in failed.items()
    )


def _compared(memory: Memory, some: Iterable[int]) -> list[int]:
    followed = [by for by in some if by in memory.receivers]
    followed.sort(key=lambda by: (-memory.participants.last_ms(by), by))
    return followed[:_MOST_COMPARED]


def _has(memory: Memory, by: int, order: int, message: _Sent) -> bool:
    receiver = memory.receivers[by]
    after_ms, until_ms = memory.participants.active_span(by)
    return (
        message.sender not in (by, UNKNOWN)
        and order < receiver.checked_to
        and order not in receiver.waiting
        and after_ms < message.at_ms <= until_ms
    )
