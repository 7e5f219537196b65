"""One lossy broadcast channel in virtual time, for participants of any host."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from sds_core.message_channel import Cause
from sds_core.wire import Frame, decode
from tests.support.interop.host import Host, Note, Outcome, What

DELAY_MS = (30, 600)
"""Least and greatest time from a broadcast to a receiver: some overtake others."""

_ENDLESS = 10_000  # turns at one instant


class Sending(NamedTuple):
    """One broadcast of one frame.

    Attributes:
        at_ms: when, Unix ms.
        by: who broadcast it; for a repair not the frame's own sender.
        cause: why.
        frame: decoded from the bytes.
        value: the bytes.
        hint: the transport's hash of it, by which a store has it.
    """

    at_ms: int
    by: str
    cause: Cause
    frame: Frame
    value: bytes
    hint: bytes

    @property
    def requested(self) -> list[str]:
        """The ids that it requests (SDS-R)."""
        return [entry.message_id for entry in self.frame.repair_request]


class Noted(NamedTuple):
    """A note and its time, Unix ms."""

    at_ms: int
    note: Note


Loss = Callable[[Sending, str], bool]
"""Tells whether a sending is lost on its way to the receiver of that name."""


class Channel:
    """Carries every broadcast to all other participants, except for losses.

    Args:
        start_ms: Unix ms.
        random: draws the delays.

    Attributes:
        now_ms: Unix ms.
        losses: a sending is lost to a receiver if any of these says so.
        sendings: all so far, in order.
        notes: all so far, in order.
        texts: what was said, by message id.
    """

    def __init__(self, start_ms: int, random: Random) -> None:
        self.now_ms = start_ms
        self.losses: list[Loss] = []
        self.sendings: list[Sending] = []
        self.notes: list[Noted] = []
        self.texts: dict[str, str] = {}
        self._random = random
        self._host_of: dict[str, Host] = {}
        self._arrived: set[tuple[str, str]] = set()
        self._store: dict[bytes, Sending] = {}
        self._hints: dict[str, bytes] = {}
        self._under_way: list[tuple[int, int, str, Sending]] = []
        self._numbers = itertools.count()

    @property
    def names(self) -> list[str]:
        """Names of all participants."""
        return list(self._host_of)

    def join(self, host: Host, *names: str) -> None:
        """Add participants of a host."""
        self._host_of.update(dict.fromkeys(names, host))

    def leave(self, name: str) -> None:
        """Close a participant's application for good."""
        self._host_of.pop(name).leave(self.now_ms, name)

    def say(self, name: str, text: str) -> str:
        """Have a participant send a content message; returns its id."""
        before = len(self.sendings)
        self._take(self._host_of[name].say(self.now_ms, name, text))
        message_id = self.sendings[before].frame.message_id
        self.texts[message_id] = text
        return message_id

    def say_ephemeral(self, name: str, text: str) -> None:
        """Have a participant send an ephemeral message."""
        self._take(self._host_of[name].say_ephemeral(self.now_ms, name, text))

    def run(self, duration_ms: int) -> None:
        """Advance virtual time."""
        end_ms = self.now_ms + duration_ms
        turns = 0
        while (next_ms := self._next_ms()) <= end_ms:
            turns = turns + 1 if next_ms == self.now_ms else 0
            assert turns < _ENDLESS, "time stands still"
            self.now_ms = int(next_ms)
            self._turn()
        self.now_ms = end_ms

    def log(self, name: str) -> list[str]:
        """Return the ids of a participant's local log, in its order."""
        return self._host_of[name].log(name)

    def noted(self, what: What, by: str) -> list[str]:
        """Return the ids of a participant's notes of this kind, in order."""
        return [
            note.message_id
            for _, note in self.notes
            if (note.what, note.by) == (what, by)
        ]

    def when(self, what: What, by: str, message_id: str) -> int:
        """Return when a participant first had this note on a message, Unix ms."""
        return next(
            at_ms
            for at_ms, note in self.notes
            if (note.what, note.by, note.message_id) == (what, by, message_id)
        )

    def sent(self, *causes: Cause, message_id: str | None = None) -> list[Sending]:
        """Return the sendings of these causes, in order; of one message, if named."""
        return [
            sending
            for sending in self.sendings
            if sending.cause in causes
            and message_id in (None, sending.frame.message_id)
        ]

    def requests(self, message_id: str) -> list[Sending]:
        """Return the sendings that request a message, in order (SDS-R)."""
        return [one for one in self.sendings if message_id in one.requested]

    def stored(self, hint: bytes) -> Sending:
        """Return a sending by its hint, as a Waku store does."""
        return self._store[hint]

    def fetch_missing(self, name: str) -> list[str]:
        """Hand a participant what it misses, as from a Waku store; returns the ids.

        It is found by the retrieval hint that a causal history gives of it.
        """
        missing = [
            message_id
            for message_id in dict.fromkeys(self.noted(What.MISSING, name))
            if (name, message_id) not in self._arrived
        ]
        for message_id in missing:
            self._hand(name, self.stored(self._hints[message_id]))
        return missing

    def _hosts(self) -> Iterator[Host]:
        yield from {id(host): host for host in self._host_of.values()}.values()

    def _next_ms(self) -> float:
        planned = [host.next_ms for host in self._hosts()]
        if self._under_way:
            planned.append(self._under_way[0][0])
        return min(planned)

    def _turn(self) -> None:
        while self._under_way and self._under_way[0][0] <= self.now_ms:
            _, _, name, sending = heapq.heappop(self._under_way)
            if name in self._host_of:
                self._hand(name, sending)
        for host in self._hosts():
            if host.next_ms <= self.now_ms:
                self._take(host.run_until(self.now_ms))

    def _hand(self, name: str, sending: Sending) -> None:
        self._arrived.add((name, sending.frame.message_id))
        host = self._host_of[name]
        self._take(host.receive(self.now_ms, name, sending.value, sending.hint))

    def _take(self, outcome: Outcome) -> None:
        self.notes += [Noted(self.now_ms, note) for note in outcome.notes]
        for by, cause, value, hint in outcome.said:
            frame = decode(value)
            sending = Sending(self.now_ms, by, cause, frame, value, hint)
            self.sendings.append(sending)
            self._store[hint] = sending
            for entry in frame.causal_history:
                self._hints[entry.message_id] = entry.retrieval_hint
            for name in self._host_of:
                if name != by:
                    self._carry(sending, name)

    def _carry(self, sending: Sending, name: str) -> None:
        at_ms = self.now_ms + self._random.randint(*DELAY_MS)
        # All are asked, so that one rule's random numbers do not hang on another's.
        if any([lost(sending, name) for lost in self.losses]):
            return
        entry = (at_ms, next(self._numbers), name, sending)
        heapq.heappush(self._under_way, entry)


def at_random(random: Random, probability: float) -> Loss:
    """Return a loss that is independent for each transmission and receiver."""
    return lambda _sending, _receiver: random.random() < probability


def lost_to(receiver: str, text: str, *causes: Cause) -> Loss:
    """Return the loss of one message to one receiver, in sendings of these causes."""
    content = text.encode()
    return lambda sending, name: (
        name == receiver
        and sending.frame.content == content
        and sending.cause in causes
    )
