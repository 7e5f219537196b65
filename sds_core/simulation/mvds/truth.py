"""The whole truth about a simulation of MVDS, as one document."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
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
from sds_core.simulation.mvds.message_truth import MessageTruth

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
    """Takes log entries in order, and returns what a correct monitor finds.

    It must get exactly those sightings whose records are in the topic, in the topic's
    order. Taps must have right clocks.
    """

    def __init__(self, scenario: str, seed: int) -> None:
        """Begin before anything has happened.

        Args:
            scenario: Name of the scenario, for the document.
            seed: Seed of the simulation, for the document.
        """
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
        """Take the next entry of the log."""
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
        """Return everything in values of JSON.

        `views` holds the report's figures of groups. `messages` holds what no report
        can: when each message really reached each node, and when an acknowledgement of
        each node really arrived, by message id.
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
    """Return figures by the parts of their names, 0 for those that did not happen."""
    tree: dict[str, Any] = {}
    for name in names:
        group, _, leaf = name.rpartition(".")
        place = tree.setdefault(group, {}) if group else tree
        place[leaf] = found.get(name, 0)
    return tree
