"""Tracks which participants lack each message, and records losses as incidents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

from sds_core.native import native
from sds_core.observer.incidents import MOST_LACKING, Incident, IncidentKind, Incidents
from sds_core.observer.sds.messages import Message
from sds_core.observer.sds.participants import Participants
from sds_core.observer.sds.receivers import Receiver


@native
@dataclass(slots=True)
class MissingDeliveries:
    """Finds the receivers that lack a message.

    In arguments, `order` is the order of a message, and `by` is the participant index
    of a receiver.
    """

    _participants: Participants
    _incidents: Incidents
    _receivers: Mapping[int, Receiver]
    _undelivered: dict[int, tuple[int, int]]
    # For each message, by its order: `_missing` has the receivers that lack the
    # message, and `_lost` has the receivers to which the message is lost. Each receiver
    # has the event time of its first frame that showed that it lacks the message.
    _missing: dict[int, dict[int, int]] = field(default_factory=dict)
    _lost: dict[int, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fill `_missing` and `_lost` from the loaded receivers."""
        for by, receiver in self._receivers.items():
            for order, missing_ms in receiver.missing.items():
                self.missing(order, by, missing_ms)
            for order in receiver.lost:
                self._lost.setdefault(order, {})[by] = receiver.missing[order]

    def of(self, message: Message) -> tuple[dict[str, int], int]:
        """Return participants that lack a message, and how many others lack it.

        At most `MOST_LACKING` participants are returned. Each has the event time of its
        first frame that showed that it lacks the message. Participants with the
        earliest times have priority.
        """
        return self._named(self._missing.get(message.order, {}))

    def missing(self, order: int, by: int, missing_ms: int) -> None:
        """Record that a receiver lacks a message, as a frame at `missing_ms` showed."""
        self._missing.setdefault(order, {})[by] = missing_ms

    def lost(self, message: Message, by: int, clock_ms: int) -> None:
        """Record that a message counts as lost to a receiver that lacks it."""
        order = message.order
        missing_ms = self._missing[order][by]
        self._lost.setdefault(order, {})[by] = missing_ms
        since_ms, found_ms = self._undelivered.get(order, (missing_ms, clock_ms))
        self._undelivered[order] = min(since_ms, missing_ms), found_ms
        self.record_incident(message, clock_ms)

    def end(self, order: int, by: int) -> None:
        """Record that a receiver no longer lacks a message.

        This method is also called if the delivery is no longer tracked.
        """
        for index in (self._missing, self._lost):
            if order in index:
                index[order].pop(by, None)
                if not index[order]:
                    del index[order]

    def forget_before(self, order: int) -> None:
        """Drop the lost messages whose order is below `order`."""
        for earlier in [one for one in self._undelivered if one < order]:
            del self._undelivered[earlier]

    def record_incident(self, message: Message, clock_ms: int) -> None:
        """Record the incident that a message is lost to participants.

        If the message is no longer lost to any participant, the incident ends.
        """
        since_ms, found_ms = self._undelivered[message.order]
        lost_to = self._lost.get(message.order, {})
        count = len(lost_to)
        # If a message is lost to more than `MOST_LACKING` receivers, the incident is
        # recorded again only when the number of these receivers is a power of two.
        if count > MOST_LACKING and count & (count - 1):
            return
        lacking, others = self._named(lost_to)
        self._incidents.record(
            Incident(
                IncidentKind.UNDELIVERED,
                message.message_id,
                self._participants.name(message.sender),
                since_ms=since_ms,
                found_ms=found_ms,
                ended_ms=None if lost_to else clock_ms,
                lacking=lacking,
                waku_hash=message.waku_hash,
                hint=message.hint,
                lacking_others=others,
            )
        )

    def _named(self, lacking: Mapping[int, int]) -> tuple[dict[str, int], int]:
        timed = [(time_ms, by) for by, time_ms in lacking.items()]
        participants = self._participants
        first = nsmallest(MOST_LACKING, timed)
        return {participants.name(by): ms for ms, by in first}, len(lacking) - len(
            first
        )
