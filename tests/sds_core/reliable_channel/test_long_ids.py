"""Long ids of participants and messages leave room for every chunk."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from sds_core.message_channel import Cause, MessageChannel
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    Dispatch,
    MessageReceived,
    ReliableChannelCore,
    ReliableChannelOptions,
    SegmentationOptions,
    Send,
    SendError,
    SendingMessage,
    SendingMessageIrrecoverableError,
)
from sds_core.waku import WakuMessage
from sds_core.wire import BloomParameters, decode
from tests.support.frames import SECOND, START_MS
from tests.support.reliable_channel import CHANNEL, OPTIONS, TOPIC, of_kind, started

DEFAULT = ReliableChannelOptions()
FULL = DEFAULT.causal_history_size
MEBIBYTE = bytes(number % 251 for number in range(2**20))
LONGEST = DEFAULT.profile.id_limit

LATER_MS = START_MS + 2 * SECOND
"""What arrived at the start is processed by then."""


def take(to: ReliableChannelCore, dispatches: list[Dispatch]) -> list[object]:
    """Have a channel receive and process messages; returns its events."""
    for one in dispatches:
        to.apply(Arrived(one.message, one.message_hash), LATER_MS)
    return [*to.apply(Advance(), LATER_MS + 2 * SECOND).events]


def say(one: ReliableChannelCore, another: ReliableChannelCore, count: int) -> None:
    """Have a channel send short messages, which another receives."""
    for number in range(count):
        output = one.apply(Send(b"%d" % number), START_MS)
        for dispatch in output.dispatches:
            arrived = Arrived(dispatch.message, dispatch.message_hash)
            another.apply(arrived, START_MS)


@pytest.mark.rule("rc-seg-room", "rc-seg-below-limit", "rc-seg-overhead")
@pytest.mark.parametrize("characters", [52, 53, 64, 66, LONGEST])
@pytest.mark.parametrize("whose", ["own", "other", "both"])
def test_mebibyte_is_sent_whatever_the_length_of_the_ids(
    characters: int, whose: str
) -> None:
    """With a full history of long ids: the history gives way, and stays long."""
    own = started("alice" if whose == "other" else "a" * characters, DEFAULT)
    other = started("bob" if whose == "own" else "b" * characters, DEFAULT)
    if whose != "other":
        say(own, other, FULL if whose == "own" else FULL // 2)
    if whose != "own":
        say(other, own, FULL if whose == "other" else FULL // 2)
    for one in (own, other):
        one.apply(Advance(), LATER_MS)
    output = own.apply(Send(MEBIBYTE), LATER_MS)
    assert of_kind(output.events, SendingMessageIrrecoverableError) == []
    assert of_kind(output.events, SendingMessage)[-1].chunk_info.is_complete
    for dispatch in output.dispatches:
        assert len(dispatch.message.payload) < DEFAULT.max_message_bytes
        named = decode(dispatch.message.payload).causal_history
        assert len(named) > (FULL // 4 if characters == LONGEST else FULL * 3 // 4)
    assert MessageReceived(MEBIBYTE, own.sender_id) in take(other, output.dispatches)


def stranger(name: str) -> MessageChannel:
    """Return a participant that is no reliable channel, and so names its messages."""
    return MessageChannel(
        CHANNEL,
        name,
        now_ms=START_MS,
        random=Random(name),
        profile=replace(DEFAULT.profile, causal_history_size=3),
    )


@pytest.mark.rule("rc-seg-below-limit")
def test_mebibyte_is_sent_beside_the_longest_ids_and_hints() -> None:
    """Of four bytes a character; each chunk still names the one before it."""
    wide = "\U0001fad6"
    own = started(wide * LONGEST, DEFAULT)
    other = stranger("s" + wide * (LONGEST - 1))
    for number in range(FULL):
        message_id = f"{number:03}" + wide * (LONGEST - 3)
        step = other.send(b"tea", START_MS + number, message_id=message_id)
        other.note_retrieval_hint(message_id, bytes(DEFAULT.profile.hint_limit))
        message = WakuMessage(step.broadcasts[0].value, TOPIC, START_MS + number)
        own.apply(Arrived(message), START_MS)
    own.apply(Advance(), LATER_MS)
    output = own.apply(Send(MEBIBYTE), LATER_MS + 10 * SECOND)
    assert of_kind(output.events, SendingMessageIrrecoverableError) == []
    content = [one for one in output.dispatches if one.cause is Cause.CONTENT]
    frames = [decode(one.message.payload) for one in content]
    assert len(frames) == 11
    assert max(len(one.message.payload) for one in output.dispatches) < 150 * 1024
    for before, after in pairwise(frames):
        assert after.causal_history[-1].message_id == before.message_id


@pytest.mark.rule("rc-seg-room", "rc-seg-overhead")
@pytest.mark.parametrize(
    "options",
    [
        replace(DEFAULT, max_message_bytes=80_000),
        replace(
            DEFAULT,
            profile=replace(DEFAULT.profile, bloom=BloomParameters(40_000, 0.001)),
        ),
        replace(
            DEFAULT,
            segmentation=SegmentationOptions(
                segment_bytes=150_000, max_segment_bytes=200_000
            ),
        ),
    ],
    ids=["small messages", "long filter", "long segments"],
)
def test_segments_are_shorter_where_a_frame_holds_less(
    options: ReliableChannelOptions,
) -> None:
    """All are sent, and arrive; none is longer than the network carries."""
    own, other = started("a" * 66, options), started("bob", options)
    output = own.apply(Send(MEBIBYTE), START_MS)
    assert of_kind(output.events, SendingMessageIrrecoverableError) == []
    assert len(output.dispatches) > 6
    for one in output.dispatches:
        assert len(one.message.payload) < options.max_message_bytes
    assert MessageReceived(MEBIBYTE, own.sender_id) in take(other, output.dispatches)


@pytest.mark.rule("rc-error-size")
def test_message_that_no_frame_holds_is_refused_before_anything_is_sent() -> None:
    """Without segmentation; online and offline alike, and the sender may go on."""
    options = replace(OPTIONS, segmentation=None)
    alice = started("a" * 66, options)
    output = alice.apply(Send(bytes(options.max_message_bytes)), START_MS)
    (error,) = output.events
    assert isinstance(error, SendingMessageIrrecoverableError)
    assert error.error is SendError.SIZE_TOO_LARGE
    assert output.dispatches == []
    (dispatch,) = alice.apply(Send(b"tea"), START_MS).dispatches
    assert dispatch.cause is Cause.CONTENT
