"""A channel of participants, driven at random and looked at after every step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sds_core.message_channel import (
    Acknowledged,
    Cause,
    Delivered,
    EphemeralReceived,
    Event,
    Evidence,
    IrretrievablyLost,
    LogOrder,
    MessageChannel,
    Missing,
    PossiblyAcknowledged,
    Profile,
    Received,
    Sent,
    Step,
    snapshot,
)
from sds_core.wire import Frame, decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.message_channel.lossy_network import (
    LOW,
    ROOMY,
    history_of,
    names_of,
    participant,
)
from tests.support.properties import CAREFUL

pytestmark = pytest.mark.slow

PROFILES = [
    replace(
        profile,
        t_min_ms=SECOND,
        t_max_ms=4 * SECOND,
        repair_sweep_ms=SECOND,
        sync_interval_ms=2 * SECOND,
        lost_after_ms=profile.lost_after_ms and MINUTE,
    )
    for profile in ROOMY + LOW
]
"""With repairs that are over before a retry is due, so that few steps show them."""

UNDER_WAY = 60
"""Transmissions that the network holds; older ones are lost."""

PARTICIPANTS = st.integers(0, 3)
"""An index, taken modulo the number of participants."""

PLACES = st.integers(0, UNDER_WAY - 1)
"""An index, taken modulo the number of transmissions under way."""


def assert_within_limits(state: snapshot.State, profile: Profile) -> None:
    """No buffer has more than its profile allows."""
    assert len(state.log_keys) <= profile.log_limit
    assert len(state.outgoing) <= profile.outgoing_limit
    assert len(state.waiting) <= profile.incoming_limit
    assert len(state.missing) <= profile.missing_limit
    assert len(state.lost) <= profile.missing_limit
    assert len(state.forgotten) <= profile.log_limit
    assert len(state.participants) <= profile.participants_limit
    assert len(state.requests) <= profile.repair_buffer_limit
    assert len(state.responses) <= profile.repair_buffer_limit
    assert len(state.retained) <= profile.repair_retained_limit
    if profile.bloom_rollover_ids is not None:
        assert len(state.bloom[1]) <= profile.bloom_rollover_ids


@dataclass
class Seen:
    """What one participant has said so far.

    Attributes:
        delivered: ids sent or delivered.
        received: ids sent or received.
        counts: how often each kind of event came for each id.
    """

    delivered: set[str] = field(default_factory=set)
    received: set[str] = field(default_factory=set)
    counts: Counter[tuple[type[Event], str]] = field(default_factory=Counter)


ONCE = (Received, Delivered, Missing, IrretrievablyLost, Acknowledged)
"""Said at most once for each id, unless what was said has been pushed out of memory:
`LOW` limits make a participant forget that a message was missing, lost or in its log.
"""


class Channel(RuleBasedStateMachine):
    """Two to four participants over a network that loses, repeats and reorders."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = START_MS
        self.messages: dict[str, Frame] = {}
        self.under_way: list[tuple[int, bytes]] = []

    @initialize(profile=st.sampled_from(PROFILES), count=st.integers(2, 4))
    def start(self, profile: Profile, count: int) -> None:
        """Start the participants."""
        self.profile = profile
        self.randoms = [Random(number) for number in range(count)]
        self.participants = [
            participant(profile, name, random)
            for name, random in zip(names_of(count), self.randoms, strict=True)
        ]
        self.seen = [Seen() for _ in range(count)]

    # What happens.

    @rule(who=PARTICIPANTS)
    def send(self, who: int) -> None:
        """A participant sends a message."""
        who %= len(self.participants)
        self.take(who, self.participants[who].send(b"text", self.now_ms))

    @rule(who=PARTICIPANTS)
    def send_ephemeral(self, who: int) -> None:
        """A participant sends a message that nothing is kept of."""
        who %= len(self.participants)
        one = self.participants[who]
        before = one.snapshot()
        step = one.send_ephemeral(b"text", self.now_ms)
        assert one.snapshot() == before
        self.transmit(who, step)

    @rule(who=PARTICIPANTS)
    def sync(self, who: int) -> None:
        """A participant sends a sync message before its time."""
        who %= len(self.participants)
        self.take(who, self.participants[who].sync(self.now_ms))

    @rule(who=PARTICIPANTS)
    def restart(self, who: int) -> None:
        """A participant goes on from its snapshot."""
        who %= len(self.participants)
        one = self.participants[who]
        again = MessageChannel.restore(
            one.snapshot(), random=self.randoms[who], profile=self.profile
        )
        assert again.snapshot() == one.snapshot()
        assert again.next_deadline_ms == one.next_deadline_ms
        self.participants[who] = again

    @precondition(lambda self: self.under_way)
    @rule(places=st.lists(PLACES, min_size=1, max_size=10))
    def arrive(self, places: list[int]) -> None:
        """Transmissions arrive, in any order."""
        for place in places:
            if self.under_way:
                self.receive(*self.under_way.pop(place % len(self.under_way)))

    @precondition(lambda self: self.under_way)
    @rule(place=PLACES)
    def arrive_twice(self, place: int) -> None:
        """A transmission arrives and is still under way."""
        self.receive(*self.under_way[place % len(self.under_way)])

    @precondition(lambda self: self.under_way)
    @rule(places=st.lists(PLACES, min_size=1, max_size=10))
    def lose(self, places: list[int]) -> None:
        """Transmissions are lost."""
        for place in places:
            if self.under_way:
                self.under_way.pop(place % len(self.under_way))

    @rule(times=st.integers(1, 10))
    def run(self, times: int) -> None:
        """All goes well for a while: everything arrives, and all wake in time."""
        for _ in range(times):
            while self.under_way:
                self.receive(*self.under_way.pop(0))
            self.wake(1)

    @rule(pause_ms=st.sampled_from([1, 100, SECOND, 30 * SECOND, 2 * MINUTE]))
    def wait(self, pause_ms: int) -> None:
        """Time passes, and all do what is due at its end."""
        self.now_ms += pause_ms
        for who, one in enumerate(self.participants):
            self.advance(who, one)

    @rule(times=st.integers(1, 3))
    def wake(self, times: int) -> None:
        """Time passes until something is due, and that is done."""
        for _ in range(times):
            due_ms = min(one.next_deadline_ms for one in self.participants)
            self.now_ms = max(self.now_ms, due_ms)
            for who, one in enumerate(self.participants):
                if one.next_deadline_ms <= self.now_ms:
                    self.advance(who, one)

    def advance(self, who: int, one: MessageChannel) -> None:
        """Let one do what is due, twice."""
        self.take(who, one.advance(self.now_ms))
        assert one.next_deadline_ms > self.now_ms
        assert not any(one.advance(self.now_ms))

    def receive(self, who: int, value: bytes) -> None:
        """Let one receive a frame."""
        frame = decode(value)
        step = self.participants[who].receive(value, self.now_ms)
        named = history_of(frame)
        for event in step.events:
            match event:
                case Acknowledged(evidence=Evidence.CAUSAL_HISTORY):
                    assert event.message_id in named
                    sender = self.seen[self.index_of(event.sender_id)]
                    assert event.message_id in sender.delivered
                case Acknowledged(evidence=Evidence.BLOOM_FILTER):
                    assert self.receivers_of(event.message_id, but=who)
                case PossiblyAcknowledged():
                    assert frame.bloom_filter
                    assert self.index_of(event.sender_id) != who
                case Missing():
                    assert event.message_id in named
                    assert event.message_id in self.messages
        self.take(who, step)

    def take(self, who: int, step: Step) -> None:
        """Note what one participant says, and broadcast what it wants broadcast."""
        one, seen = self.participants[who], self.seen[who]
        for broadcast in step.broadcasts:
            if broadcast.cause is Cause.CONTENT:
                self.messages[broadcast.message_id] = decode(broadcast.value).detached()
        for event in step.events:
            match event:
                case Sent():
                    seen.received.add(event.message_id)
                    seen.delivered.add(event.message_id)
                case Received():
                    seen.received.add(event.message_id)
                case Delivered():
                    assert event.message_id in seen.received
                    assert event.content == self.messages[event.message_id].content
                    seen.delivered.add(event.message_id)
                case Acknowledged():
                    sender = self.messages[event.message_id].sender_id
                    assert sender == one.participant_id
                case EphemeralReceived():
                    assert event.message_id not in one.log
            if isinstance(event, ONCE):
                seen.counts[type(event), event.message_id] += 1
        self.transmit(who, step)

    def transmit(self, who: int, step: Step) -> None:
        """Put broadcasts under way to all others."""
        for broadcast in step.broadcasts:
            for other in range(len(self.participants)):
                if other != who:
                    self.under_way.append((other, broadcast.value))
        del self.under_way[:-UNDER_WAY]

    def index_of(self, name: str) -> int:
        """Which participant has this name."""
        return [one.participant_id for one in self.participants].index(name)

    def receivers_of(self, message_id: str, but: int) -> list[int]:
        """Which participants have received a message."""
        return [
            who
            for who, seen in enumerate(self.seen)
            if who != but and message_id in seen.received
        ]

    # What holds.

    @invariant()
    def buffers_are_within_their_limits(self) -> None:
        """Whatever happens."""
        for one in self.participants:
            assert_within_limits(snapshot.SEAL.unpack(one.snapshot()), self.profile)

    @invariant()
    def log_has_each_id_once_and_in_order(self) -> None:
        """By (timestamp, id) where the profile says so; only what was delivered."""
        for one, seen in zip(self.participants, self.seen, strict=True):
            assert len(set(one.log)) == len(one.log)
            assert seen.delivered >= set(one.log)
            if self.profile.log_order is LogOrder.LAMPORT:
                places = [
                    (self.messages[message_id].lamport or 0, message_id)
                    for message_id in one.log
                ]
                assert places == sorted(places)

    @invariant()
    def an_id_is_in_one_place(self) -> None:
        """Missing, waiting or in the log; unacknowledged or possibly acknowledged."""
        for one in self.participants:
            missing = {entry.message_id for entry in one.missing}
            assert not missing & set(one.waiting)
            assert not missing & set(one.log)
            assert not set(one.waiting) & set(one.log)
            assert not set(one.unacknowledged) & set(one.possibly_acknowledged)

    @invariant()
    def what_waits_waits_for_something(self) -> None:
        """For an id that it names and that is missing or waiting itself."""
        for one in self.participants:
            awaited = {entry.message_id for entry in one.missing} | set(one.waiting)
            for message_id in one.waiting:
                assert awaited & set(history_of(self.messages[message_id]))

    @invariant()
    def unacknowledged_messages_are_our_own(self) -> None:
        """The outgoing buffer has nothing of others."""
        for one in self.participants:
            for message_id in one.unacknowledged + one.possibly_acknowledged:
                assert self.messages[message_id].sender_id == one.participant_id

    @invariant()
    def nothing_is_said_twice(self) -> None:
        """At most one event of a kind for an id; see `ONCE`."""
        for seen in self.seen:
            for (kind, _), count in seen.counts.items():
                if kind is Acknowledged or self.profile in PROFILES[: len(ROOMY)]:
                    assert count == 1


TestChannel = Channel.TestCase
TestChannel.settings = settings(CAREFUL, stateful_step_count=60)
