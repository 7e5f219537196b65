"""Participants of `sds_core.message_channel`, in the same virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from math import inf
from random import Random

from sds_core.message_channel import (
    Acknowledged,
    Broadcast,
    Delivered,
    Event,
    MessageChannel,
    Missing,
    PossiblyAcknowledged,
    Profile,
    RepairAnswered,
    Step,
    SyncReceived,
)
from tests.support.interop.host import Note, Outcome, Said, What

_Noted = (
    Delivered
    | Acknowledged
    | PossiblyAcknowledged
    | Missing
    | SyncReceived
    | RepairAnswered
)
_WHAT: dict[type[_Noted], What] = {
    Delivered: What.DELIVERED,
    Acknowledged: What.ACKNOWLEDGED,
    PossiblyAcknowledged: What.POSSIBLY_ACKNOWLEDGED,
    Missing: What.MISSING,
    SyncReceived: What.SYNC_RECEIVED,
    RepairAnswered: What.ANSWERED,
}


class PythonHost:
    """A host of Python participants.

    Args:
        channel_id: of all participants.
        seed: of their random numbers.

    Attributes:
        participants: by name.
        events: what each said, in order, as it said it.
    """

    def __init__(self, channel_id: str, seed: int) -> None:
        self.participants: dict[str, MessageChannel] = {}
        self.events: dict[str, list[Event]] = {}
        self._channel_id = channel_id
        self._seed = seed

    def enter(self, at_ms: int, name: str, profile: Profile) -> None:
        """Open a participant."""
        self.events[name] = []
        self.participants[name] = MessageChannel(
            self._channel_id,
            name,
            now_ms=at_ms,
            random=Random(f"{self._seed} {name}"),
            profile=profile,
        )

    @property
    def next_ms(self) -> float:
        """The earliest deadline of a participant, Unix ms."""
        deadlines = [one.next_deadline_ms for one in self.participants.values()]
        return min(deadlines, default=inf)

    def run_until(self, at_ms: int) -> Outcome:
        """Let every participant do what is due."""
        said: list[Said] = []
        notes: list[Note] = []
        for name, participant in self.participants.items():
            if participant.next_deadline_ms <= at_ms:
                outcome = self._took(at_ms, name, participant.advance(at_ms))
                said += outcome.said
                notes += outcome.notes
        return Outcome(said, notes)

    def say(self, at_ms: int, name: str, text: str) -> Outcome:
        """Have a participant send a content message, again until acknowledged."""
        step = self.participants[name].send(text.encode(), at_ms)
        return self._took(at_ms, name, step)

    def say_ephemeral(self, at_ms: int, name: str, text: str) -> Outcome:
        """Have a participant send an ephemeral message."""
        step = self.participants[name].send_ephemeral(text.encode(), at_ms)
        return self._took(at_ms, name, step)

    def receive(self, at_ms: int, name: str, value: bytes, hint: bytes) -> Outcome:
        """Hand a frame to a participant."""
        participant = self.participants[name]
        step = participant.receive(value, at_ms, retrieval_hint=hint)
        return self._took(at_ms, name, step)

    def leave(self, at_ms: int, name: str) -> None:
        """Close a participant's application for good."""
        del self.participants[name]

    def log(self, name: str) -> list[str]:
        """Return the ids of a participant's local log, in its order."""
        return list(self.participants[name].log)

    def _took(self, at_ms: int, name: str, step: Step) -> Outcome:
        self.events[name] += step.events
        said = [self._said(at_ms, name, broadcast) for broadcast in step.broadcasts]
        return Outcome(said, _notes(name, step.events))

    def _said(self, at_ms: int, name: str, broadcast: Broadcast) -> Said:
        # As a transport does: what hangs on the time is known only after the sending.
        hint = sha256(broadcast.value + str(at_ms).encode()).digest()
        self.participants[name].note_retrieval_hint(broadcast.message_id, hint)
        return Said(name, broadcast.cause, broadcast.value, hint)


def _notes(name: str, events: Sequence[Event]) -> list[Note]:
    return [
        Note(name, _WHAT[type(event)], event.message_id)
        for event in events
        if isinstance(event, _Noted)
    ]
