"""Lifecycle, isolation, order, encryption and the rate limit of whole channels."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest

from sds_core.message_channel import Cause, MessageChannel
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    ChaChaEncryption,
    ConnectionChanged,
    Dispatched,
    DropReason,
    EphemeralMessageDropped,
    EventName,
    Input,
    IrretrievableMessage,
    MessageAcknowledged,
    MessageReceived,
    NotStarted,
    RateLimitOptions,
    RateLimitReached,
    ReliableChannelCore,
    ReliableChannelOptions,
    Restarted,
    RetrievalStrategy,
    Send,
    SendEphemeral,
    SendError,
    SendingMessageIrrecoverableError,
    Start,
    StateError,
    Stop,
    Unusable,
    UnusableMessage,
)
from sds_core.reliable_channel.encryption import KEY_BYTES, BadNonce
from sds_core.waku import RELIABLE_CHANNEL_META, WakuMessage
from sds_core.wire import UndecodableFrame, decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.reliable_channel import (
    CHANNEL,
    OFFLINE,
    ONLINE,
    OPTIONS,
    PROFILE,
    SHARD,
    SMALL_SEGMENTS,
    TOPIC,
    causes,
    channel,
    emitted,
    network,
    of_kind,
    only,
    sent,
    started,
)

NO_SYNC = replace(OPTIONS, sync_min_interval_ms=0)


# -- lifecycle


@pytest.mark.rule("rc-start", "rc-is-started", "rc-auto-start-off")
@pytest.mark.parametrize("kind", [Send, SendEphemeral])
def test_channel_that_is_not_started_sends_nothing(
    kind: type[Send] | type[SendEphemeral],
) -> None:
    """The error names the channel, and says what to do."""
    alice = channel()
    assert not alice.is_started
    assert alice.next_deadline_ms == float("inf")
    with pytest.raises(NotStarted, match=r"'tea' has not been started: call start\(\)"):
        alice.apply(kind(b"tea"), START_MS)


@pytest.mark.rule("rc-start", "rc-stop", "rc-is-started")
def test_stopped_channel_does_nothing_until_it_is_started_again() -> None:
    """No sync, retry or query, and nothing is received."""
    net = network("alice", "bob")
    net.apply("alice", Send(b"tea"))
    for name in ("alice", "bob"):
        net.apply(name, Stop())
        assert not net.channel(name).is_started
    before = len(sent(net))
    net.run(60 * MINUTE)
    assert len(sent(net)) == before
    assert emitted(net, "bob", MessageReceived) == []
    for name in ("alice", "bob"):
        net.apply(name, Start())
        net.connect(name)
    net.run(MINUTE)
    assert len(emitted(net, "bob", MessageReceived)) == 1


def test_second_start_changes_nothing() -> None:
    """Timers go on."""
    alice = started()
    deadline_ms = alice.next_deadline_ms
    alice.apply(Start(), START_MS)
    assert alice.next_deadline_ms == deadline_ms


def test_time_that_goes_back_counts_as_the_last() -> None:
    """A clock that is set back stops nothing and raises nothing."""
    alice = started()
    alice.apply(Send(b"one"), START_MS + MINUTE)
    (dispatch,) = alice.apply(Send(b"two"), START_MS).dispatches
    assert dispatch.message.timestamp_ns == (START_MS + MINUTE) * 1_000_000


# -- isolation and order


def frame_of(channel_id: str, sender_id: str = "mallory") -> bytes:
    """Return a content frame."""
    speaker = MessageChannel(
        channel_id, sender_id, now_ms=START_MS, random=Random(1), profile=PROFILE
    )
    return speaker.send(b"tea", START_MS).broadcasts[0].value


@pytest.mark.rule(
    "rc-channel-isolation",
    "rc-channel-id-same",
    "rc-type-channel-id",
    "rc-create-channel-id",
)
def test_messages_of_other_channels_have_no_effect() -> None:
    """Of another id, and of another content topic."""
    bob = started("bob", NO_SYNC)
    frame = frame_of("coffee")
    assert bob.apply(Arrived(WakuMessage(frame, TOPIC)), START_MS).events == []
    other = Arrived(WakuMessage(frame_of(CHANNEL), "/kettle/1/coffee/proto"))
    assert bob.apply(other, START_MS + MINUTE).events == []
    own = Arrived(WakuMessage(frame_of(CHANNEL), TOPIC))
    received = only(bob.apply(own, START_MS + 2 * MINUTE), MessageReceived)
    assert received == MessageReceived(b"tea", "mallory")


@pytest.mark.rule("rc-content-topic")
def test_messages_of_other_content_topics_have_no_effect() -> None:
    """Even of the same channel."""
    bob = started("bob")
    other = Arrived(WakuMessage(frame_of(CHANNEL), "/kettle/1/pot/proto"))
    assert bob.apply(other, START_MS).events == []
    own = Arrived(WakuMessage(frame_of(CHANNEL), TOPIC))
    assert only(bob.apply(own, START_MS + SECOND), MessageReceived).payload == b"tea"


@pytest.mark.rule(
    "rc-own-ack",
    "rc-sender-id-unique",
    "rc-type-sender-id",
    "rc-sender-id-kept",
    "rc-create-sender-id",
)
def test_own_frames_acknowledge_nothing() -> None:
    """Although the network brings them back."""
    alice = started("alice", NO_SYNC)
    (first,) = alice.apply(Send(b"one"), START_MS).dispatches
    (second,) = alice.apply(Send(b"two"), START_MS).dispatches
    for number, one in enumerate((first, second)):
        echo = Arrived(one.message, one.message_hash)
        assert alice.apply(echo, START_MS + number * MINUTE + 1).events == []


def test_bytes_that_are_no_frame_are_reported() -> None:
    """They are counted, and nothing else happens."""
    bob = started("bob", NO_SYNC)
    output = bob.apply(Arrived(WakuMessage(b"\xff\xff", TOPIC)), START_MS)
    assert only(output, UnusableMessage).why is Unusable.BAD_FRAME


@pytest.mark.rule("rc-order", "rc-arch-order", "rc-arch-buffers")
@pytest.mark.parametrize("seed", range(3))
def test_messages_are_received_after_what_they_answer(seed: int) -> None:
    """On a network with a tenth of losses, also by retries and repairs."""
    net = network("alice", "bob", "carol", loss=0.1, seed=seed)
    said = []
    for number in range(30):
        name = ("alice", "bob")[number % 2]
        payload = b"%d of %s" % (number, name.encode())
        said.append(payload)
        net.apply(name, Send(payload))
        net.run(2 * SECOND)
    net.run(20 * MINUTE)
    received = [one.payload for one in emitted(net, "carol", MessageReceived)]
    assert sorted(received) == sorted(said)
    for sender in (b"alice", b"bob"):
        own = [one for one in received if one.endswith(sender)]
        assert own == [one for one in said if one.endswith(sender)]


# -- encryption


def cipher(key: bytes = bytes(KEY_BYTES)) -> ChaChaEncryption:
    """Return a cipher for the channel."""
    return ChaChaEncryption(key, CHANNEL, os.urandom)


@pytest.mark.rule(
    "rc-security-encryption", "rc-create-decrypt", "rc-encryption-one-layer"
)
def test_all_frames_are_encrypted() -> None:
    """Content, sync, retry and ephemeral ones: nobody else can read any."""
    net = network("alice", "bob", encryption=cipher())
    net.apply("alice", Send(b"tea"))
    net.apply("alice", SendEphemeral(b"typing"))
    net.run(2 * MINUTE)
    assert len(emitted(net, "bob", MessageReceived)) == 2
    assert {one.dispatch.cause for one in sent(net)} >= {
        Cause.CONTENT,
        Cause.EPHEMERAL,
        Cause.SYNC,
    }
    for one in sent(net):
        with pytest.raises(UndecodableFrame):
            decode(one.dispatch.message.payload)


def test_message_under_another_key_is_reported() -> None:
    """It is not guessed what it is."""
    (dispatch,) = (
        started("alice", encryption=cipher(b"k" * KEY_BYTES))
        .apply(Send(b"tea"), START_MS)
        .dispatches
    )
    bob = started("bob", encryption=cipher())
    output = bob.apply(Arrived(dispatch.message, dispatch.message_hash), START_MS)
    assert only(output, UnusableMessage).why is Unusable.UNDECRYPTABLE


class NoCipher:
    """A cipher that refuses everything, as one whose key is gone."""

    def encrypt(self, plaintext: bytes, /) -> bytes:
        """Refuse."""
        raise BadNonce(len(plaintext))

    def decrypt(self, ciphertext: bytes, /) -> bytes:
        """Refuse."""
        raise BadNonce(len(ciphertext))


@pytest.mark.rule("rc-error-encoding")
@pytest.mark.parametrize("kind", [Send, SendEphemeral])
def test_frame_that_cannot_be_encrypted_is_an_irrecoverable_error(
    kind: type[Send] | type[SendEphemeral],
) -> None:
    """It is not sent in the clear, nor tried again."""
    alice = started(encryption=NoCipher())
    output = alice.apply(kind(b"tea"), START_MS)
    error = only(output, SendingMessageIrrecoverableError)
    assert error.error is SendError.ENCODING_FAILED
    assert error.message_id == output.message_id
    assert output.dispatches == []
    assert causes(alice, 20 * MINUTE) == []


# -- rate limit

FIVE = RateLimitOptions(messages_per_epoch=5, epoch_ms=10 * MINUTE)
LIMITED = replace(NO_SYNC, rate_limit=FIVE, segmentation=SMALL_SEGMENTS)
SHARE = SMALL_SEGMENTS.share_bytes


@pytest.mark.rule("rc-rate-queued", "rc-rate-events", "rc-rate-segments")
@pytest.mark.rule("rc-seg-rate", "rc-seg-epochs")
def test_segments_beyond_the_budget_wait_for_the_next_epoch() -> None:
    """Seven segments take two epochs of five; the wait is an event."""
    net = network("alice", "bob", options=LIMITED)
    payload = os.urandom(7 * SHARE)
    net.apply("alice", Send(payload))
    assert len(sent(net)) == 5
    assert emitted(net, "alice", RateLimitReached) == [RateLimitReached(2)]
    net.run(5 * SECOND)
    assert emitted(net, "bob", MessageReceived) == []
    net.run(10 * MINUTE)
    epochs = {one.at_ms // FIVE.epoch_ms for one in sent(net, Cause.CONTENT)}
    assert len(epochs) == 2
    assert emitted(net, "bob", MessageReceived) == [MessageReceived(payload, "alice")]


@pytest.mark.rule("rc-rate-ephemeral", "rc-ephemeral-drop", "rc-events-dropped")
@pytest.mark.rule(
    "rc-ephemeral-rate",
    "rc-ephemeral-threshold",
    "rc-ephemeral-first",
    "rc-send-ephemeral-drop",
    "rc-type-drop-reason",
    "rc-rate-threshold",
)
def test_ephemeral_messages_are_dropped_near_the_limit() -> None:
    """From 90 % on as approached, and at the limit as reached; never queued."""
    limit = RateLimitOptions(messages_per_epoch=10)
    alice = started(options=replace(NO_SYNC, rate_limit=limit))
    for number in range(9):
        assert alice.apply(SendEphemeral(b"typing"), START_MS).dispatches, number
    output = alice.apply(SendEphemeral(b"typing"), START_MS)
    assert only(output, EphemeralMessageDropped) == EphemeralMessageDropped(
        output.message_id, DropReason.RATE_LIMIT_APPROACHED
    )
    assert alice.apply(Send(b"tea"), START_MS).dispatches
    output = alice.apply(SendEphemeral(b"typing"), START_MS)
    dropped = only(output, EphemeralMessageDropped)
    assert dropped.reason is DropReason.RATE_LIMIT_REACHED
    # Never queued: the next epoch sends nothing.
    next_ms = START_MS + limit.epoch_ms
    assert alice.apply(Advance(), next_ms).dispatches == []


@pytest.mark.rule("rc-rate-retries", "rc-seg-retries")
def test_retries_wait_when_the_limit_is_approached() -> None:
    """New content goes first; the retry comes with the next epoch."""
    limit = RateLimitOptions(messages_per_epoch=4, approached_share=0.5)
    net = network("alice", options=replace(NO_SYNC, rate_limit=limit))
    for payload in (b"one", b"two"):
        net.apply("alice", Send(payload))
    net.run(MINUTE)
    assert sent(net, Cause.RETRY) == []
    net.apply("alice", Send(b"three"))
    assert len(sent(net, Cause.CONTENT)) == 3
    net.run(limit.epoch_ms)
    first = sent(net, Cause.RETRY)[0]
    assert first.at_ms % limit.epoch_ms == 0


@pytest.mark.rule("rc-retry-stop-ack")
@pytest.mark.parametrize("is_acknowledged", [True, False])
def test_acknowledged_message_is_not_retried_from_the_queue(
    is_acknowledged: bool,
) -> None:
    """The retry that waits for budget is withdrawn."""
    limit = RateLimitOptions(messages_per_epoch=1)
    alice = started("alice", replace(NO_SYNC, rate_limit=limit))
    (first,) = alice.apply(Send(b"tea"), START_MS).dispatches
    alice.apply(Dispatched(first.number), START_MS)
    assert causes(alice, 40 * SECOND) == []
    if is_acknowledged:
        bob = started("bob", NO_SYNC)
        bob.apply(Arrived(first.message, first.message_hash), START_MS)
        (answer,) = bob.apply(Send(b"thanks"), START_MS + SECOND).dispatches
        arrived = Arrived(answer.message, answer.message_hash)
        events = alice.apply(arrived, START_MS + 41 * SECOND).events
        assert of_kind(events, MessageAcknowledged)
    found = causes(alice, limit.epoch_ms, START_MS + 41 * SECOND)
    assert found == ([] if is_acknowledged else [Cause.RETRY])


def test_sync_near_the_limit_is_left_out() -> None:
    """In the queue it would be out of date."""
    limit = RateLimitOptions(messages_per_epoch=1)
    alice = started(options=replace(OPTIONS, rate_limit=limit, max_retry_attempts=0))
    alice.apply(Send(b"tea"), START_MS)
    until_ms = limit.epoch_ms - START_MS % limit.epoch_ms
    assert causes(alice, until_ms - 1) == []


# -- options and events


@pytest.mark.rule(
    "rc-type-options",
    "rc-default-auto-start",
    "rc-sds-config-1a",
    "rc-sds-config-1b",
    "rc-sds-config-1c",
)
@pytest.mark.rule(
    "rc-default-sync",
    "rc-default-retry-interval",
    "rc-default-max-retry",
    "rc-default-retrieve",
    "rc-default-sweep",
    "rc-default-query-on-connect",
    "rc-default-process",
    "rc-timeout-lost",
)
@pytest.mark.rule(
    "rc-default-history",
    "rc-default-acks",
    "rc-sds-default-capacity",
    "rc-sds-default-rate",
    "rc-sds-default-history",
    "rc-sds-default-threshold",
)
def test_defaults_are_those_of_the_document() -> None:
    """Each field of its table, and the configuration of SDS."""
    given = ReliableChannelOptions()
    first = {one.name: getattr(given, one.name) for one in fields(given)[:11]}
    assert first == {
        "sync_min_interval_ms": 30_000,
        "retry_interval_ms": 30_000,
        "max_retry_attempts": 10,
        "retrieve_frequency_ms": 10_000,
        "sweep_in_buf_interval_ms": 5_000,
        "query_on_connect": True,
        "auto_start": True,
        "process_task_min_elapse_ms": 1_000,
        "causal_history_size": 200,
        "timeout_for_lost_messages_ms": None,
        "possible_acks_threshold": 2,
    }
    profile = given.participant_profile()
    assert profile.causal_history_size == 200
    assert profile.possible_acks_threshold == 2
    assert profile.bloom.capacity == 10_000
    assert profile.bloom.error_rate == 0.001


@pytest.mark.parametrize(
    "option",
    [
        "sync_min_interval_ms",
        "retry_interval_ms",
        "max_retry_attempts",
        "retrieve_frequency_ms",
        "sweep_in_buf_interval_ms",
        "process_task_min_elapse_ms",
        "causal_history_size",
        "timeout_for_lost_messages_ms",
        "possible_acks_threshold",
        "query_on_connect_after_ms",
        "query_on_connect_range_ms",
    ],
)
def test_negative_option_is_refused(option: str) -> None:
    """With its name and value."""
    with pytest.raises(ValueError, match=f"{option} is -1"):
        ReliableChannelOptions(**{option: -1})  # type: ignore[arg-type]


def test_published_api_is_a_named_set_of_options() -> None:
    """LIP-173: sooner retries, fewer of them, and a history of two."""
    given = ReliableChannelOptions.lip_173()
    assert (given.retry_interval_ms, given.max_retry_attempts) == (5_000, 5)
    assert given.causal_history_size == 2
    assert given.rate_limit is None
    assert given.meta == b"RELIABLE-CHANNEL-API/1"


@pytest.mark.parametrize("meta", [b"", RELIABLE_CHANNEL_META])
def test_every_message_has_the_meta_of_the_options(meta: bytes) -> None:
    """Ephemeral ones, retries, repairs and sync messages too; its hash covers it."""
    options = replace(OPTIONS, meta=meta, query_on_connect=False)
    options = replace(options, retrieval=RetrievalStrategy.SDS_R)
    net = network("alice", "bob", "carol", options=options, loss=0.3)
    for number in range(10):
        net.apply(("alice", "carol")[number % 2], Send(b"%d" % number))
        net.run(5_000)
    net.apply("alice", SendEphemeral(b"now"))
    net.run(600_000)
    dispatches = [one.dispatch for one in sent(net)]
    assert {one.cause for one in dispatches} == set(Cause)
    assert {one.message.meta for one in dispatches} == {meta}
    assert all(one.message_hash == one.message.hash_on(SHARD) for one in dispatches)


def test_messages_of_any_meta_are_read() -> None:
    """js-waku sets none."""
    net = network("alice")
    options = replace(OPTIONS, meta=RELIABLE_CHANNEL_META)
    net.join("bob", channel("bob", options))
    net.apply("bob", Start())
    for name in ("alice", "bob"):
        net.apply(name, Send(name.encode()))
    net.run(5_000)
    assert [one.payload for one in emitted(net, "bob", MessageReceived)] == [b"alice"]
    assert [one.payload for one in emitted(net, "alice", MessageReceived)] == [b"bob"]


def test_meta_that_is_too_long_is_refused() -> None:
    """Nodes would drop the messages (14/WAKU2-MESSAGE)."""
    ReliableChannelOptions(meta=bytes(64))
    with pytest.raises(
        ValueError, match="meta has 65 bytes, but at most 64 are allowed"
    ):
        ReliableChannelOptions(meta=bytes(65))


@pytest.mark.rule("rc-arch-events", "rc-events")
def test_names_of_events_are_those_of_the_document() -> None:
    """As written there."""
    assert list(EventName)[:8] == [
        "sending-message",
        "message-sent",
        "message-possibly-acknowledged",
        "message-acknowledged",
        "sending-message-irrecoverable-error",
        "message-received",
        "irretrievable-message",
        "ephemeral-message-dropped",
    ]


# -- state


@pytest.mark.rule("rc-send", "rc-rate-queued")
def test_restored_channel_continues_as_the_first_one() -> None:
    """The same inputs have the same outputs, in the middle of everything."""
    options = replace(OPTIONS, segmentation=SMALL_SEGMENTS)
    net = network("alice", "bob", options=options)
    net.losses.append(lambda one, name: name == "bob" and one.dispatch.number % 3 == 0)
    for number in range(20):
        net.apply("alice", Send(bytes([number]) * (1 + 150 * number)))
        net.run(700)
    bob = net.channel("bob")
    again = ReliableChannelCore.restore(
        bob.snapshot(), pubsub_topic=SHARD, options=options
    )
    assert again.is_started
    assert again.missing == bob.missing
    assert again.next_deadline_ms == bob.next_deadline_ms
    later_ms = net.now_ms + SECOND
    inputs: list[Input] = [Send(bytes(500))]
    inputs += [Arrived(one.dispatch.message, b"") for one in sent(net)]
    inputs += [Advance()] * 20
    for number, event in enumerate(inputs):
        at_ms = later_ms + 1_500 * number
        assert bob.apply(event, at_ms) == again.apply(event, at_ms), event
    assert bob.snapshot() == again.snapshot()


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "the data is empty"),
        (b"\x63", "version 99"),
        (b"\x01\0\0\0\1", "checksum"),
    ],
)
def test_unreadable_state_is_refused(blob: bytes, message: str) -> None:
    """Empty, of a later version, or damaged."""
    with pytest.raises(StateError, match=message):
        ReliableChannelCore.restore(blob, pubsub_topic=SHARD)


@pytest.mark.rule("rc-send")
def test_restored_channel_sends_again_what_nobody_acknowledged() -> None:
    """At the time that was planned before."""
    alice = started(options=NO_SYNC)
    (dispatch,) = alice.apply(Send(b"tea"), START_MS).dispatches
    alice.apply(Dispatched(dispatch.number), START_MS)
    again = ReliableChannelCore.restore(
        alice.snapshot(), pubsub_topic=SHARD, options=NO_SYNC
    )
    at_ms = START_MS + NO_SYNC.retry_interval_ms
    assert again.apply(Advance(), at_ms - 1).dispatches == []
    (retry,) = again.apply(Advance(), at_ms).dispatches
    assert retry.message.payload == dispatch.message.payload


@pytest.mark.rule("rc-send")
def test_restart_sends_again_what_was_under_way() -> None:
    """Nobody knows whether the network got it."""
    alice = started(options=NO_SYNC)
    (dispatch,) = alice.apply(Send(b"tea"), START_MS).dispatches
    alice.apply(Restarted(), START_MS + SECOND)
    assert not alice.is_started
    alice.apply(Start(), START_MS + SECOND)
    (again,) = alice.apply(ONLINE, START_MS + SECOND).dispatches
    assert again.message.payload == dispatch.message.payload
    assert again.number > dispatch.number


@pytest.mark.rule("rc-retry-interval")
def test_clock_that_was_ahead_before_a_restart_delays_nothing() -> None:
    """What is sent, sent again and received has the right time."""
    alice = started(options=NO_SYNC, has_store=True)
    (first,) = alice.apply(Send(b"tea"), START_MS).dispatches
    alice.apply(Dispatched(first.number), START_MS)
    alice.apply(Arrived(WakuMessage(frame_of(CHANNEL, "bob"), TOPIC)), START_MS)
    now_ms = START_MS - 60 * MINUTE
    alice.apply(Restarted(), now_ms)
    alice.apply(Start(), now_ms)
    alice.apply(ONLINE, now_ms)
    arrived = Arrived(WakuMessage(frame_of(CHANNEL), TOPIC))
    alice.apply(arrived, now_ms)
    due_ms = now_ms + NO_SYNC.process_task_min_elapse_ms
    assert alice.next_deadline_ms == due_ms
    assert only(alice.apply(Advance(), due_ms), MessageReceived).payload == b"tea"
    retry_ms = now_ms + NO_SYNC.retry_interval_ms
    assert alice.next_deadline_ms <= retry_ms
    (retry,) = alice.apply(Advance(), retry_ms).dispatches
    assert retry.message.payload == first.message.payload
    assert retry.message.timestamp_ns == retry_ms * 1_000_000


@pytest.mark.rule("rc-seg-partial", "rc-seg-timeout")
def test_incomplete_payload_survives_a_restart() -> None:
    """Its wait begins again: no segment could arrive while the process was off."""
    options = replace(LIMITED, rate_limit=None)
    alice, bob = started("alice", options), started("bob", options)
    chunks = alice.apply(Send(bytes(3 * SHARE)), START_MS).dispatches
    for index, one in enumerate(chunks[:2]):
        bob.apply(Arrived(one.message, one.message_hash), START_MS + index * MINUTE)
    bob = type(bob).restore(bob.snapshot(), pubsub_topic="", options=options)
    late_ms = START_MS + 10 * SMALL_SEGMENTS.idle_timeout_ms
    bob.apply(Restarted(), late_ms)
    bob.apply(Start(), late_ms)
    last = Arrived(chunks[2].message, chunks[2].message_hash)
    received = of_kind(bob.apply(last, late_ms + 1).events, MessageReceived)
    assert [len(one.payload) for one in received] == [3 * SHARE]


@pytest.mark.rule("rc-seg-partial", "rc-seg-timeout")
@pytest.mark.parametrize("pause", [Stop(), OFFLINE], ids=["stopped", "offline"])
def test_incomplete_payload_survives_a_pause(pause: Stop | ConnectionChanged) -> None:
    """Its wait begins again, as after a restart: no segment could arrive."""
    options = replace(LIMITED, rate_limit=None)
    alice, bob = started("alice", options), started("bob", options)
    chunks = alice.apply(Send(bytes(3 * SHARE)), START_MS).dispatches
    for one in chunks[:2]:
        bob.apply(Arrived(one.message, one.message_hash), START_MS)
    bob.apply(Advance(), START_MS + SECOND)
    bob.apply(pause, START_MS + SECOND)
    wait_ms = SMALL_SEGMENTS.idle_timeout_ms
    now_ms = START_MS + 10 * wait_ms
    for event in (Advance(), Start(), ONLINE):
        assert of_kind(bob.apply(event, now_ms).events, IrretrievableMessage) == []
    last = Arrived(chunks[2].message, chunks[2].message_hash)
    received = of_kind(bob.apply(last, now_ms + wait_ms - 1).events, MessageReceived)
    assert [len(one.payload) for one in received] == [3 * SHARE]


def test_incomplete_payload_is_dropped_after_its_wait_online() -> None:
    """Not while the node is offline; then the channel has no deadline for it either."""
    options = replace(LIMITED, rate_limit=None, sync_min_interval_ms=0)
    alice, bob = started("alice", options), started("bob", options)
    first, *_ = alice.apply(Send(bytes(3 * SHARE)), START_MS).dispatches
    bob.apply(Arrived(first.message, first.message_hash), START_MS)
    bob.apply(OFFLINE, START_MS)
    back_ms = START_MS + SMALL_SEGMENTS.idle_timeout_ms
    bob.apply(Advance(), back_ms)
    assert bob.next_deadline_ms > back_ms
    bob.apply(ONLINE, back_ms)
    late_ms = back_ms + SMALL_SEGMENTS.idle_timeout_ms
    assert bob.apply(Advance(), late_ms - 1).events == []
    only(bob.apply(Advance(), late_ms), IrretrievableMessage)


@pytest.mark.rule("rc-timeout-lost")
@pytest.mark.parametrize(
    "pause", [[Stop()], [OFFLINE], [Stop(), ONLINE]], ids=["stopped", "offline", "both"]
)
def test_channel_does_not_wait_for_missing_messages_in_a_pause(
    pause: list[Input],
) -> None:
    """It could not fetch them: after the pause, the rest of the wait is left."""
    options = replace(NO_SYNC, timeout_for_lost_messages_ms=10 * MINUTE)
    alice, bob = started("alice", options), started("bob", options)
    alice.apply(Send(b"missing"), START_MS)
    (second,) = alice.apply(Send(b"tea"), START_MS).dispatches
    bob.apply(Arrived(second.message, second.message_hash), START_MS)
    for event in pause:
        bob.apply(event, START_MS)
    now_ms = START_MS + 60 * MINUTE
    for event in (Advance(), Start(), ONLINE):
        assert of_kind(bob.apply(event, now_ms).events, IrretrievableMessage) == []
    early_ms = now_ms + 10 * MINUTE - 1
    assert of_kind(bob.apply(Advance(), early_ms).events, IrretrievableMessage) == []
    late_ms = early_ms + NO_SYNC.sweep_in_buf_interval_ms
    events = bob.apply(Advance(), late_ms).events
    assert [type(one) for one in events] == [IrretrievableMessage, MessageReceived]


@pytest.mark.parametrize(
    ("option", "other"),
    [
        ("sync_min_interval_ms", 10),
        ("retry_interval_ms", 10),
        ("max_retry_attempts", 1),
        ("retrieve_frequency_ms", 10),
        ("sweep_in_buf_interval_ms", 10),
        ("query_on_connect", False),
        ("process_task_min_elapse_ms", 10),
        ("causal_history_size", 2),
        ("timeout_for_lost_messages_ms", MINUTE),
        ("possible_acks_threshold", 1),
        ("retrieval", RetrievalStrategy.STORE),
    ],
)
def test_each_option_of_the_document_may_change_at_a_restart(
    option: str, other: Any
) -> None:
    """And change back: what waits is still delivered when the missing message comes."""
    alice, bob = started("alice", NO_SYNC), started("bob", NO_SYNC)
    (first,) = alice.apply(Send(b"one"), START_MS).dispatches
    (second,) = alice.apply(Send(b"two"), START_MS).dispatches
    bob.apply(Arrived(second.message, second.message_hash), START_MS)
    now_ms = START_MS
    for options in (replace(NO_SYNC, **{option: other}), NO_SYNC):
        bob = ReliableChannelCore.restore(
            bob.snapshot(), pubsub_topic=SHARD, options=options
        )
        now_ms += SECOND
        for event in (Restarted(), Start(), ONLINE):
            bob.apply(event, now_ms)
    late = Arrived(first.message, first.message_hash)
    received = of_kind(bob.apply(late, now_ms + SECOND).events, MessageReceived)
    assert [one.payload for one in received] == [b"one", b"two"]
