"""Properties of participants for any traffic, loss, delay and restart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.message_channel import (
    Broadcast,
    Cause,
    Delivered,
    IrretrievablyLost,
    MessageChannel,
    MessageIdTaken,
    Profile,
    RepairRequestReceived,
    Sent,
    Step,
    SyncReceived,
)
from sds_core.wire import FrameKind, decode, encode
from tests.support.frames import MINUTE, SECOND, START_MS, FrameFactory
from tests.support.message_channel.lossy_network import (
    DELAYS_MS,
    HOUR,
    JS_SDS,
    LOSSES,
    LOW,
    NAMES_OF_ROOMY,
    NIM_SDS,
    PROFILES,
    ROOMY,
    SPEC,
    LossyNetwork,
    history_of,
    names_of,
    participant,
    play,
    sendings,
)
from tests.support.participants import of_type
from tests.support.properties import CAREFUL

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Traffic:
    """Who sends when, and what becomes of the first transmissions."""

    participants: int
    sent: Sequence[tuple[int, int]]
    losses: Sequence[bool]
    delays_ms: Sequence[int]

    @property
    def names(self) -> list[str]:
        """Of the participants."""
        return names_of(self.participants)


@st.composite
def traffic(draw: st.DrawFn, max_participants: int = 5) -> Traffic:
    """Traffic of two to five participants."""
    participants = draw(st.integers(2, max_participants))
    return Traffic(
        participants, draw(sendings(participants)), draw(LOSSES), draw(DELAYS_MS)
    )


EachStep = Callable[[str, int, Step], None]


def network_of(
    one: Traffic, profile: Profile, each_step: EachStep = lambda *_: None
) -> LossyNetwork:
    """The network that a traffic is for, before anything is sent."""
    return LossyNetwork(
        one.names,
        lambda name, random: participant(profile, name, random),
        one.losses,
        one.delays_ms,
        each_step,
    )


def channels(network: LossyNetwork) -> dict[str, MessageChannel]:
    """The participants, which all are plain ones."""
    found = {}
    for name, one in network.participants.items():
        assert isinstance(one, MessageChannel)
        found[name] = one
    return found


# Logs become equal.


def assert_causally_ordered(network: LossyNetwork, log: Sequence[str]) -> None:
    """Nothing in a log stands before what it depends on."""
    places = {message_id: place for place, message_id in enumerate(log)}
    for message_id, place in places.items():
        for dependency in history_of(network.messages[message_id]):
            assert places.get(dependency, -1) < place


def run_until_equal(network: LossyNetwork, limit_ms: int) -> None:
    """Let time pass until every log has every message, or so long after the last loss.

    Nothing is sent meanwhile but what the participants send of themselves.
    """
    everything = set(network.messages)
    found = channels(network).values()
    checked_ms = network.now_ms
    for now_ms in network.moments(24 * HOUR):
        if now_ms - network.last_loss_ms > limit_ms:
            return
        if now_ms - checked_ms > 5 * SECOND:
            checked_ms = now_ms
            if all(set(channel.log) == everything for channel in found):
                return
    message = "losses went on for a day"
    raise AssertionError(message)


def for_ever(profile: Profile, causal_history_size: int) -> Profile:
    """A profile whose participants keep what may be asked for and never give up.

    Args:
        profile: the profile.
        causal_history_size: how many messages each frame names.
    """
    return replace(
        profile,
        causal_history_size=causal_history_size,
        repair_retention_ms=None,
        lost_after_ms=None,
    )


@CAREFUL
@given(traffic(), st.sampled_from([SPEC, NIM_SDS]))
def test_logs_become_equal_where_every_history_names_all_messages(
    one: Traffic, profile: Profile
) -> None:
    """Any loss leaves a path if messages are kept and named until they have arrived.

    A message has a path to a participant if a holder keeps it and a frame that comes
    through names it. Histories of 10 entries name all of at most 10 messages, and sync
    messages never cease, so each comes through after the last loss. The specification
    asks again; nim-sds does so at the next history. js-waku asks once: see below.
    """
    network = network_of(one, for_ever(profile, 10))
    play(network, one.sent)
    run_until_equal(network, 2 * HOUR)
    logs = {name: channel.log for name, channel in channels(network).items()}
    for log in logs.values():
        assert sorted(log) == sorted(network.messages)
        assert_causally_ordered(network, log)
    if profile is SPEC:
        assert len(set(logs.values())) == 1


@CAREFUL
@given(traffic())
def test_log_has_every_message_named_or_sent_to_its_participant(one: Traffic) -> None:
    """With histories of two, as SDS recommends: whatever was named or brought to it.

    A path is narrower here: an acknowledged message is sent no more, and one below the
    last two of every log is named no more, so that who missed it and every message that
    named it never hears of it. All else arrives in the end; and logs that have the same
    messages have them in the same order.
    """
    network = network_of(one, for_ever(SPEC, 2))
    play(network, one.sent)
    run_until_equal(network, 2 * HOUR)
    orders = []
    for name, channel in channels(network).items():
        settled_ms = network.now_ms - HOUR
        told = {
            message_id
            for message_id, at_ms in network.told_ms[name].items()
            if at_ms < settled_ms
        }
        assert told <= set(channel.log)
        assert_causally_ordered(network, channel.log)
        orders.append(channel.log)
    for log, other in pairwise(orders):
        common = set(log) & set(other)
        assert [one for one in log if one in common] == [
            one for one in other if one in common
        ]


@CAREFUL
@given(traffic())
def test_logs_of_js_sds_become_equal_where_no_request_meets_a_loss(
    one: Traffic,
) -> None:
    """js-waku asks once: that request and its answer must come through.

    A message has a path to a participant if nobody asked for it before the last loss;
    each history names all messages, so that all are told of all. What depends on a
    message without a path may wait for it for ever, and is left out too.
    """
    asked_ms: dict[str, int] = {}

    def keep(_: str, now_ms: int, step: Step) -> None:
        for broadcast in step.broadcasts:
            for entry in decode(broadcast.value).repair_request:
                asked_ms.setdefault(entry.message_id, now_ms)

    network = network_of(one, for_ever(JS_SDS, 200), keep)
    play(network, one.sent)
    run_until_equal(network, 2 * HOUR)
    without_path = {
        asked for asked, at_ms in asked_ms.items() if at_ms <= network.last_loss_ms
    }
    for message_id in sorted(network.messages, key=network.place_of):
        if without_path & set(history_of(network.messages[message_id])):
            without_path.add(message_id)
    logs = {name: channel.log for name, channel in channels(network).items()}
    for log in logs.values():
        assert set(network.messages) - without_path <= set(log)
        assert list(log) == sorted(log, key=network.place_of)
    if not without_path:
        assert len(set(logs.values())) == 1


@CAREFUL
@given(traffic(), st.sampled_from([MINUTE, 10 * MINUTE]))
def test_every_named_message_is_delivered_or_reported_lost(
    one: Traffic, lost_after_ms: int
) -> None:
    """With the profile's limits of time nothing hangs: in the log, or lost and said so.

    Here repairs may come too late: a path would be a request, within the time that
    holders keep a message, for each step of a chain of missing ones.
    """
    lost: dict[str, set[str]] = {name: set() for name in one.names}

    def keep(name: str, _: int, step: Step) -> None:
        lost[name] |= {
            event.message_id
            for event in step.events
            if isinstance(event, IrretrievablyLost)
        }

    network = network_of(one, replace(SPEC, lost_after_ms=lost_after_ms), keep)
    play(network, one.sent)
    run_until_equal(network, HOUR)
    for name, channel in channels(network).items():
        settled_ms = network.now_ms - 2 * lost_after_ms
        told = {
            message_id
            for message_id, at_ms in network.told_ms[name].items()
            if at_ms < settled_ms
        }
        assert told <= set(channel.log) | lost[name]
        assert list(channel.log) == sorted(channel.log, key=network.place_of)


# Deliveries.


@CAREFUL
@given(
    traffic(),
    st.sampled_from([None, 45 * SECOND, MINUTE, 2 * MINUTE]),
    st.integers(1, 3),
)
def test_no_message_is_delivered_before_its_dependencies(
    one: Traffic, lost_after_ms: int | None, causal_history_size: int
) -> None:
    """Each dependency is in the log or was reported lost."""
    there: dict[str, set[str]] = {name: set() for name in one.names}

    def check(name: str, _: int, step: Step) -> None:
        for event in step.events:
            match event:
                case Sent() | IrretrievablyLost():
                    there[name].add(event.message_id)
                case Delivered():
                    frame = network.messages[event.message_id]
                    assert set(history_of(frame)) <= there[name]
                    there[name].add(event.message_id)

    profile = replace(
        SPEC, lost_after_ms=lost_after_ms, causal_history_size=causal_history_size
    )
    network = network_of(one, profile, check)
    play(network, one.sent)
    network.run(5 * MINUTE)


def test_wait_that_ends_does_not_overtake_a_dependency_that_still_waits() -> None:
    """A dependency that came later has its own, later timeout."""
    profile = replace(SPEC, lost_after_ms=MINUTE, causal_history_size=1)
    alice = participant(profile, "alice", Random(0))
    bob = participant(profile, "bob", Random(1))
    first, second, third = (
        alice.send(b"text", START_MS).broadcasts[0] for _ in range(3)
    )
    bob.receive(third.value, START_MS)
    bob.receive(second.value, START_MS + MINUTE - 1)
    events = [
        *bob.advance(START_MS + MINUTE).events,
        *bob.receive(first.value, START_MS + MINUTE + 1).events,
    ]
    assert [one.message_id for one in of_type(events, Delivered)] == [
        first.message_id,
        second.message_id,
        third.message_id,
    ]


def test_message_does_not_wait_for_what_its_own_arrival_released() -> None:
    """It displaces a missing id for which only its dependency waited."""
    bob = participant(replace(NIM_SDS, missing_limit=1), "bob", Random(0))
    frames = FrameFactory(dialect=NIM_SDS.dialect)
    for frame in (
        frames.content("b", "alice", 2, history=["a"]),
        frames.content("d", "alice", 4, history=["b", "c"]),
        frames.content("c", "alice", 3, history=["b"]),
    ):
        bob.receive(encode(frame), START_MS)
    assert bob.log == ("b", "c", "d")
    assert bob.waiting == ()


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_dependency_too_old_for_the_log_is_not_awaited(
    profile: Profile,
) -> None:
    """It arrived, even if the log has no place for it."""
    bob = participant(replace(profile, log_limit=3), "bob", Random(0))
    frames = FrameFactory(dialect=profile.dialect)
    for lamport in (20, 30, 40):
        bob.receive(encode(frames.content(f"m{lamport}", "alice", lamport)), START_MS)
    late = frames.content("late", "alice", 50, history=["m10"])
    bob.receive(encode(late), START_MS)
    bob.receive(encode(frames.content("m10", "alice", 10)), START_MS)
    assert bob.missing == ()
    assert bob.waiting == ()
    assert "late" in bob.log


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_old_sync_message_is_read_with_a_full_log(
    profile: Profile,
) -> None:
    """It needs no place in the log, and may have requests."""
    bob = participant(replace(profile, log_limit=3), "bob", Random(0))
    frames = FrameFactory(dialect=profile.dialect)
    for lamport in (20, 30, 40):
        bob.receive(encode(frames.content(f"m{lamport}", "alice", lamport)), START_MS)
    behind = frames.sync("carol", 10, requests=[("m20", "alice")])
    events = bob.receive(encode(behind), START_MS).events
    assert of_type(events, SyncReceived)
    assert of_type(events, RepairRequestReceived)


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_restored_participant_receives_its_own_lost_message(
    profile: Profile,
) -> None:
    """A snapshot from before the send lacks it, but others build upon it."""
    alice = participant(profile, "alice", Random(0))
    before = alice.snapshot()
    forgotten = alice.send(b"text", START_MS).broadcasts[0]
    bob = participant(profile, "bob", Random(1))
    bob.receive(forgotten.value, START_MS)
    reply = bob.send(b"text", START_MS).broadcasts[0]
    alice = MessageChannel.restore(before, random=Random(0), profile=profile)
    alice.receive(reply.value, START_MS)
    alice.receive(forgotten.value, START_MS)
    assert alice.waiting == ()
    assert reply.message_id in alice.log


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_id_of_a_missing_message_cannot_be_sent(profile: Profile) -> None:
    """js-waku makes ids of content only, so equal messages share one."""
    bob = participant(profile, "bob", Random(0))
    frames = FrameFactory(dialect=profile.dialect)
    later = frames.content("later", "alice", 20, history=["id of the text"])
    bob.receive(encode(later), START_MS)
    before = bob.snapshot()
    with pytest.raises(MessageIdTaken):
        bob.send(b"text", START_MS, message_id="id of the text")
    assert bob.snapshot() == before


def frames_of(sent: Sequence[tuple[int, int]], profile: Profile) -> list[bytes]:
    """The content frames of a conversation of three in which most histories differ."""
    values: list[bytes] = []

    def keep(_: str, __: int, step: Step) -> None:
        for broadcast in step.broadcasts:
            if broadcast.cause is Cause.CONTENT:
                values.append(broadcast.value)

    conversation = Traffic(3, sent, [], [SECOND, 1] * 10)
    play(network_of(conversation, profile, keep), sent)
    return values


@CAREFUL
@given(st.data(), sendings(3, max_size=7), st.sampled_from([SPEC, JS_SDS]))
def test_log_does_not_depend_on_the_order_of_arrival(
    data: st.DataObject, sent: list[tuple[int, int]], profile: Profile
) -> None:
    """It is ordered by (timestamp, message id) for every permutation."""
    values = frames_of(sent, profile)
    receiver = participant(profile, "zoe", Random(0))
    for value in data.draw(st.permutations(values)):
        receiver.receive(value, START_MS)
    frames = [decode(value) for value in values]
    by_place = sorted((frame.lamport, frame.message_id) for frame in frames)
    assert receiver.log == tuple(message_id for _, message_id in by_place)


# Time.


@CAREFUL
@given(traffic(), PROFILES, st.sampled_from([None, MINUTE]))
def test_second_sweep_at_one_time_does_nothing(
    one: Traffic, profile: Profile, lost_after_ms: int | None
) -> None:
    """It returns nothing and changes no state, not even the deadline."""
    network = network_of(one, replace(profile, lost_after_ms=lost_after_ms))
    play(network, one.sent)
    found = channels(network)
    for now_ms in network.moments(5 * MINUTE):
        for channel in found.values():
            for sweep in (
                channel.sweep_incoming,
                channel.sweep_outgoing,
                channel.sweep_repairs,
                channel.advance,
            ):
                network.take(channel.participant_id, sweep(now_ms))
                after = channel.next_deadline_ms, channel.snapshot()
                assert not any(sweep(now_ms))
                assert (channel.next_deadline_ms, channel.snapshot()) == after


class Restarting:
    """A participant, and another that is restarted before some of the calls.

    Both are called alike, and must answer alike.

    Args:
        profile: of both.
        name: of both.
        random: of both.
        restarts: for each of the first calls whether the other is restarted.
    """

    def __init__(
        self, profile: Profile, name: str, random: Random, restarts: Iterable[bool]
    ) -> None:
        self._profile = profile
        self._other_random = Random()
        self._other_random.setstate(random.getstate())
        self._steady = participant(profile, name, random)
        self._other = participant(profile, name, self._other_random)
        self._restarts = iter(restarts)

    @property
    def next_deadline_ms(self) -> int:
        """That of both."""
        assert self._other.next_deadline_ms == self._steady.next_deadline_ms
        return self._steady.next_deadline_ms

    def send(self, content: bytes, now_ms: int) -> Step:
        """Send from both."""
        return self._call(lambda one: one.send(content, now_ms))

    def receive(self, value: bytes, now_ms: int) -> Step:
        """Let both receive."""
        return self._call(
            lambda one: one.receive(value, now_ms, retrieval_hint=value[:8])
        )

    def advance(self, now_ms: int) -> Step:
        """Do what is due in both."""
        return self._call(lambda one: one.advance(now_ms))

    def snapshots(self) -> tuple[bytes, bytes]:
        """The states of both."""
        return self._steady.snapshot(), self._other.snapshot()

    def _call(self, call: Callable[[MessageChannel], Step]) -> Step:
        if next(self._restarts, False):
            self._other = MessageChannel.restore(
                self._other.snapshot(), random=self._other_random, profile=self._profile
            )
        step = call(self._steady)
        assert call(self._other) == step
        return step


@CAREFUL
@given(
    traffic(max_participants=3),
    st.sampled_from(ROOMY + LOW),
    st.lists(st.booleans(), max_size=60),
    st.integers(0, 20 * MINUTE),
)
def test_restart_at_any_call_changes_nothing(
    one: Traffic, profile: Profile, restarts: list[bool], for_ms: int
) -> None:
    """Broadcasts, events, deadlines and snapshot are the same without it."""
    made: list[Restarting] = []

    def make(name: str, random: Random) -> Restarting:
        made.append(Restarting(profile, name, random, restarts))
        return made[-1]

    network = LossyNetwork(one.names, make, one.losses, one.delays_ms)
    play(network, one.sent)
    network.run(for_ms)
    for restarting in made:
        steady, other = restarting.snapshots()
        assert steady == other


def test_deadline_of_a_cancelled_answer_does_not_outlive_a_restart() -> None:
    """Another participant answers the request first."""
    profile = replace(SPEC, sync_interval_ms=HOUR)
    bob = participant(profile, "bob", Random(0))
    frames = FrameFactory()
    held = encode(frames.content("m", "alice", 1))
    bob.receive(held, START_MS)
    asked = frames.sync("carol", 2, requests=[("m", "alice")])
    bob.receive(encode(asked), START_MS)
    bob.receive(held, START_MS + SECOND)
    again = MessageChannel.restore(bob.snapshot(), random=Random(0), profile=profile)
    assert bob.next_deadline_ms == again.next_deadline_ms


# Bytes.


@CAREFUL
@given(
    traffic(max_participants=3),
    PROFILES,
    st.text(min_size=1, max_size=20),
    st.lists(st.text(min_size=1, max_size=20), min_size=3, max_size=3, unique=True),
    st.lists(st.binary(min_size=1), min_size=1),
)
def test_frames_of_participants_round_trip(
    one: Traffic,
    profile: Profile,
    channel_id: str,
    names: list[str],
    contents: list[bytes],
) -> None:
    """Decoding gives the values, and encoding again the same bytes."""
    broadcasts: list[tuple[str, Broadcast]] = []
    network = LossyNetwork(
        names,
        lambda name, random: MessageChannel(
            channel_id, name, now_ms=START_MS, random=random, profile=profile
        ),
        one.losses,
        one.delays_ms,
        lambda name, _, step: broadcasts.extend((name, one) for one in step.broadcasts),
    )
    play(network, one.sent, contents)
    network.run(5 * MINUTE)
    for name, (cause, message_id, value) in broadcasts:
        frame = decode(value)
        assert encode(frame) == value
        assert decode(encode(frame.detached())) == frame
        assert frame.dialect is profile.dialect
        assert (frame.channel_id, frame.message_id) == (channel_id, message_id)
        if cause is Cause.SYNC:
            assert (frame.kind, frame.sender_id) == (FrameKind.SYNC, name)
        else:
            assert frame.kind is FrameKind.CONTENT
            assert frame.content == network.contents[message_id]
            assert cause is Cause.REPAIR or frame.sender_id == name
