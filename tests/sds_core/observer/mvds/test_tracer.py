"""What a trace shows of payloads that the view does not follow."""

from __future__ import annotations

from connectors.kafka.producer import TopicRecord
from sds_core.observer.mvds.frame import pair_name
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tracing import Evidence
from tests.support.mvds.traffic import START_MS, Record, message_key, sent
from tests.support.trace.traced import traced

HORIZON_MS = DEFAULTS.horizon_ms


def _traced(*records: Record) -> Evidence:
    """Return the evidence about message 1 when the clock is at the last record."""
    written = []
    for one in records:
        headers = {"protocol": "mvds", "peer": one.sender, "to": one.receiver}
        headers |= {"observer": one.observer}
        encoded = tuple((name, value.encode()) for name, value in headers.items())
        key, at_ms = pair_name(one.frame).encode(), START_MS + one.at_ms
        written.append(TopicRecord(0, at_ms, key, one.value, encoded))
    end_ms = max(one.timestamp_ms for one in written)
    (trace,) = traced(written, "", [message_key(1).hex()], end_ms, "mvds")
    return trace.evidence


def test_a_payload_that_the_view_only_counts_is_marked() -> None:
    """Also if the same peers exchange the same record in time."""
    clock_ms = 2 * HORIZON_MS
    # Otherwise, the late records would refute the time of the first one.
    others = (sent(clock_ms, "c", "d", offers=[number]) for number in range(2, 52))
    evidence = _traced(
        sent(clock_ms, "a", "b", messages=[1]),
        *others,
        sent(clock_ms - HORIZON_MS, "b", "c", offers=[1]),
        sent(clock_ms - HORIZON_MS - 1, "b", "a", acks=[1]),
        sent(clock_ms - HORIZON_MS - 1, "a", "b", messages=[1]),
        sent(clock_ms - HORIZON_MS - 1, "a", "b", messages=[1, 1]),
        sent(clock_ms, "b", "a", acks=[1]),
    )
    late = ", more than 60 minutes late: it changes no conclusion"
    texts = [one.text for one in evidence.steps if one.by and one.tap]
    assert texts == [
        f"ACK of the message{late}",
        f"MESSAGE of the message{late}",
        "OFFER of the message",
        "MESSAGE of the message",
        "ACK of the message",
    ]
    repeated = [one.text for one in evidence.steps if one.what == "repeated"]
    assert repeated == [f"MESSAGE for the last time so far, 3 in all{late}"]
