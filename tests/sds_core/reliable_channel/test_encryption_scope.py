"""Encryption of contents inside of SDS, as in logos-delivery, instead of frames."""

from __future__ import annotations

import base64
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    ChaChaEncryption,
    EncryptionError,
    EncryptionScope,
    MessageReceived,
    ReliableChannelOptions,
    RetrievalStrategy,
    Send,
    SendEphemeral,
    SendError,
    SendingMessageIrrecoverableError,
    Start,
    Unusable,
    UnusableMessage,
)
from sds_core.reliable_channel.encryption import KEY_BYTES
from sds_core.wire import decode
from sds_core.wire.segment_header import read_segment_header
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.reliable_channel import (
    CHANNEL,
    OFFLINE,
    ONLINE,
    OPTIONS,
    SHARD,
    SMALL_SEGMENTS,
    channel,
    emitted,
    network,
    only,
    sent,
    started,
)

INSIDE = replace(
    OPTIONS, encryption_scope=EncryptionScope.CONTENT, segmentation=SMALL_SEGMENTS
)
LONG = b"secret " * 200


def cipher(key: int = 0, seed: int = 1) -> ChaChaEncryption:
    """One with nonces by a seed."""
    return ChaChaEncryption(bytes([key]) * KEY_BYTES, CHANNEL, Random(seed).randbytes)


def received(net: object, by: str) -> list[bytes]:
    """Payloads that a participant received."""
    return [one.payload for one in emitted(net, by, MessageReceived)]  # type: ignore[arg-type]


@pytest.mark.rule("rc-security-encryption")
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_contents_are_hidden_and_frames_are_readable(loss: float) -> None:
    """Each segment is encrypted; retries and repairs are the frames of before."""
    net = network(
        "alice", "bob", "carol", options=INSIDE, loss=loss, encryption=cipher()
    )
    net.apply("alice", Send(LONG))
    net.run(10 * MINUTE)
    net.apply("bob", Send(b"short secret"))
    net.run(10 * MINUTE)
    assert received(net, "bob") == [LONG]
    assert received(net, "carol") == [LONG, b"short secret"]
    by_id: dict[str, set[bytes]] = {}
    for one in sent(net, Cause.CONTENT, Cause.RETRY, Cause.REPAIR):
        payload = one.dispatch.message.payload
        frame = decode(payload)
        assert frame.channel_id == CHANNEL
        assert b"secret" not in payload
        assert read_segment_header(frame.content) is None
        by_id.setdefault(frame.message_id, set()).add(payload)
    assert {len(payloads) for payloads in by_id.values()} == {1}


@pytest.mark.parametrize("send", [Send, SendEphemeral])
def test_content_of_another_key_is_unusable(
    send: type[Send] | type[SendEphemeral],
) -> None:
    """SDS has the message all the same: it is not missing, and can be repaired."""
    net = network("alice", options=INSIDE, encryption=cipher())
    for name, encryption in (("bob", cipher(1)), ("carol", cipher(0, seed=3))):
        net.join(name, channel(name, INSIDE, encryption=encryption))
        net.apply(name, Start())
    net.apply("alice", send(b"secret"))
    net.run(5 * SECOND)
    (unusable,) = emitted(net, "bob", UnusableMessage)
    assert unusable.why is Unusable.UNDECRYPTABLE
    assert received(net, "bob") == []
    assert received(net, "carol") == [b"secret"]
    assert net.channel("bob").sync_status == (send is Send, 0, 0)


def test_participant_without_the_key_repairs() -> None:
    """As a server of a group may, which frames encrypted whole do not allow."""
    options = replace(INSIDE, retrieval=RetrievalStrategy.SDS_R, max_retry_attempts=0)
    net = network("alice", "bob", options=options, encryption=cipher())
    server = replace(options, encryption_scope=EncryptionScope.FRAME, segmentation=None)
    net.join("server", channel("server", server))
    net.apply("server", Start())
    net.losses.append(
        lambda one, to: one.by == "alice" and to == "bob" and one.dispatch.number == 1
    )
    net.apply("alice", Send(b"lost"))
    net.run(SECOND)
    net.apply("alice", Send(b"next"))
    net.run(SECOND)
    net.disconnect("alice")
    net.run(10 * MINUTE)
    assert received(net, "bob") == [b"lost", b"next"]
    assert {one.by for one in sent(net, Cause.REPAIR)} == {"server"}


@pytest.mark.parametrize("send", [Send, SendEphemeral])
def test_message_that_cannot_be_encrypted_is_refused(
    send: type[Send] | type[SendEphemeral],
) -> None:
    """Whole, before anything is framed."""
    broken = ChaChaEncryption(bytes(KEY_BYTES), CHANNEL, lambda _: b"")
    alice = started("alice", INSIDE, encryption=broken)
    output = alice.apply(send(b"secret"), START_MS)
    assert only(output, SendingMessageIrrecoverableError).error is (
        SendError.ENCODING_FAILED
    )
    assert output.dispatches == []


def test_replay_gives_the_same_frames() -> None:
    """From the ciphertexts that a journal has."""
    alice = started("alice", INSIDE, encryption=cipher())
    before = alice.snapshot()
    first = alice.apply(Send(LONG), START_MS)
    assert len(first.ciphertexts) == len(first.dispatches) > 1
    again = alice.restore(
        before, pubsub_topic=SHARD, options=INSIDE, encryption=cipher(0, 9)
    )
    second = again.apply(Send(LONG), START_MS, ciphertexts=first.ciphertexts)
    payloads = [one.message.payload for one in first.dispatches]
    assert [one.message.payload for one in second.dispatches] == payloads


class FailingOnce:
    """An encryption whose first call fails."""

    def __init__(self) -> None:
        self._fails = True

    def encrypt(self, plaintext: bytes) -> bytes:
        """Encode, or fail."""
        if self._fails:
            self._fails = False
            raise EncryptionError("the key is locked")
        return b"E" + plaintext

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Decode."""
        return ciphertext[1:]


@pytest.mark.parametrize("is_flawless", [False, True])
def test_replay_fails_where_the_encryption_failed(*, is_flawless: bool) -> None:
    """Otherwise the next ciphertext would belong to another frame."""
    alice = started("alice", OPTIONS, encryption=FailingOnce())
    alice.apply(OFFLINE, START_MS)
    for payload in (b"one", b"two"):
        alice.apply(Send(payload), START_MS)
    before = alice.snapshot()
    first = alice.apply(ONLINE, START_MS)
    cipher_now = cipher() if is_flawless else FailingOnce()
    again = alice.restore(
        before, pubsub_topic=SHARD, options=OPTIONS, encryption=cipher_now
    )
    second = again.apply(ONLINE, START_MS, ciphertexts=first.ciphertexts)
    assert len(first.dispatches) == 1
    assert second.dispatches == first.dispatches
    assert [type(one) for one in second.events] == [type(one) for one in first.events]
    assert again.snapshot() == alice.snapshot()


def test_frames_are_encrypted_by_default() -> None:
    """As in the document."""
    assert ReliableChannelOptions().encryption_scope is EncryptionScope.FRAME


class Longer:
    """An encryption whose ciphertexts are a third longer."""

    def encrypt(self, plaintext: bytes) -> bytes:
        """Encode."""
        return base64.b64encode(plaintext)

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Decode."""
        return base64.b64decode(ciphertext)


def test_chunks_that_encryption_makes_too_long_are_refused_together() -> None:
    """Not all but the last, which is short."""
    options = replace(OPTIONS, encryption_scope=EncryptionScope.CONTENT)
    alice = started("alice", options, encryption=Longer())
    output = alice.apply(Send(bytes(1_048_576)), START_MS)
    assert only(output, SendingMessageIrrecoverableError).error is (
        SendError.SIZE_TOO_LARGE
    )
    assert output.dispatches == []


@pytest.mark.parametrize("overhead_bytes", [ChaChaEncryption.overhead_bytes, 113, 512])
def test_segments_leave_room_for_their_encryption(overhead_bytes: int) -> None:
    """Also where messages are short; ECIES of 26/WAKU2-PAYLOAD adds 113 bytes."""

    class Padded:
        def encrypt(self, plaintext: bytes) -> bytes:
            return bytes(overhead_bytes) + plaintext

        def decrypt(self, ciphertext: bytes) -> bytes:
            return ciphertext[overhead_bytes:]

    options = ReliableChannelOptions(
        encryption_scope=EncryptionScope.CONTENT, max_message_bytes=60 * 1024
    )
    payload = bytes(200_000)
    net = network("alice", "bob", options=options, encryption=Padded())
    net.apply("alice", Send(payload))
    net.run(MINUTE)
    assert received(net, "bob") == [payload]
