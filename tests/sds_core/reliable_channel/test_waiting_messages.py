"""What waits to be sent gets its frame when it is sent: history, hints and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    ChaChaEncryption,
    ChunkInfo,
    Dispatch,
    Dispatched,
    Encryption,
    EncryptionError,
    LimitReached,
    Limits,
    RateLimitOptions,
    ReliableChannelCore,
    Restarted,
    Send,
    SendError,
    SendingMessage,
    SendingMessageIrrecoverableError,
    Start,
)
from sds_core.wire import Frame, decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.reliable_channel import (
    OFFLINE,
    ONLINE,
    OPTIONS,
    SHARD,
    SMALL_SEGMENTS,
    of_kind,
    started,
)

QUIET = replace(OPTIONS, sync_min_interval_ms=0)
SEGMENTED = replace(QUIET, segmentation=SMALL_SEGMENTS)
PAYLOAD = bytes(number % 251 for number in range(5 * SMALL_SEGMENTS.share_bytes))
LATER_MS = START_MS + MINUTE

GOLDEN = Path(__file__).parents[2] / "golden" / "snapshots" / "reliable-channel-v1.bin"
"""Of a channel of 0.14.0 with one message under way, and three chunks that wait."""


def frames_of(
    dispatches: Sequence[Dispatch], encryption: Encryption | None = None
) -> list[Frame]:
    """Return the SDS messages in dispatches."""
    payloads = [one.message.payload for one in dispatches]
    return [
        decode(one if encryption is None else encryption.decrypt(one))
        for one in payloads
    ]


def assert_each_names_those_before(
    dispatches: Sequence[Dispatch], encryption: Encryption | None = None
) -> None:
    """Each with its hash, in order."""
    frames = frames_of(dispatches, encryption)
    for count, frame in enumerate(frames):
        assert [
            (one.message_id, one.retrieval_hint) for one in frame.causal_history
        ] == [
            (frames[index].message_id, dispatches[index].message_hash)
            for index in range(count)
        ]


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def encryption(request: pytest.FixtureRequest) -> Encryption | None:
    """None, or a cipher."""
    nonces = iter(range(10**6))
    return (
        ChaChaEncryption(
            bytes(32), "tea", lambda count: next(nonces).to_bytes(count, "big")
        )
        if request.param
        else None
    )


@pytest.mark.rule("rc-hint-computed", "rc-hint-entry", "rc-arch-hints")
def test_chunks_name_each_other_with_hints(encryption: Encryption | None) -> None:
    """A receiver that lacks one can get it from a store by any later one."""
    alice = started(options=SEGMENTED, encryption=encryption)
    dispatches = alice.apply(Send(PAYLOAD), START_MS).dispatches
    assert len(dispatches) == 5
    assert_each_names_those_before(dispatches, encryption)


@pytest.mark.rule("rc-hint-computed", "rc-hint-entry")
def test_messages_sent_offline_name_each_other_with_hints(
    encryption: Encryption | None,
) -> None:
    """They get frames when the node is online, with the time of that."""
    alice = started(options=SEGMENTED, encryption=encryption)
    alice.apply(OFFLINE, START_MS)
    for payload in (b"one", PAYLOAD, b"three"):
        assert alice.apply(Send(payload), START_MS).dispatches == []
    dispatches = alice.apply(ONLINE, LATER_MS).dispatches
    assert len(dispatches) == 7
    assert_each_names_those_before(dispatches, encryption)
    assert [frame.lamport for frame in frames_of(dispatches, encryption)] == sorted(
        frame.lamport or 0 for frame in frames_of(dispatches, encryption)
    )


@pytest.mark.rule("rc-hint-computed", "rc-hint-entry")
def test_messages_beyond_the_rate_limit_name_what_was_sent_before_them() -> None:
    """Also what was received while they waited."""
    limited = replace(
        SEGMENTED,
        rate_limit=RateLimitOptions(
            messages_per_epoch=3, epoch_ms=MINUTE, approached_share=1.0
        ),
        max_retry_attempts=0,
    )
    alice = started(options=limited)
    dispatches = alice.apply(Send(PAYLOAD), START_MS).dispatches
    assert len(dispatches) == 3
    (received,) = started("bob").apply(Send(b"hi"), START_MS).dispatches
    alice.apply(Arrived(received.message, received.message_hash), START_MS + 1)
    later = alice.apply(Advance(), START_MS + MINUTE).dispatches
    assert len(later) == 2
    assert_each_names_those_before(dispatches)
    named = frames_of(later)[-1].causal_history
    assert {one.retrieval_hint for one in named} == {
        *(one.message_hash for one in (*dispatches, later[0], received))
    }


def test_waiting_messages_survive_a_restart() -> None:
    """Of one process, and as a state of another that continues it."""
    alice = started(options=SEGMENTED)
    alice.apply(OFFLINE, START_MS)
    first = alice.apply(Send(b"one"), START_MS).message_id
    second = alice.apply(Send(PAYLOAD), START_MS).message_id
    restored = ReliableChannelCore.restore(
        alice.snapshot(), pubsub_topic=SHARD, options=SEGMENTED
    )
    restored.apply(Restarted(), START_MS + SECOND)
    restored.apply(Start(), START_MS + SECOND)
    output = restored.apply(ONLINE, LATER_MS)
    assert_each_names_those_before(output.dispatches)
    sending = of_kind(output.events, SendingMessage)
    assert sending[0] == SendingMessage(first, ChunkInfo((0,), 1))
    assert sending[-1] == SendingMessage(second, ChunkInfo((0, 1, 2, 3, 4), 5))


def test_state_of_0_14_0_continues() -> None:
    """Its waiting messages were framed already: they go out as they are."""
    restored = ReliableChannelCore.restore(
        GOLDEN.read_bytes(),
        pubsub_topic=SHARD,
        options=replace(SEGMENTED, sync_min_interval_ms=30_000),
    )
    restored.apply(Restarted(), START_MS)
    restored.apply(Start(), START_MS)
    alice_id = restored.apply(Send(b"new"), START_MS).message_id
    output = restored.apply(ONLINE, START_MS + 1)
    frames = frames_of(output.dispatches)
    assert len(frames) == 5
    assert [len(frame.causal_history) for frame in frames] == list(range(5))
    new = frames[-1].causal_history
    hashes = [one.message_hash for one in output.dispatches]
    assert [one.retrieval_hint for one in new] == hashes[:4]
    sending = of_kind(output.events, SendingMessage)
    assert sending[-1] == SendingMessage(alice_id, ChunkInfo((0,), 1))


def test_messages_under_way_at_a_restart_go_before_those_that_wait() -> None:
    """They are framed already, and the others name them."""
    alice = started(options=QUIET)
    (lost,) = alice.apply(Send(b"one"), START_MS).dispatches
    alice.apply(OFFLINE, START_MS)
    alice.apply(Send(b"two"), START_MS)
    alice.apply(Restarted(), START_MS)
    alice.apply(Start(), START_MS)
    again, new = alice.apply(ONLINE, LATER_MS).dispatches
    assert again.message.payload == lost.message.payload
    assert_each_names_those_before([again, new])


def test_message_that_is_no_longer_tracked_is_sent_once() -> None:
    """Without events, as if it had been sent before it was forgotten."""
    options = replace(OPTIONS, limits=Limits(messages=1), max_retry_attempts=3)
    alice = started(options=options)
    alice.apply(OFFLINE, START_MS)
    first = alice.apply(Send(b"one"), START_MS).message_id
    output = alice.apply(Send(b"two"), START_MS)
    assert output.events == [LimitReached("messages", first)]
    sent = alice.apply(ONLINE, START_MS)
    assert len(sent.dispatches) == 2
    assert sent.events == [SendingMessage(output.message_id, ChunkInfo((0,), 1))]
    for dispatch in sent.dispatches:
        alice.apply(Dispatched(dispatch.number), START_MS)
    retried = alice.apply(Advance(), START_MS + OPTIONS.retry_interval_ms)
    assert [one.cause for one in retried.dispatches].count(Cause.RETRY) == 1


class Fails:
    """A cipher that fails at its second frame."""

    def __init__(self) -> None:
        self.calls = 0

    def encrypt(self, plaintext: bytes, /) -> bytes:
        """Return the frame as it is."""
        self.calls += 1
        if self.calls == 2:
            message = "no key"
            raise EncryptionError(message)
        return plaintext

    def decrypt(self, ciphertext: bytes, /) -> bytes:
        """Return it as it is."""
        return ciphertext


@pytest.mark.rule("rc-error-encoding")
def test_chunk_that_cannot_be_encrypted_is_an_error_and_takes_no_budget() -> None:
    """The others are sent."""
    limited = replace(SEGMENTED, rate_limit=RateLimitOptions(messages_per_epoch=4))
    alice = started(options=limited, encryption=Fails())
    output = alice.apply(Send(PAYLOAD), START_MS)
    assert len(output.dispatches) == 4
    (error,) = of_kind(output.events, SendingMessageIrrecoverableError)
    assert error.error is SendError.ENCODING_FAILED
    assert error.chunk_info == ChunkInfo((1,), 5)
