"""Participants of one channel on a bus in memory, in virtual time.

A broadcast reaches all others at once, except those for whom it is lost and those who
are offline. Nothing is left to chance: the same calls give the same run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from sds_core.message_channel import Broadcast, Cause, Event, Profile, Step
from sds_core.wire import BloomParameters
from tests.support.frames import START_MS
from tests.support.participants import LASTING as LASTING_REPAIRS
from tests.support.participants import OneEvent, participant

_SMALL_FILTER = BloomParameters(100, 0.01)


def without_retries(profile: Profile) -> Profile:
    """The same profile, in which only repairs bring a message again.

    Its filters are small, to be made and read in no time.
    """
    rolled = profile.bloom_rolled and _SMALL_FILTER
    return replace(profile, max_retries=0, bloom=_SMALL_FILTER, bloom_rolled=rolled)


SPEC = without_retries(Profile.spec())
LASTING = without_retries(LASTING_REPAIRS)


class Aired(NamedTuple):
    """One broadcast: when, Unix ms, and by which participant."""

    at_ms: int
    by: str
    broadcast: Broadcast


class Told(NamedTuple):
    """One event: when, Unix ms, and of which participant."""

    at_ms: int
    by: str
    event: Event


class Bus:
    """The participants and what passed between them.

    Attributes:
        now_ms: Unix ms.
        participants: by name.
        offline: names of those who neither reach the others nor are reached.
        aired: what others could hear, in order.
        told: all events, in order.
    """

    def __init__(self, *names: str, profile: Profile = SPEC) -> None:
        self.now_ms = START_MS
        self.participants = {name: participant(name, profile) for name in names}
        self.offline: set[str] = set()
        self.aired: list[Aired] = []
        self.told: list[Told] = []

    def send(self, name: str, message_id: str, lost_for: Collection[str] = ()) -> None:
        """Let a participant send a message of this id now."""
        step = self.participants[name].send(
            message_id.encode(), self.now_ms, message_id=message_id
        )
        self._take(name, step, lost_for)

    def run(self, for_ms: int) -> None:
        """Advance virtual time; participants act at their deadlines."""
        end_ms = self.now_ms + for_ms
        while (due_ms := self._next_ms()) <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            for name, one in self.participants.items():
                if one.next_deadline_ms <= self.now_ms:
                    self._take(name, one.advance(self.now_ms))
        self.now_ms = end_ms

    def events(self, kind: type[OneEvent]) -> list[tuple[int, str, OneEvent]]:
        """Return time and participant of each event of this kind."""
        return [
            (at_ms, by, event)
            for at_ms, by, event in self.told
            if isinstance(event, kind)
        ]

    def answers(self) -> list[tuple[str, str]]:
        """Return participant and message of each broadcast for a request, in order."""
        return [
            (by, broadcast.message_id)
            for _, by, broadcast in self.aired
            if broadcast.cause is Cause.REPAIR
        ]

    def logs(self) -> set[tuple[str, ...]]:
        """Return the distinct logs: one if all are equal."""
        return {one.log for one in self.participants.values()}

    def _next_ms(self) -> int:
        return min(one.next_deadline_ms for one in self.participants.values())

    def _take(self, name: str, step: Step, lost_for: Collection[str] = ()) -> None:
        self._note(name, step)
        if name in self.offline:
            return
        for broadcast in step.broadcasts:
            self.aired.append(Aired(self.now_ms, name, broadcast))
            for other, one in self.participants.items():
                if other not in {name, *self.offline, *lost_for}:
                    self._note(other, one.receive(broadcast.value, self.now_ms))

    def _note(self, name: str, step: Step) -> None:
        self.told += [Told(self.now_ms, name, event) for event in step.events]
