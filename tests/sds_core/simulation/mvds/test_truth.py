"""The truth of simulated MVDS, worked out by hand from small logs."""

from __future__ import annotations

from typing import Any

import pytest

from sds_core.mvds.payload import Message, Payload, encode, message_id
from sds_core.simulation.log import Heartbeat
from sds_core.simulation.mvds.log import (
    AckArrived,
    Made,
    MvdsEntry,
    PayloadSighting,
    Reached,
    Sending,
)
from sds_core.simulation.mvds.truth import MvdsTruth

START_MS = 1_750_000_000_000
GROUP = bytes(range(32))
MESSAGE = Message(GROUP, START_MS // 1_000, b"hello")
ID = message_id(MESSAGE)
DEADLINE_S = 120


class Log:
    """Writes a log; all times are seconds since `START_MS`."""

    def __init__(self) -> None:
        self.entries: list[MvdsEntry] = []

    def sent(self, at: float, sender: str, receiver: str, **records: Any) -> None:
        """A payload is sent, and the tap records it at once."""
        number = len(self.entries)
        payload = Payload(**records)
        at_ms = self._ms(at)
        sending = Sending(number, at_ms, sender, receiver, payload, encode(payload))
        self.entries += [sending, PayloadSighting(at_ms, "tap", number, sending)]

    def again(self) -> None:
        """The tap records the last payload once more."""
        self.entries.append(self.entries[-1])

    def beat(self, at: float) -> None:
        """The tap writes a heartbeat."""
        self.entries.append(Heartbeat(self._ms(at), "tap", len(self.entries)))

    def document(self) -> dict[str, Any]:
        """The truth of the log."""
        truth = MvdsTruth("some", 1)
        for entry in self.entries:
            truth.add(entry)
        return truth.document()

    def group(self) -> dict[str, Any]:
        """The figures of the only group."""
        found: dict[str, Any] = self.document()["views"]["mvds"]["views"]
        return found[GROUP.hex()[:16]]

    @staticmethod
    def _ms(at: float) -> int:
        return START_MS + round(at * 1_000)


@pytest.fixture
def log() -> Log:
    """An empty log."""
    return Log()


def test_offered_message_is_delivered_after_offer_request_and_message(
    log: Log,
) -> None:
    """Delivery counts from the offer, latency from the message."""
    log.sent(0, "a", "b", offers=(ID,))
    log.sent(1, "b", "a", requests=(ID,))
    log.sent(2, "a", "b", messages=(MESSAGE,))
    log.sent(5, "b", "a", acks=(ID,))
    group = log.group()
    assert group["messages"] == group["deliveries"] == group["addressed"] == 1
    assert group["delivery_ms"] == {"count": 1, "sum": 5_000}
    assert group["ack_latency_ms"] == {"count": 1, "sum": 3_000}
    assert group["sends"] == {"messages": 1, "deliveries": 1}
    assert group["acknowledged_in_time"] == 1
    assert group["records"] == {"ack": 1, "offer": 1, "request": 1, "message": 1}
    assert sum(group["bytes"].values()) == sum(
        len(one.value) for one in log.entries if isinstance(one, Sending)
    )


@pytest.mark.parametrize(
    ("heard_at", "outcome"),
    [(60, "unacknowledged"), (3, "unwitnessed"), (DEADLINE_S + 1, "unwitnessed")],
)
def test_receiver_without_acknowledgement_is_judged_by_whether_it_was_heard(
    log: Log, heard_at: float, outcome: str
) -> None:
    """Heard is who sent anything between the grace and the deadline."""
    log.sent(0, "a", "b", messages=(MESSAGE,))
    log.sent(heard_at, "b", "a")
    log.beat(DEADLINE_S + 2)
    assert log.group()[outcome] == 1


def test_pair_is_in_flight_until_the_deadline_has_passed(log: Log) -> None:
    """At the deadline itself it still is."""
    log.sent(0, "a", "b", messages=(MESSAGE,))
    log.beat(DEADLINE_S)
    assert log.group()["in_flight"] == 1
    log.beat(DEADLINE_S + 0.001)
    assert log.group()["unwitnessed"] == 1


def test_late_acknowledgement_resolves_the_pair(log: Log) -> None:
    """It stays unacknowledged, and counts as delivered."""
    log.sent(0, "a", "b", messages=(MESSAGE,))
    log.sent(60, "b", "a")
    log.sent(DEADLINE_S + 1, "b", "a", acks=(ID,))
    group = log.group()
    assert (group["unacknowledged"], group["resolved"]) == (1, 1)
    assert (group["acknowledged_in_time"], group["deliveries"]) == (0, 1)


def test_offering_a_message_on_shows_that_its_receiver_holds_it(log: Log) -> None:
    """Without an acknowledgement the pair is then no fault."""
    log.sent(0, "a", "b", messages=(MESSAGE,))
    log.sent(60, "b", "c", offers=(ID,))
    log.beat(DEADLINE_S + 1)
    assert log.group()["unwitnessed"] == 1


def test_records_for_somebody_who_has_the_message_are_waste(log: Log) -> None:
    """A message after the acknowledgement, an offer to a holder."""
    log.sent(0, "a", "b", messages=(MESSAGE,))
    log.sent(1, "b", "a", acks=(ID,))
    log.sent(2, "a", "b", messages=(MESSAGE,))
    log.sent(3, "b", "a", offers=(ID,))
    group = log.group()
    assert (group["duplicates"], group["needless_offers"]) == (1, 1)
    assert group["retransmissions"]["message"] == 1


def test_offer_and_request_without_effect_are_counted_after_the_deadline(
    log: Log,
) -> None:
    """Of an id whose group is known from a message to somebody else."""
    log.sent(0, "a", "b", messages=(MESSAGE,))
    log.sent(0, "a", "c", offers=(ID,))
    log.sent(1, "d", "a", requests=(ID,))
    log.beat(DEADLINE_S)
    group = log.group()
    assert (group["unrequested_offers"], group["unanswered_requests"]) == (0, 0)
    log.beat(DEADLINE_S + 2)
    group = log.group()
    assert (group["unrequested_offers"], group["unanswered_requests"]) == (1, 1)


def test_copies_and_empty_payloads_count_in_the_group_unknown(log: Log) -> None:
    """A second record of a sending changes nothing else."""
    log.sent(0, "a", "b")
    log.again()
    unknown = log.document()["views"]["mvds"]["views"]["unknown"]
    assert unknown["payloads"] == {"all": 1, "empty": 1}
    assert unknown["replicas"] == 1


def test_truth_tells_when_messages_and_acknowledgements_really_arrived(
    log: Log,
) -> None:
    """The first time counts."""
    log.entries += [
        Made(START_MS, "a", ID, GROUP),
        Reached(START_MS + 5, "b", ID),
        Reached(START_MS + 9, "b", ID),
        AckArrived(START_MS + 7, "b", ID),
    ]
    (story,) = log.document()["messages"].values()
    assert story["reached"] == {"b": START_MS + 5}
    assert story["acknowledged"] == {"b": START_MS + 7}
