"""Python participants and real `@waku/sds` ones understand each other.

Their logs, acknowledgements and hints agree. All in virtual time on one channel: names
that begin with j are js, those that begin with p are Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Acknowledged,
    Cause,
    Delivered,
    EphemeralReceived,
    Evidence,
    Ignored,
    IgnoredReason,
    Missing,
    Profile,
)
from sds_core.message_channel.repair import request_offset_ms, response_offset_ms
from sds_core.wire import decode, encode
from tests.support.interop.channel import Channel, Sending, at_random, lost_to
from tests.support.interop.host import What
from tests.support.interop.square import OpenSquare, Square
from tests.support.interop.terms import (
    EVERYBODY,
    JS,
    JS_SDS,
    LASTING_PROFILES,
    PYTHON,
    REPAIR_MS,
    SECOND_MS,
    SETTLE_MS,
    both_profiles,
    both_ways,
)
from tests.support.participants import LASTING

pytestmark = pytest.mark.node


def talk(channel: Channel, seed: int, messages: int) -> None:
    """Let everybody talk, often before they have heard each other."""
    random = Random(f"{seed} talk")
    for number in range(messages):
        channel.say(random.choice(channel.names), f"line {number} of talk {seed}")
        channel.run(random.randint(1, 3 * SECOND_MS))


def order_of(channel: Channel) -> list[str]:
    """Return the ids of all that was said, in the order that every log must have."""
    return [
        message_id
        for _, message_id in sorted(
            (sending.frame.lamport or 0, sending.frame.message_id)
            for sending in channel.sent(Cause.CONTENT)
        )
    ]


def repairs(
    channel: Channel, askers: Sequence[str], answerers: Sequence[str]
) -> list[Sending]:
    """Return the repairs by these of messages that those asked for, and got."""
    got = {
        (asker, message_id)
        for asker in askers
        for message_id in channel.noted(What.DELIVERED, asker)
    }
    asked = {
        (sending.by, message_id)
        for sending in channel.sendings
        for message_id in sending.requested
    }
    return [
        sending
        for sending in channel.sent(Cause.REPAIR)
        if sending.by in answerers
        and any((asker, sending.frame.message_id) in asked & got for asker in askers)
    ]


def assert_both_read_all(square: Square) -> None:
    """Each library writes every frame anew as the other wrote it, byte for byte."""
    values = [sending.value for sending in square.channel.sendings]
    assert square.js.recode(values) == values
    assert [encode(decode(value)) for value in values] == values


def assert_histories_hold(channel: Channel) -> None:
    """What a history names came before, and the hint leads to its bytes."""
    lamports = {
        sending.frame.message_id: sending.frame.lamport or 0
        for sending in channel.sent(Cause.CONTENT)
    }
    for sending in channel.sendings:
        for entry in sending.frame.causal_history:
            named = entry.message_id
            assert channel.stored(entry.retrieval_hint).frame.message_id == named
            assert lamports[named] < (sending.frame.lamport or 0)


def assert_times_agree(channel: Channel) -> None:
    """What js plans for T_req and T_resp is what this library computes."""
    senders = {
        sending.frame.message_id: sending.frame.sender_id
        for sending in channel.sent(Cause.CONTENT)
    }
    queued = {What.REQUEST_QUEUED: 0, What.ANSWER_QUEUED: 0}
    for at_ms, note in channel.notes:
        if note.due_ms is None:
            continue
        queued[note.what] += 1
        message_id = note.message_id
        if note.what is What.REQUEST_QUEUED:
            offset_ms = request_offset_ms(note.by, message_id, JS_SDS)
        else:
            sender = senders[message_id]
            offset_ms = response_offset_ms(note.by, sender, message_id, JS_SDS)
        assert note.due_ms == at_ms + offset_ms, note
    assert all(queued.values()), queued


@both_profiles
@pytest.mark.parametrize("seed", [1, 2])
def test_without_losses_every_message_is_acknowledged_and_all_logs_are_equal(
    open_square: OpenSquare, seed: int, profile: Profile
) -> None:
    """Hundreds of messages in both directions, without a repair."""
    square = open_square(*EVERYBODY, seed=seed, profile=profile)
    channel = square.channel
    talk(channel, seed, 250)
    channel.run(120 * SECOND_MS)
    expected = order_of(channel)
    assert len(expected) == len(channel.texts) == 250
    for name in EVERYBODY:
        assert channel.log(name) == expected, name
        own = {s.frame.message_id for s in channel.sent(Cause.CONTENT) if s.by == name}
        assert set(channel.noted(What.ACKNOWLEDGED, name)) == own, name
    assert channel.sent(Cause.REPAIR) == []
    assert_both_read_all(square)
    assert_histories_hold(channel)


@pytest.mark.parametrize(
    "profile",
    # With the recommended 2, a message that stands early in the log, as its author had
    # not yet delivered what came before, may be named by nobody.
    [JS_SDS, replace(LASTING, causal_history_size=200)],
    ids=LASTING_PROFILES,
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_losses_all_logs_are_equal(
    open_square: OpenSquare, seed: int, profile: Profile
) -> None:
    """Repairs go all ways, and whoever asks again, as `Profile()`, gets all.

    `@waku/sds` asks once: what that did not bring comes from a store, as in the SDK.
    """
    square = open_square(*EVERYBODY, seed=seed, profile=profile)
    channel = square.channel
    channel.losses.append(at_random(Random(f"{seed} losses"), 0.08))
    talk(channel, seed, 250)
    channel.losses.clear()
    channel.run(REPAIR_MS)
    expected = order_of(channel)
    if profile != JS_SDS:
        assert [channel.log(name) == expected for name in PYTHON] == [True, True]
    for askers, answerers in itertools.product((PYTHON, JS), repeat=2):
        assert repairs(channel, askers, answerers), (askers, answerers)
    # What arrives lets others be delivered, which then are named and found missing.
    while any([channel.fetch_missing(name) for name in EVERYBODY]):
        channel.run(60 * SECOND_MS)
    for name in EVERYBODY:
        assert channel.log(name) == expected, name
    assert_both_read_all(square)
    assert_histories_hold(channel)
    assert_times_agree(channel)


def test_the_same_seed_gives_the_same_frames_at_the_same_times(
    open_square: OpenSquare,
) -> None:
    """Nothing depends on the machine or the time of day."""
    sendings = []
    for _ in range(2):
        channel = open_square(*EVERYBODY, seed=5).channel
        channel.losses.append(at_random(Random(5), 0.1))
        talk(channel, 5, 40)
        channel.run(60 * SECOND_MS)
        sendings.append(channel.sendings)
    assert sendings[0] == sendings[1]


@both_ways
@both_profiles
def test_a_causal_history_acknowledges(
    open_square: OpenSquare, speaker: str, listener: str, profile: Profile
) -> None:
    """Once the receiver sends, the sender has it; nothing is sent again."""
    square = open_square(speaker, listener, profile=profile)
    channel = square.channel
    first = channel.say(speaker, "first")
    channel.run(SETTLE_MS)
    assert channel.noted(What.DELIVERED, listener) == [first]
    assert channel.noted(What.ACKNOWLEDGED, speaker) == []
    channel.say(listener, "second")
    channel.run(SETTLE_MS)
    assert channel.noted(What.ACKNOWLEDGED, speaker) == [first]
    if speaker in PYTHON:
        acknowledged = Acknowledged(first, listener, Evidence.CAUSAL_HISTORY)
        assert acknowledged in square.python.events[speaker]
    channel.run(60 * SECOND_MS)
    assert channel.sent(Cause.RETRY) == []


@both_ways
def test_bloom_filter_possibly_acknowledges(
    open_square: OpenSquare, speaker: str, listener: str
) -> None:
    """With histories of one entry, the first message is only in filters."""
    profile = replace(JS_SDS, causal_history_size=1)
    options = {"causalHistorySize": 1}
    channel = open_square(speaker, listener, profile=profile, options=options).channel
    first = channel.say(speaker, "first")
    second = channel.say(speaker, "second")
    channel.run(SETTLE_MS)
    channel.say(listener, "third")
    channel.run(SETTLE_MS)
    assert channel.noted(What.POSSIBLY_ACKNOWLEDGED, speaker) == [first]
    assert channel.noted(What.ACKNOWLEDGED, speaker)[0] == second


@both_ways
def test_unacknowledged_message_is_broadcast_again_unchanged(
    open_square: OpenSquare, speaker: str, listener: str
) -> None:
    """The receiver delivers the retry, and the sender stops."""
    channel = open_square(speaker, listener).channel
    channel.losses.append(lost_to(listener, "first", Cause.CONTENT))
    message_id = channel.say(speaker, "first")
    channel.run(120 * SECOND_MS)
    assert channel.log(listener) == [message_id]
    assert channel.noted(What.ACKNOWLEDGED, speaker) == [message_id]
    retries = channel.sent(Cause.RETRY)
    assert retries
    assert {one.value for one in retries} == {channel.sent(Cause.CONTENT)[0].value}


def test_ephemeral_messages_take_part_in_nothing(open_square: OpenSquare) -> None:
    """This library delivers them; `@waku/sds` silently drops them."""
    square = open_square("pat", "jon")
    channel = square.channel
    channel.say_ephemeral("jon", "jon is typing")
    channel.say_ephemeral("pat", "pat is typing")
    channel.run(SETTLE_MS)
    [from_jon, _] = channel.sent(Cause.EPHEMERAL)
    assert [
        event
        for event in square.python.events["pat"]
        if isinstance(event, EphemeralReceived)
    ] == [EphemeralReceived(from_jon.frame.message_id, "jon", b"jon is typing")]
    said = channel.say("pat", "said")
    channel.run(SETTLE_MS)
    assert channel.noted(What.DELIVERED, "jon") == [said]
    assert channel.log("jon") == channel.log("pat") == [said]
    assert_both_read_all(square)


def test_identical_payload_of_js_is_delivered_once(
    open_square: OpenSquare,
) -> None:
    """`@waku/sds` hashes the payload to the id, so histories name themselves."""
    square = open_square("pat", "jon")
    channel = square.channel
    once = channel.say("jon", "ok")
    channel.run(SETTLE_MS)
    channel.say("pat", "what?")
    channel.run(SETTLE_MS)
    assert channel.noted(What.ACKNOWLEDGED, "jon") == [once]
    assert channel.say("jon", "ok") == once
    again = channel.sendings[-1].frame
    assert once in [entry.message_id for entry in again.causal_history]
    channel.run(SETTLE_MS)
    events = square.python.events["pat"]
    assert [one.content for one in events if isinstance(one, Delivered)] == [b"ok"]
    assert Ignored(IgnoredReason.DUPLICATE, once) in events
    assert not any(isinstance(one, Missing) for one in events)
    assert channel.log("pat") == channel.log("jon")


def test_retrieval_hints_of_js_reach_the_application(open_square: OpenSquare) -> None:
    """A missing message can be fetched by the Waku hash in the js history."""
    square = open_square("pat", "jon", "jen")
    channel = square.channel
    channel.losses.append(lost_to("pat", "first", Cause.CONTENT, Cause.RETRY))
    first = channel.say("jon", "first")
    channel.run(SETTLE_MS)
    second = channel.say("jen", "second")
    channel.run(SETTLE_MS)
    [missing] = [
        event for event in square.python.events["pat"] if isinstance(event, Missing)
    ]
    assert (missing.message_id, missing.sender_id) == (first, "jon")
    assert missing.named_by == second
    assert channel.stored(missing.retrieval_hint) == channel.sendings[0]
