"""Computes from a log of a simulation of MVDS what a correct monitor reports."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from sds_core.mvds.payload import Payload, encode, message_id
from sds_core.simulation.log import Heartbeat
from sds_core.simulation.mvds.log import (
    AckArrived,
    Made,
    MvdsEntry,
    PayloadSighting,
    Reached,
)

Heard = Callable[[str, int, int], bool]
"""Takes a node's id and the start and end of a period (both inclusive), Unix ms;
returns whether a tap recorded in this period a payload that the node sent."""

DEADLINE_MS = 120_000
GRACE_MS = 5_000


class MessageTruth:
    """What the recorded payloads show about one message.

    If the payloads contain only ACKs, OFFERs and REQUESTs of the message, they show its
    id, but not its group.

    The class computes what a correct monitor concludes from the payloads
    (docs/figures.md, 14). It does not use the monitor's code.

    Attributes:
        group: Hexadecimal id of the message's group; empty until a MESSAGE is recorded.
    """

    def __init__(self) -> None:
        self.group = ""
        self._count: Counter[str] = Counter()
        self._first_ms: int | None = None
        # Each dict is for one kind of event. Its keys are nodes, or pairs of sender and
        # receiver. The value is the time of the key's first event, Unix ms.
        self._held: dict[str, int] = {}
        self._acked: dict[str, int] = {}
        self._acked_to: dict[tuple[str, str], int] = {}
        self._offered: dict[tuple[str, str], int] = {}
        self._requested: dict[tuple[str, str], int] = {}
        self._sent: dict[tuple[str, str], int] = {}
        self._addressed: dict[str, int] = {}
        self._sendings: Counter[str] = Counter()

    def acked(self, at_ms: int, sender: str, receiver: str, size: int) -> None:
        """Process a recorded ACK."""
        self._said(at_ms, "ack", size, (sender, receiver) in self._acked_to)
        back = self._sent.get((receiver, sender))
        if (sender, receiver) not in self._acked_to:
            self._acked_to[sender, receiver] = at_ms
            if back is not None:
                self._count["ack_latency_ms.count"] += 1
                self._count["ack_latency_ms.sum"] += at_ms - back
        if sender not in self._acked:
            self._acked[sender] = at_ms
            first_ms = at_ms if self._first_ms is None else self._first_ms
            self._count["deliveries"] += 1
            self._count["delivery_ms.count"] += 1
            self._count["delivery_ms.sum"] += at_ms - first_ms
            if sendings := self._sendings[sender]:
                self._count["sends.messages"] += sendings
                self._count["sends.deliveries"] += 1
        self._held.setdefault(sender, at_ms)

    def offered(self, at_ms: int, sender: str, receiver: str, size: int) -> None:
        """Process a recorded OFFER."""
        self._said(at_ms, "offer", size, (sender, receiver) in self._offered)
        self._offered.setdefault((sender, receiver), at_ms)
        self._count["needless_offers"] += receiver in self._held
        self._held.setdefault(sender, at_ms)

    def requested(self, at_ms: int, sender: str, receiver: str, size: int) -> None:
        """Process a recorded REQUEST."""
        self._said(at_ms, "request", size, (sender, receiver) in self._requested)
        self._requested.setdefault((sender, receiver), at_ms)

    def sent(
        self, at_ms: int, sender: str, receiver: str, size: int, group: str
    ) -> None:
        """Process a recorded MESSAGE."""
        self._said(at_ms, "message", size, (sender, receiver) in self._sent)
        self.group = group
        self._sent.setdefault((sender, receiver), at_ms)
        if receiver in self._acked:
            self._count["duplicates"] += 1
        else:
            self._addressed.setdefault(receiver, at_ms)
            self._sendings[receiver] += 1
        self._held.setdefault(sender, at_ms)

    def figures(self, heard: Heard, end_ms: int) -> Counter[str]:
        """Return the message's figures as of `end_ms`, Unix ms."""
        count = Counter(self._count)
        count["messages"] = 1
        for receiver, sent_ms in self._addressed.items():
            count["addressed"] += 1
            end = self._end(receiver, sent_ms, heard, end_ms)
            count[end] += 1
            is_late = self._acked.get(receiver, sent_ms) > sent_ms + DEADLINE_MS
            count["resolved"] += end == "unacknowledged" and is_late
        for (sender, receiver), at_ms in self._offered.items():
            answer_ms = self._requested.get((receiver, sender))
            is_open = self._is_open(receiver, at_ms, answer_ms, end_ms)
            count["unrequested_offers"] += is_open
        for (requester, asked), at_ms in self._requested.items():
            answer_ms = self._sent.get((asked, requester))
            is_open = self._is_open(requester, at_ms, answer_ms, end_ms)
            count["unanswered_requests"] += is_open
        return count

    def _said(self, at_ms: int, type_: str, size: int, is_again: bool) -> None:
        if self._first_ms is None:
            self._first_ms = at_ms
        self._count[f"records.{type_}"] += 1
        self._count[f"bytes.{type_}"] += size
        self._count[f"retransmissions.{type_}"] += is_again

    def _end(self, receiver: str, sent_ms: int, heard: Heard, end_ms: int) -> str:
        due_ms = sent_ms + DEADLINE_MS
        if self._acked.get(receiver, end_ms + 1) <= due_ms:
            return "acknowledged_in_time"
        if end_ms <= due_ms:
            return "in_flight"
        # The monitor rounds the time of a node's latest payload down to whole seconds.
        from_ms = -(-(sent_ms + GRACE_MS) // 1_000) * 1_000
        holds = self._held.get(receiver, end_ms + 1) <= due_ms
        if heard(receiver, from_ms, due_ms) and not holds:
            return "unacknowledged"
        return "unwitnessed"

    def _is_open(
        self, node: str, begin_ms: int, answer_ms: int | None, end_ms: int
    ) -> bool:
        due_ms = begin_ms + DEADLINE_MS
        if end_ms <= due_ms:
            return False
        return not any(
            at_ms is not None and at_ms <= due_ms
            for at_ms in (answer_ms, self._held.get(node))
        )


SCHEMA = 1
_NO_GROUP = "unknown"
_NAME_DIGITS = 16
_TYPES = ("ack", "offer", "request", "message")
_OF_GROUP = (
    "messages",
    *(f"{what}.{type_}" for what in ("records", "bytes") for type_ in _TYPES),
    *(f"retransmissions.{type_}" for type_ in _TYPES),
    "deliveries",
    "delivery_ms.count",
    "delivery_ms.sum",
    "ack_latency_ms.count",
    "ack_latency_ms.sum",
    "sends.messages",
    "sends.deliveries",
    "addressed",
    "acknowledged_in_time",
    "unacknowledged",
    "unwitnessed",
    "in_flight",
    "resolved",
    "duplicates",
    "needless_offers",
    "unrequested_offers",
    "unanswered_requests",
)
_OF_PAYLOADS = ("payloads.all", "payloads.empty", "replicas", "bytes.other")


class MvdsTruth:
    """Processes log entries in order, and computes what a correct monitor reports.

    If a sighting's record is not in the Kafka topic, do not pass the sighting. Pass the
    other sightings in the order of their records in the topic. The taps' clocks must be
    correct.
    """

    def __init__(self, scenario: str, seed: int) -> None:
        self._scenario = scenario
        self._seed = seed
        self._seen: set[int] = set()
        self._messages: defaultdict[bytes, MessageTruth] = defaultdict(MessageTruth)
        self._heard: defaultdict[str, list[int]] = defaultdict(list)
        self._payloads: Counter[str] = Counter()
        self._stories: dict[bytes, dict[str, Any]] = {}
        self._first_ms: int | None = None
        self._last_ms = 0

    def add(self, entry: MvdsEntry) -> None:
        """Process the next entry of the log."""
        match entry:
            case Made():
                self._stories[entry.message_id] = {
                    "group": entry.group_id.hex(),
                    "node": entry.node,
                    "made": entry.at_ms,
                    "reached": {},
                    "acknowledged": {},
                }
            case Reached():
                reached = self._stories[entry.message_id]["reached"]
                reached.setdefault(entry.node, entry.at_ms)
            case AckArrived():
                acknowledged = self._stories[entry.message_id]["acknowledged"]
                acknowledged.setdefault(entry.node, entry.at_ms)
            case PayloadSighting():
                self._recorded(entry.at_ms)
                self._sighted(entry)
            case Heartbeat():
                self._recorded(entry.at_ms)

    def document(self) -> dict[str, Any]:
        """Return the truth in a form that can be written as JSON.

        The key `views` has the figures of each group, as in the report. The key
        `messages` has facts that a report cannot contain: for each message id, when the
        message reached each node, and when an acknowledgement of each node first
        arrived.
        """
        groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for message in self._messages.values():
            if message.group:
                name = message.group[:_NAME_DIGITS]
                groups[name] += message.figures(self._was_heard, self._last_ms)
        views = {name: _nested(_OF_GROUP, found) for name, found in groups.items()}
        if self._payloads:
            views[_NO_GROUP] = _nested(_OF_PAYLOADS, self._payloads)
        totals = sum(groups.values(), Counter(self._payloads))
        return {
            "schema": SCHEMA,
            "scenario": self._scenario,
            "seed": self._seed,
            "window": {"first_event": self._first_ms, "last_event": self._last_ms},
            "views": {
                "mvds": {
                    "totals": _nested((*_OF_PAYLOADS, *_OF_GROUP), totals),
                    "views": dict(sorted(views.items())),
                }
            },
            "messages": {one.hex(): told for one, told in self._stories.items()},
        }

    def _sighted(self, sighting: PayloadSighting) -> None:
        at_ms, _, _, sending = sighting
        if sending.number in self._seen:
            self._payloads["replicas"] += 1
            return
        self._seen.add(sending.number)
        self._heard[sending.sender].append(at_ms)
        self._payloads["payloads.all"] += 1
        self._payloads["payloads.empty"] += not sending.value
        payload, ends = sending.payload, (sending.sender, sending.receiver)
        rest = len(sending.value)
        for one in payload.acks:
            size = len(encode(Payload(acks=(one,))))
            self._messages[one].acked(at_ms, *ends, size)
            rest -= size
        for one in payload.offers:
            size = len(encode(Payload(offers=(one,))))
            self._messages[one].offered(at_ms, *ends, size)
            rest -= size
        for one in payload.requests:
            size = len(encode(Payload(requests=(one,))))
            self._messages[one].requested(at_ms, *ends, size)
            rest -= size
        for message in payload.messages:
            size = len(encode(Payload(messages=(message,))))
            known = self._messages[message_id(message)]
            known.sent(at_ms, *ends, size, message.group_id.hex())
            rest -= size
        self._payloads["bytes.other"] += rest

    def _recorded(self, at_ms: int) -> None:
        self._first_ms = at_ms if self._first_ms is None else min(self._first_ms, at_ms)
        self._last_ms = max(self._last_ms, at_ms)

    def _was_heard(self, node: str, from_ms: int, until_ms: int) -> bool:
        times = self._heard[node]
        return bisect_left(times, from_ms) < bisect_right(times, until_ms)


def _nested(names: tuple[str, ...], found: Mapping[str, int]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name in names:
        group, _, leaf = name.rpartition(".")
        place = tree.setdefault(group, {}) if group else tree
        place[leaf] = found.get(name, 0)
    return tree
