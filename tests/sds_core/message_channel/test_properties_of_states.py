"""Properties of states for any traffic: sweeps, restarts and the bytes of frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.message_channel import Broadcast, Cause, MessageChannel, Profile, Step
from sds_core.wire import FrameKind, decode, encode
from tests.support.frames import MINUTE, SECOND, START_MS, FrameFactory
from tests.support.message_channel.lossy_network import (
    HOUR,
    LOW,
    PROFILES,
    ROOMY,
    SPEC,
    LossyNetwork,
    participant,
    play,
)
from tests.support.message_channel.traffic import Traffic, channels, network_of, traffic
from tests.support.properties import CAREFUL

pytestmark = pytest.mark.slow


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
        return self._call(now_ms, lambda one: one.send(content, now_ms))

    def receive(self, value: bytes, now_ms: int) -> Step:
        """Let both receive."""
        return self._call(
            now_ms, lambda one: one.receive(value, now_ms, retrieval_hint=value[:8])
        )

    def advance(self, now_ms: int) -> Step:
        """Do what is due in both."""
        return self._call(now_ms, lambda one: one.advance(now_ms))

    def snapshots(self) -> tuple[bytes, bytes]:
        """The states of both."""
        return self._steady.snapshot(), self._other.snapshot()

    def _call(self, now_ms: int, call: Callable[[MessageChannel], Step]) -> Step:
        if next(self._restarts, False):
            self._other = MessageChannel.restore(
                self._other.snapshot(now_ms),
                random=self._other_random,
                profile=self._profile,
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
