"""The figures of MVDS (docs/figures.md, 14), computed slowly from all payloads at once.

It reads the definitions as they stand: each figure is a sum over records, with a look
at all other records. It knows no copies, no limits, and forgets nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sds_core.mvds.payload import decode, message_id
from tests.support.mvds.traffic import Record

DEADLINE_MS = 120_000
GRACE_MS = 5_000


class Said(NamedTuple):
    """One record of a payload; `place` is that of the payload, then of its type."""

    place: tuple[int, int]
    at_ms: int
    type: str
    sender: str
    receiver: str


def figures(records: Sequence[Record], clock_ms: int) -> dict[str, Counter[str]]:
    """Return figures by group and name; those of the payloads are in ``unknown``.

    Args:
        records: Payloads in the order of time.
        clock_ms: Admission time, as in the records.
    """
    said: defaultdict[bytes, list[Said]] = defaultdict(list)
    groups: dict[bytes, str] = {}
    ephemeral = set()
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number, record in enumerate(records):
        payload = decode(record.value)
        found["unknown"] += Counter(payloads=1, payloads_empty=not record.value)
        ids = {
            "ack": payload.acks,
            "offer": tuple(payload.offered()),
            "request": payload.requests,
            "message": tuple(map(message_id, payload.messages)),
        }
        for one in payload.messages:
            groups[message_id(one)] = one.group_id[:8].hex() or "empty"
            if one.metadata is not None and one.metadata.ephemeral:
                ephemeral.add(message_id(one))
        for order, (type_, named) in enumerate(ids.items()):
            for key in named:
                at = Said((number, order), record.at_ms, type_, *record[1:3])
                said[key].append(at)
    for key, those in said.items():
        if key in groups:
            found[groups[key]] += _of_message(
                those, records, clock_ms, is_ephemeral=key in ephemeral
            )
    return dict(found)


def _of_message(
    said: Sequence[Said],
    records: Sequence[Record],
    clock_ms: int,
    *,
    is_ephemeral: bool,
) -> Counter[str]:
    """Return the figures of one message from all its records."""
    count: Counter[str] = Counter(messages=1)
    peers = {one.sender for one in said} | {one.receiver for one in said}

    def first(test: Callable[[Said], bool]) -> Said | None:
        return next((one for one in said if test(one)), None)

    def acked(peer: str) -> Said | None:
        return first(lambda one: one.type == "ack" and one.sender == peer)

    def holds(peer: str) -> Said | None:
        return first(lambda one: one.type != "request" and one.sender == peer)

    def sends(type_: str, sender: str, receiver: str) -> Said | None:
        return first(lambda one: (one.type, *one[3:]) == (type_, sender, receiver))

    for place, one in enumerate(said):
        count[f"records_{one.type}"] += 1
        again = any(one[2:] == other[2:] for other in said[:place])
        count[f"retransmissions_{one.type}"] += again
        held, ack = holds(one.receiver), acked(one.receiver)
        if one.type == "offer":
            count["needless_offers"] += held is not None and held.place < one.place
        if one.type == "message":
            count["duplicates"] += ack is not None and ack.place < one.place
    for peer in peers:
        ack = acked(peer)
        to_it = [one for one in said if (one.type, one.receiver) == ("message", peer)]
        before = [one for one in to_it if ack is None or one.place < ack.place]
        if ack is not None:
            count["deliveries"] += 1
            count["delivery"] += 1
            count["delivery_ms"] += ack.at_ms - said[0].at_ms
            count["sends_messages"] += len({one.place for one in before})
            count["sends_deliveries"] += bool(before)
        if before and not is_ephemeral:
            count["addressed"] += 1
            count[_end(before[0].at_ms, peer, ack, holds(peer), records, clock_ms)] += 1
            overdue = before[0].at_ms + DEADLINE_MS
            if ack is not None and ack.at_ms > overdue:
                end = _end(before[0].at_ms, peer, None, holds(peer), records, clock_ms)
                count["resolved"] += end == "unacknowledged"
        for other in peers:
            sent, ack_back = sends("message", other, peer), sends("ack", peer, other)
            if sent and ack_back and sent.place < ack_back.place:
                count["ack_latency"] += 1
                count["ack_latency_ms"] += ack_back.at_ms - sent.at_ms
            offer, request = sends("offer", other, peer), sends("request", peer, other)
            count["unrequested_offers"] += _is_unanswered(
                offer, request, holds(peer), clock_ms
            )
            count["unanswered_requests"] += _is_unanswered(
                request, sent, holds(peer), clock_ms
            )
    return count


def _end(
    sent_ms: int,
    peer: str,
    ack: Said | None,
    held: Said | None,
    records: Sequence[Record],
    clock_ms: int,
) -> str:
    """Return how a pair of message and receiver ended."""
    due_ms = sent_ms + DEADLINE_MS
    if ack is not None and ack.at_ms <= due_ms:
        return "acknowledged_in_time"
    if clock_ms <= due_ms:
        return "in_flight"
    heard = any(
        one.sender == peer
        and one.at_ms <= due_ms
        and one.at_ms // 1_000 * 1_000 >= sent_ms + GRACE_MS
        for one in records
    )
    if heard and not (held is not None and held.at_ms <= due_ms):
        return "unacknowledged"
    return "unwitnessed"


def _is_unanswered(
    begin: Said | None, answer: Said | None, held: Said | None, clock_ms: int
) -> bool:
    """Whether an offer or a request had no effect by its deadline."""
    if begin is None or clock_ms <= begin.at_ms + DEADLINE_MS:
        return False
    due_ms = begin.at_ms + DEADLINE_MS
    return not any(one is not None and one.at_ms <= due_ms for one in (answer, held))
