"""Participants of one channel over a network with loss and delay, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import cycle
from random import Random
from typing import Protocol

from hypothesis import strategies as st

from sds_core.message_channel import MessageChannel, Profile, Step
from sds_core.wire import BloomParameters, Frame, FrameKind, decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.participants import CHANNEL

HOUR = 60 * MINUTE

SMALL_FILTER = BloomParameters(100, 0.01)
"""128 bytes: enough for the few ids of an example."""


def with_small_filter(profile: Profile) -> Profile:
    """Return the profile with a filter that is fast to make and read."""
    rolled = profile.bloom_rolled and SMALL_FILTER
    return replace(profile, bloom=SMALL_FILTER, bloom_rolled=rolled)


def with_low_limits(profile: Profile, missing_limit: int = 3) -> Profile:
    """Return the profile with buffers that a few messages fill."""
    return replace(
        profile,
        causal_history_size=min(profile.causal_history_size, 8),
        log_limit=6,
        bloom_rollover_ids=profile.bloom_rollover_ids and 8,
        bloom_kept_ids=4,
        outgoing_limit=3,
        incoming_limit=3,
        missing_limit=missing_limit,
        repair_buffer_limit=2,
        repair_retained_limit=4,
        participants_limit=2,
        history_limit=8,
        id_limit=64,
        hint_limit=16,
        max_frame_bytes=70_000,
    )


SPEC = with_small_filter(Profile.spec())
JS_SDS = with_small_filter(Profile.js_sds())
NIM_SDS = with_small_filter(Profile.nim_sds())

ROOMY = (SPEC, JS_SDS, NIM_SDS)
NAMES_OF_ROOMY = ("spec", "js_sds", "nim_sds")
LOW = tuple(
    with_low_limits(profile, missing_limit)
    for profile in ROOMY
    for missing_limit in (1, 3)
)

PROFILES = st.sampled_from(ROOMY)


class Participant(Protocol):
    """The methods that the network calls on a participant."""

    @property
    def next_deadline_ms(self) -> int:
        """As `MessageChannel.next_deadline_ms`."""

    def send(self, content: bytes, now_ms: int) -> Step:
        """As `MessageChannel.send`."""

    def receive(self, value: bytes, now_ms: int) -> Step:
        """As `MessageChannel.receive`."""

    def advance(self, now_ms: int) -> Step:
        """As `MessageChannel.advance`."""


Make = Callable[[str, Random], Participant]


def participant(profile: Profile, name: str, random: Random) -> MessageChannel:
    """Return a participant that starts now."""
    return MessageChannel(
        CHANNEL, name, now_ms=START_MS, random=random, profile=profile
    )


class LossyNetwork:
    """Loses and delays the first transmissions as told, and then none.

    A transmission is one frame on its way to one participant. Frames are known from
    their bytes alone: what the network says does not come from a participant's memory.

    Args:
        names: of the participants.
        make: makes one of them.
        losses: for each of the first transmissions whether it is lost.
        delays_ms: for each of the first transmissions; then 50 ms.
        each_step: called with name, time and step after every call to a participant.

    Attributes:
        now_ms: Unix ms.
        participants: by name.
        messages: the content frames of all, by message id.
        contents: what each was sent with.
        told_ms: by name, each message id that it sent or that a frame brought or named
            to it, with when that was the last time.
        last_loss_ms: when a transmission was last lost.
    """

    def __init__(
        self,
        names: Sequence[str],
        make: Make,
        losses: Sequence[bool] = (),
        delays_ms: Sequence[int] = (),
        each_step: Callable[[str, int, Step], None] = lambda *_: None,
    ) -> None:
        self.now_ms = START_MS
        self.participants = {
            name: make(name, Random(number)) for number, name in enumerate(names)
        }
        self.messages: dict[str, Frame] = {}
        self.contents: dict[str, bytes] = {}
        self.told_ms: dict[str, dict[str, int]] = {name: {} for name in names}
        self.last_loss_ms = START_MS
        self._losses = iter(losses)
        self._delays_ms = iter(delays_ms)
        self._each_step = each_step
        self._under_way: list[tuple[int, int, str, bytes]] = []
        self._sent = 0

    def send(self, name: str, content: bytes) -> None:
        """Let a participant send a message now."""
        step = self.participants[name].send(content, self.now_ms)
        self.contents[step.broadcasts[0].message_id] = content
        self.take(name, step)

    def place_of(self, message_id: str) -> tuple[int, str]:
        """Return the key by which logs are ordered."""
        lamport = self.messages[message_id].lamport
        assert lamport is not None
        return lamport, message_id

    def run(self, for_ms: int) -> None:
        """Advance virtual time."""
        for _ in self.moments(for_ms):
            pass

    def moments(self, for_ms: int) -> Iterator[int]:
        """Advance virtual time; yield each time at which something happened."""
        end_ms = self.now_ms + for_ms
        while (due_ms := self._next_ms()) <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            while self._under_way and self._under_way[0][0] <= self.now_ms:
                _, _, name, value = heappop(self._under_way)
                self._note(name, value)
                self.take(name, self.participants[name].receive(value, self.now_ms))
            for name, one in self.participants.items():
                if one.next_deadline_ms <= self.now_ms:
                    self.take(name, one.advance(self.now_ms))
            yield self.now_ms
        self.now_ms = end_ms

    def _next_ms(self) -> int:
        due_ms = min(one.next_deadline_ms for one in self.participants.values())
        return min(due_ms, self._under_way[0][0]) if self._under_way else due_ms

    def take(self, name: str, step: Step) -> None:
        """Transmit a participant's broadcasts."""
        for broadcast in step.broadcasts:
            frame = decode(broadcast.value).detached()
            if frame.kind is FrameKind.CONTENT and frame.sender_id == name:
                self.messages.setdefault(frame.message_id, frame)
                self.told_ms[name][frame.message_id] = self.now_ms
            for other in self.participants:
                if other != name:
                    self._transmit(other, broadcast.value)
        self._each_step(name, self.now_ms, step)

    def _transmit(self, receiver: str, value: bytes) -> None:
        if next(self._losses, False):
            self.last_loss_ms = self.now_ms
            return
        arrives_ms = self.now_ms + next(self._delays_ms, 50)
        self._sent += 1
        heappush(self._under_way, (arrives_ms, self._sent, receiver, value))

    def _note(self, name: str, value: bytes) -> None:
        frame = decode(value)
        ids = [entry.message_id for entry in frame.causal_history]
        if frame.kind is FrameKind.CONTENT:
            ids.append(frame.message_id)
        self.told_ms[name].update(dict.fromkeys(ids, self.now_ms))


def names_of(count: int) -> list[str]:
    """Return names for this many participants."""
    return ["alice", "bob", "carol", "dave", "erin"][:count]


PAUSES_MS = st.sampled_from([0, 1, 100, SECOND, 10 * SECOND, 40 * SECOND])
DELAYS_MS = st.lists(st.sampled_from([0, 1, 50, 3 * SECOND, 45 * SECOND]), max_size=30)


def random_losses(seed: int, rate: float, transmissions: int) -> list[bool]:
    """Losses at a rate, for long enough that repairs are lost too."""
    random = Random(seed)
    return [random.random() < rate for _ in range(transmissions)]


# For each of the first transmissions; the first two are there to be made simpler.
LOSSES = st.one_of(
    st.binary(max_size=16).map(
        lambda drawn: [bool(byte >> bit & 1) for byte in drawn for bit in range(8)]
    ),
    st.lists(st.sampled_from([True, True, True, False]), max_size=80),
    st.builds(
        random_losses,
        st.integers(0, 2**32 - 1),
        st.sampled_from([0.2, 0.5, 0.9]),
        st.sampled_from([60, 150, 400]),
    ),
)


def sendings(
    count: int, max_size: int = 10
) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Which participant sends, and after what pause in ms."""
    return st.lists(
        st.tuples(st.integers(0, count - 1), PAUSES_MS), min_size=1, max_size=max_size
    )


def play(
    network: LossyNetwork,
    sent: Sequence[tuple[int, int]],
    contents: Sequence[bytes] = (b"text",),
) -> None:
    """Let the participants send these contents repeatedly."""
    names = list(network.participants)
    for (who, pause_ms), content in zip(sent, cycle(contents)):
        network.run(pause_ms)
        network.send(names[who], content)


def history_of(frame: Frame) -> list[str]:
    """Return the ids that a frame names."""
    return [entry.message_id for entry in frame.causal_history]
