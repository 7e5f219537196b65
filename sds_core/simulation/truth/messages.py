"""What really happened to each message, such as which participants received it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from sds_core.message_channel.events import (
    Acknowledged,
    Delivered,
    Evidence,
    IrretrievablyLost,
    Missing,
    Received,
    RepairAnswered,
    RepairRequested,
)
from sds_core.simulation.log import Arrival, Happening, Presence, Sighting, Transmission
from sds_core.wire import FrameKind


class Sending:
    """One transmission of a message, and the taps that recorded the transmission."""

    def __init__(self, transmission: Transmission) -> None:
        self.at_ms = transmission.at_ms
        self.by = transmission.by
        self.cause = transmission.cause
        self.waku_hash = transmission.waku_hash
        self.seen_by: set[str] = set()

    def document(self) -> dict[str, Any]:
        """Return the transmission as JSON values for the truth document."""
        return {
            "at_ms": self.at_ms,
            "by": self.by,
            "cause": self.cause.value,
            "seen_by": sorted(self.seen_by),
            "waku_hash": self.waku_hash,
        }


class Story:
    """What happened to one message; times are Unix ms.

    Attributes:
        sender: participant that first sent the message; empty before the first sending.
        audience: participants that were present at the first sending.
        received_in: for each participant, the first transmission of the message that
            reached the participant.
    """

    def __init__(self) -> None:
        self.kind = FrameKind.CONTENT
        self.sender = ""
        self.audience: frozenset[str] = frozenset()
        self.sendings: list[Sending] = []
        self.received: dict[str, int] = {}
        self.received_in: dict[str, Sending] = {}
        self.delivered: dict[str, int] = {}
        self.missing: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.acknowledged: tuple[int, str, Evidence] | None = None
        self.requested: list[tuple[int, str]] = []
        self.repaired: list[tuple[int, str]] = []

    def document(self) -> dict[str, Any]:
        """Return the story as JSON values for the truth document."""
        acknowledged = None
        if self.acknowledged is not None:
            at_ms, by, evidence = self.acknowledged
            acknowledged = {"at_ms": at_ms, "by": by, "evidence": evidence.value}
        return {
            "kind": self.kind.value,
            "sender": self.sender,
            "sent_ms": self.sendings[0].at_ms if self.sendings else None,
            "transmissions": [sending.document() for sending in self.sendings],
            "received": self.received,
            # The values are indices in the list `transmissions` of this document.
            "received_in": {
                who: self.sendings.index(sending)
                for who, sending in self.received_in.items()
            },
            "delivered": self.delivered,
            "missing": self.missing,
            "lost": self.lost,
            "acknowledged": acknowledged,
            "requested": [{"at_ms": at, "by": by} for at, by in self.requested],
            "repaired": [{"at_ms": at, "by": by} for at, by in self.repaired],
            "never_received": sorted(
                self.audience - self.received.keys() - {self.sender}
            ),
        }


class Messages:
    """Collects the story of each message in every channel.

    `Transmission.is_of_message` decides whether a transmission belongs to a message.
    """

    def __init__(self) -> None:
        self._stories: defaultdict[str, defaultdict[str, Story]] = defaultdict(
            lambda: defaultdict(Story)
        )
        self._sendings: dict[int, Sending] = {}
        # Last transmission that reached a participant, by channel and participant.
        self._arrived: dict[tuple[str, str], Sending] = {}
        # The present participants of each channel. Stories keep these sets, so a set is
        # never modified, only replaced.
        self._present: defaultdict[str, frozenset[str]] = defaultdict(frozenset)

    def moved(self, presence: Presence) -> None:
        """Record that a participant joins or leaves."""
        who = {presence.participant}
        present = self._present[presence.channel_id]
        self._present[presence.channel_id] = (
            present | who if presence.present else present - who
        )

    def transmitted(self, transmission: Transmission) -> None:
        """Record a transmission; sync and ephemeral transmissions have no story."""
        frame = transmission.frame
        if not transmission.is_of_message:
            return
        story = self._stories[transmission.channel_id][frame.message_id]
        if not story.sendings:
            story.kind = frame.kind
            story.sender = transmission.by
            story.audience = self._present[transmission.channel_id]
        sending = self._sendings[transmission.number] = Sending(transmission)
        story.sendings.append(sending)

    def sighted(self, sighting: Sighting) -> None:
        """Add a tap to the taps that recorded a transmission."""
        sending = self._sendings.get(sighting.transmission.number)
        if sending is not None:
            sending.seen_by.add(sighting.tap)

    def arrived(self, arrival: Arrival) -> None:
        """Record that a transmission reached a participant."""
        sending = self._sendings.get(arrival.transmission.number)
        if sending is not None:
            channel_id = arrival.transmission.channel_id
            self._arrived[channel_id, arrival.participant] = sending

    def happened(self, happening: Happening) -> None:
        """Record that a participant emitted an event about a message."""
        stories = self._stories[happening.channel_id]
        at_ms, who = happening.at_ms, happening.participant
        match happening.event:
            case Received(message_id=message_id):
                story = stories[message_id]
                story.received.setdefault(who, at_ms)
                sending = self._arrived.get((happening.channel_id, who))
                if sending is not None and sending in story.sendings:
                    story.received_in.setdefault(who, sending)
            case Delivered(message_id=message_id):
                stories[message_id].delivered.setdefault(who, at_ms)
            case Missing(message_id=message_id):
                stories[message_id].missing.setdefault(who, at_ms)
            case IrretrievablyLost(message_id=message_id):
                stories[message_id].lost.setdefault(who, at_ms)
            case Acknowledged(message_id=message_id, sender_id=by, evidence=evidence):
                stories[message_id].acknowledged = (at_ms, by, evidence)
            case RepairRequested(message_ids=message_ids):
                for message_id in message_ids:
                    stories[message_id].requested.append((at_ms, who))
            case RepairAnswered(message_id=message_id):
                stories[message_id].repaired.append((at_ms, who))

    def stories(self, channel_id: str) -> Mapping[str, Story]:
        """Return the story of each message of a channel, by id."""
        return self._stories[channel_id]

    def document(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each channel's id, and its stories as JSON values, by message id."""
        for channel_id, stories in self._stories.items():
            yield channel_id, {key: story.document() for key, story in stories.items()}
