"""How a participant's timestamp changes under each profile's rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Acknowledged,
    Evidence,
    Ignored,
    IgnoredReason,
    LamportRule,
    MessageChannel,
    Missing,
    PossiblyAcknowledged,
    Profile,
    SyncReceived,
)
from sds_core.message_channel.lamport import CENTURY_MS
from sds_core.wire import decode
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    hand_over,
    participant,
    receive,
    typed,
)

JS = Profile.js_sds()
NIM = Profile.nim_sds()
START_S = START_MS // 1_000


def greatest(profile: Profile) -> int:
    """The greatest timestamp that is adopted at the start, in the profile's unit."""
    return (START_MS + CENTURY_MS) // profile.lamport_unit_ms


def next_lamport(channel: MessageChannel, now_ms: int = START_MS) -> int | None:
    """The timestamp of a message sent now."""
    return frame_of(channel.send(b"hi", now_ms)).lamport


@pytest.mark.rule("sds-state-1a")
@pytest.mark.parametrize(
    ("profile", "start"), [(SPEC, START_MS + 999), (JS, START_MS + 999), (NIM, START_S)]
)
def test_timestamp_starts_at_the_time_in_the_unit_of_the_profile(
    profile: Profile, start: int
) -> None:
    """Milliseconds, or seconds in nim-sds; the first message has one more."""
    channel = participant(profile=profile, now_ms=START_MS + 999)
    assert channel.lamport == start
    assert next_lamport(channel, START_MS + 999) == start + 1


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (LamportRule.COUNT, [START_MS + 1, START_MS + 2, START_MS + 3, START_MS + 4]),
        (
            LamportRule.FOLLOW_CLOCK,
            [START_MS + 1, START_MS + 700, START_MS + 701, START_MS + 702],
        ),
        (
            LamportRule.TICK,
            [START_MS + 1, START_MS + 701, START_MS + 702, START_MS + 703],
        ),
    ],
)
def test_sending_counts_or_follows_the_clock(
    rule: LamportRule, expected: list[int]
) -> None:
    """Each timestamp is greater than the last, also within a millisecond."""
    alice = participant(profile=replace(SPEC, lamport_rule=rule))
    sent = [
        next_lamport(alice),
        next_lamport(alice, START_MS + 700),
        next_lamport(alice, START_MS + 700),
        frame_of(alice.sync(START_MS + 700)).lamport,
    ]
    assert sent == expected
    assert alice.lamport == expected[-1]


@pytest.mark.parametrize("kind", ["content", "sync"])
@pytest.mark.parametrize(
    ("received", "expected"),
    [(START_S - 50, START_S + 1), (START_S + 50, START_S + 51)],
)
def test_nim_sds_ticks_at_each_reception(
    kind: str, received: int, expected: int
) -> None:
    """To the greater of both plus one, for sync and waiting messages too."""
    frames = FrameFactory(CHANNEL, NIM.dialect)
    channel = participant(profile=NIM)
    frame = {
        "content": frames.content("m", "bob", received, history=["missing"]),
        "sync": frames.sync("bob", received),
    }[kind]
    receive(channel, frame)
    assert channel.lamport == expected


def test_nim_sds_does_not_follow_the_clock_at_reception() -> None:
    """Only received timestamps count, until it sends."""
    frames = FrameFactory(CHANNEL, NIM.dialect)
    channel = participant(profile=NIM)
    receive(channel, frames.sync("bob", 5), now_ms=START_MS + 90_000)
    assert channel.lamport == START_S + 1
    assert next_lamport(channel, START_MS + 90_000) == START_S + 91


def test_nim_sds_does_not_tick_for_a_duplicate() -> None:
    """It is not a reception."""
    frames = FrameFactory(CHANNEL, NIM.dialect)
    channel = participant(profile=NIM)
    receive(channel, frames.content("m", "bob", 5))
    receive(channel, frames.content("m", "bob", 5))
    assert channel.lamport == START_S + 1


@pytest.mark.parametrize("profile", [SPEC, JS])
def test_other_profiles_adopt_only_at_delivery(profile: Profile) -> None:
    """Neither sync nor waiting messages change the timestamp."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    channel = participant(profile=profile)
    receive(
        channel,
        frames.sync("bob", START_MS + 500),
        frames.content("m", "bob", START_MS + 500, history=["missing"]),
    )
    assert channel.lamport == START_MS


@pytest.mark.parametrize("profile", [SPEC, JS, NIM])
def test_timestamp_years_ahead_is_adopted_without_a_limit(profile: Profile) -> None:
    """Adoption is a MUST of the specification."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    channel = participant(profile=profile)
    ahead = channel.lamport + 10 * 365 * 86_400_000 // profile.lamport_unit_ms
    receive(channel, frames.content("m", "bob", ahead))
    # The message after it is ahead of it.
    sent = next_lamport(channel)
    assert sent is not None
    assert sent > ahead


@pytest.mark.rule("sds-event-4")
@pytest.mark.parametrize("profile", [SPEC, JS, NIM])
@pytest.mark.parametrize("lamport", [None, 1 << 63, (1 << 64) - 1])
def test_timestamp_more_than_a_century_ahead_is_never_adopted(
    profile: Profile, lamport: int | None
) -> None:
    """One unit more, and the message is neither delivered nor stored."""
    lamport = lamport or greatest(profile) + 1
    frames = FrameFactory(CHANNEL, profile.dialect)
    channel = participant(profile=profile)
    before = channel.snapshot()
    events = receive(channel, frames.content("m", "eve", lamport))
    detail = f"lamport timestamp {lamport}"
    assert typed(events) == typed([Ignored(IgnoredReason.FAR_FUTURE, "m", detail)])
    assert channel.snapshot() == before


@pytest.mark.parametrize("profile", [SPEC, JS, NIM])
@pytest.mark.parametrize("lamport", [1 << 62, (1 << 64) - 1])
def test_sync_message_from_the_far_future_is_read_without_its_timestamp(
    profile: Profile, lamport: int
) -> None:
    """Its history and filter are still valid."""
    profile = replace(profile, possible_acks_threshold=None)
    frames = FrameFactory(CHANNEL, profile.dialect)
    channel = participant(profile=profile)
    for message_id in "ab":
        channel.send(b"hi", START_MS, message_id=message_id)
    before = channel.lamport
    frame = frames.sync("bob", lamport, message_id="s", history=["a", "x"], holds=["b"])
    assert typed(receive(channel, frame)) == typed(
        [
            SyncReceived("s", "bob"),
            Acknowledged("a", "bob", Evidence.CAUSAL_HISTORY),
            PossiblyAcknowledged("b", "bob", 0),
            Missing("x", b"", "", "s"),
        ]
    )
    assert channel.lamport == before


@pytest.mark.parametrize("profile", [SPEC, JS])
def test_sending_continues_from_the_greatest_adopted_timestamp(
    profile: Profile,
) -> None:
    """Others accept the next message once the clock has moved as far."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    channel = participant(profile=profile)
    receive(channel, frames.content("m", "eve", greatest(profile)))
    assert channel.lamport == greatest(profile)
    step = channel.send(b"hi", START_MS, message_id="next")
    ahead = (frame_of(step).lamport or 0) - greatest(profile)
    assert ahead == 1
    other = participant("other", replace(profile, causal_history_size=0))
    for moved, log in ((ahead - 1, ()), (ahead, ("next",))):
        alone = decode(step.broadcasts[0].value)._replace(causal_history=())
        now_ms = START_MS + moved * profile.lamport_unit_ms
        receive(other, alone, now_ms=now_ms)
        assert other.log == log


@pytest.mark.parametrize(
    ("ahead_s", "followed_s"), [(0, 1), (28, 29), (29, 30), (30, 30), (60, 30), (61, 0)]
)
def test_ticks_follow_half_as_far_ahead_as_frames_are_accepted(
    ahead_s: int, followed_s: int
) -> None:
    """In the profile's unit; beyond the limit the timestamp does not change."""
    frames = FrameFactory(CHANNEL, NIM.dialect)
    channel = participant(profile=replace(NIM, lamport_max_ahead_ms=60_000))
    receive(channel, frames.sync("bob", START_S + ahead_s))
    assert channel.lamport == START_S + followed_s


@pytest.mark.parametrize("profile", [SPEC, JS, NIM])
@pytest.mark.parametrize("pushes", ["content", "sync"])
def test_channel_lives_on_after_a_timestamp_at_the_limit(
    profile: Profile, pushes: str
) -> None:
    """Ten messages a second, each with a tick in nim-sds: others accept all of them."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    alice, bob = participant("alice", profile), participant("bob", profile)
    last = greatest(profile)
    pushed = {
        "content": frames.content("m", "eve", last),
        "sync": frames.sync("eve", last),
    }[pushes]
    for one in (alice, bob):
        receive(one, pushed)
    for number in range(1, 101):
        now_ms = START_MS + 100 * number
        message_id = f"m{number}"
        step = alice.send(b"hi", now_ms, message_id=message_id)
        hand_over(step, bob, now_ms=now_ms)
        assert message_id in bob.log
        hand_over(bob.send(b"hi", now_ms), alice, now_ms=now_ms)
    assert set(alice.log) == set(bob.log)


def test_clock_at_its_reach_still_orders_what_is_sent() -> None:
    """Own messages have different timestamps, each more than the last."""
    frames = FrameFactory(CHANNEL, NIM.dialect)
    channel = participant(profile=NIM)
    receive(channel, frames.content("m", "eve", greatest(NIM)))
    first, second = next_lamport(channel), next_lamport(channel)
    assert first is not None
    assert second == first + 1
    # What came before stays reached, and the clock catches up.
    later_ms = START_MS + 60_000
    receive(channel, frames.content("n", "eve", greatest(NIM)), now_ms=later_ms)
    assert next_lamport(channel, later_ms) == first + 60
