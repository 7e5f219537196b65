"""From `send` to the acknowledgement: events in the order of the document."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    ChunkInfo,
    ConnectionChanged,
    Dispatch,
    Dispatched,
    DispatchFailed,
    EncryptionError,
    LimitReached,
    Limits,
    MessageAcknowledged,
    MessagePossiblyAcknowledged,
    MessageReceived,
    MessageSent,
    RateLimitOptions,
    ReliableChannelCore,
    ReliableChannelOptions,
    Restarted,
    Send,
    SendEphemeral,
    SendError,
    SendingMessage,
    SendingMessageIrrecoverableError,
    Start,
    Window,
)
from sds_core.reliable_channel.state import Message, Stage
from sds_core.waku import WakuMessage
from sds_core.wire import FrameKind, decode
from tests.support.frames import MINUTE, START_MS, FrameFactory, value_of
from tests.support.reliable_channel import (
    CHANNEL,
    OFFLINE,
    OPTIONS,
    SHARD,
    SMALL_SEGMENTS,
    TOPIC,
    causes,
    emitted,
    network,
    only,
    sent,
    started,
)

ONE = ChunkInfo((0,), 1)
SEGMENTED = replace(OPTIONS, segmentation=SMALL_SEGMENTS)
SHARE = SMALL_SEGMENTS.share_bytes
PAYLOAD = bytes(number % 251 for number in range(5 * SHARE))


@pytest.mark.rule("rc-events-sending", "rc-events-sent", "rc-events-acknowledged")
@pytest.mark.rule(
    "rc-life-sending",
    "rc-life-sent",
    "rc-life-acknowledged",
    "rc-send-id",
    "rc-send",
    "rc-sds-core",
    "rc-sds-wrap",
    "rc-sds-unwrap",
    "rc-sds-raw",
    "rc-sds-decode",
    "rc-sds-content",
    "rc-arch-wrap",
    "rc-arch-unwrap",
    "rc-type-payload",
    "rc-map-1a",
    "rc-map-1b",
)
def test_message_is_sending_then_sent_then_acknowledged() -> None:
    """Each once, with the one chunk."""
    net = network("alice", "bob")
    message_id = net.apply("alice", Send(b"The kettle is on.")).message_id
    net.run(MINUTE)
    own = [one.event for one in net.events if one.by == "alice"]
    assert own == [
        SendingMessage(message_id, ONE),
        MessageSent(message_id, ONE),
        MessageAcknowledged(message_id, ONE),
    ]
    assert emitted(net, "bob", MessageReceived) == [
        MessageReceived(b"The kettle is on.", "alice")
    ]


@pytest.mark.rule(
    "rc-chunks-sending",
    "rc-chunks-sent",
    "rc-chunks-acknowledged",
    "rc-chunks-id",
    "rc-type-sending",
    "rc-type-sent",
    "rc-type-acknowledged",
    "rc-seg-events",
)
@pytest.mark.rule(
    "rc-chunks-sending-example",
    "rc-chunks-progress",
    "rc-seg-computed",
    "rc-seg-own-ids",
    "rc-type-chunk-info",
)
def test_chunks_are_listed_cumulatively() -> None:
    """Five chunks give five events of each kind, the last with all chunks."""
    net = network("alice", "bob", options=SEGMENTED)
    message_id = net.apply("alice", Send(PAYLOAD)).message_id
    net.run(MINUTE)
    growing = [ChunkInfo(tuple(range(count)), 5) for count in range(1, 6)]
    for kind in (SendingMessage, MessageSent):
        events = emitted(net, "alice", kind)
        assert [one.chunk_info for one in events] == growing
        assert {one.message_id for one in events} == {message_id}
    acknowledged = emitted(net, "alice", MessageAcknowledged)
    assert len(acknowledged) == 5
    assert [one.chunk_info.is_complete for one in acknowledged] == [False] * 4 + [True]
    sds_ids = {
        decode(one.dispatch.message.payload).message_id
        for one in sent(net, Cause.CONTENT)
    }
    assert len(sds_ids) == 5


@pytest.mark.rule("rc-chunks-acknowledged-example", "rc-chunks-acknowledged")
def test_chunks_are_listed_in_ascending_order_as_they_are_acknowledged() -> None:
    """The example of the document: chunk 2 is acknowledged after chunk 3."""
    message = Message("kettle", [f"chunk {index}" for index in range(5)])
    listed = [
        message.mark(index, Stage.ACKNOWLEDGED).chunks for index in (0, 1, 3, 2, 4)
    ]
    assert listed == [
        (0,),
        (0, 1),
        (0, 1, 3),
        (0, 1, 2, 3),
        (0, 1, 2, 3, 4),
    ]


@pytest.mark.rule(
    "rc-events-received",
    "rc-received-whole",
    "rc-received-no-chunks",
    "rc-received-once",
    "rc-seg-reassembled",
)
@pytest.mark.rule("rc-seg-order")
def test_segmented_message_is_received_once_and_whole() -> None:
    """Although chunks overtake each other, and the network repeats them."""
    net = network("alice", "bob", options=SEGMENTED, loss=0.3, seed=5)
    net.apply("alice", Send(PAYLOAD))
    net.run(30 * MINUTE)
    assert emitted(net, "bob", MessageReceived) == [MessageReceived(PAYLOAD, "alice")]


@pytest.mark.rule(
    "rc-events-possibly", "rc-life-possibly", "rc-type-possible", "rc-map-1c"
)
def test_filter_of_another_is_a_possible_acknowledgement() -> None:
    """It is reported once, and after enough filters the message is acknowledged."""
    options = replace(OPTIONS, causal_history_size=0)
    net = network("alice", "bob", "carol", options=options)
    message_id = net.apply("alice", Send(b"tea")).message_id
    net.run(5 * MINUTE)
    possible = emitted(net, "alice", MessagePossiblyAcknowledged)
    assert possible == [MessagePossiblyAcknowledged(message_id, ONE)]
    assert emitted(net, "alice", MessageAcknowledged) == [
        MessageAcknowledged(message_id, ONE)
    ]


@pytest.mark.rule("rc-type-message-id", "rc-seg-message-id")
def test_equal_payloads_have_different_ids() -> None:
    """Both are received, so both have events of their own."""
    net = network("alice", "bob")
    ids = {net.apply("alice", Send(b"tick")).message_id for _ in range(2)}
    net.run(MINUTE)
    assert len(ids) == 2
    assert {one.message_id for one in emitted(net, "alice", MessageAcknowledged)} == ids
    assert len(emitted(net, "bob", MessageReceived)) == 2


@pytest.mark.rule("rc-events-error", "rc-life-error", "rc-error-empty")
@pytest.mark.parametrize("kind", [Send, SendEphemeral])
def test_empty_payload_is_an_irrecoverable_error(
    kind: type[Send] | type[SendEphemeral],
) -> None:
    """Nothing is dispatched."""
    output = started().apply(kind(b""), START_MS)
    error = only(output, SendingMessageIrrecoverableError)
    assert (error.message_id, error.error) == (
        output.message_id,
        SendError.EMPTY_PAYLOAD,
    )
    assert output.dispatches == []


@pytest.mark.rule("rc-error-size")
def test_payload_of_too_many_segments_is_an_irrecoverable_error() -> None:
    """Its event has both sizes."""
    payload = bytes(SMALL_SEGMENTS.max_payload_bytes + 1)
    output = started(options=SEGMENTED).apply(Send(payload), START_MS)
    error = only(output, SendingMessageIrrecoverableError)
    assert error.error is SendError.SIZE_TOO_LARGE
    assert str(len(payload)) in error.detail
    assert output.dispatches == []


@pytest.mark.rule(
    "rc-error-no-retry", "rc-type-error", "rc-error-rln", "rc-retry-stop-error"
)
def test_irrecoverable_error_of_the_network_ends_the_retries() -> None:
    """The event names the chunk; nothing is sent again."""
    alice = started()
    output = alice.apply(Send(b"tea"), START_MS)
    (dispatch,) = output.dispatches
    failure = DispatchFailed(dispatch.number, SendError.RLN_PROOF_FAILED, "no proof")
    failed = alice.apply(failure, START_MS + 1)
    assert failed.events == [
        SendingMessageIrrecoverableError(
            output.message_id, ONE, SendError.RLN_PROOF_FAILED, "no proof"
        )
    ]
    assert failed.dispatches == []
    assert causes(alice, 20 * MINUTE).count(Cause.RETRY) == 0


def refusal(dispatch: Dispatch) -> DispatchFailed:
    """The network refuses a frame for good."""
    return DispatchFailed(dispatch.number, SendError.RLN_PROOF_FAILED, "no proof")


def arrived(payload: bytes) -> Arrived:
    """A frame that another participant sent."""
    return Arrived(WakuMessage(payload, TOPIC, START_MS))


def named_next(alice: ReliableChannelCore, now_ms: int) -> list[str]:
    """Ids in the causal history of the next message."""
    (dispatch,) = alice.apply(Send(b"next"), now_ms).dispatches
    return [one.message_id for one in decode(dispatch.message.payload).causal_history]


@pytest.mark.rule("rc-error-no-retry")
def test_refused_message_does_not_hold_back_later_ones() -> None:
    """No causal history names it, so no receiver waits for it or gets it."""
    net = network("alice", "bob")
    net.keeps = False
    net.losses.append(lambda one, _: one.by == "alice" and one.dispatch.number == 1)
    (refused,) = net.apply("alice", Send(b"refused")).dispatches
    net.apply("alice", refusal(refused))
    for payload in (b"one", b"two"):
        net.run(MINUTE)
        net.apply("alice", Send(payload))
    net.run(20 * MINUTE)
    assert emitted(net, "bob", MessageReceived) == [
        MessageReceived(b"one", "alice"),
        MessageReceived(b"two", "alice"),
    ]
    payloads = [one.dispatch.message.payload for one in sent(net)]
    assert payloads.count(refused.message.payload) == 1


class Choosy:
    """An encryption that cannot encrypt frames with the word `secret`."""

    def encrypt(self, plaintext: bytes) -> bytes:
        """Encode, or fail."""
        if b"secret" in plaintext:
            raise EncryptionError("the word is forbidden")
        return b"E" + plaintext

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Decode."""
        return ciphertext[1:]


def test_message_whose_frame_cannot_be_encrypted_does_not_hold_back_others() -> None:
    """It was never broadcast either."""
    net = network("alice", "bob", encryption=Choosy())
    for payload in (b"secret", b"one", b"two"):
        net.apply("alice", Send(payload))
    net.run(20 * MINUTE)
    (error,) = emitted(net, "alice", SendingMessageIrrecoverableError)
    assert error.error is SendError.ENCODING_FAILED
    assert emitted(net, "bob", MessageReceived) == [
        MessageReceived(b"one", "alice"),
        MessageReceived(b"two", "alice"),
    ]


@pytest.mark.parametrize("was_sent", [False, True])
def test_message_whose_retry_is_refused_stays_only_if_it_was_sent(
    *, was_sent: bool
) -> None:
    """Then others may have it, and histories still name it."""
    alice = started(options=replace(OPTIONS, sync_min_interval_ms=0))
    (first,) = alice.apply(Send(b"tea"), START_MS).dispatches
    number = first.number
    alice.apply(Dispatched(number) if was_sent else DispatchFailed(number), START_MS)
    retry_ms = START_MS + OPTIONS.retry_interval_ms
    (retry,) = alice.apply(Advance(), retry_ms).dispatches
    only(alice.apply(refusal(retry), retry_ms), SendingMessageIrrecoverableError)
    sds_id = decode(first.message.payload).message_id
    assert named_next(alice, retry_ms) == [sds_id] * was_sent


def test_message_under_way_at_a_restart_is_withdrawn_if_it_is_refused() -> None:
    """Whether the network accepted it before the restart is unknown."""
    alice = started()
    alice.apply(Send(b"tea"), START_MS)
    again = ReliableChannelCore.restore(
        alice.snapshot(), pubsub_topic=SHARD, options=OPTIONS
    )
    for event in (Restarted(), ConnectionChanged(True, False)):
        again.apply(event, START_MS)
    (dispatch,) = again.apply(Start(), START_MS).dispatches
    only(again.apply(refusal(dispatch), START_MS), SendingMessageIrrecoverableError)
    assert named_next(again, START_MS) == []


def test_refused_message_that_is_no_longer_tracked_is_withdrawn() -> None:
    """It has no events, but receivers would wait for it all the same."""
    alice = started(options=replace(OPTIONS, limits=Limits(messages=1)))
    (first,) = alice.apply(Send(b"one"), START_MS).dispatches
    (second,) = alice.apply(Send(b"two"), START_MS).dispatches
    assert alice.apply(refusal(first), START_MS).events == []
    second_id = decode(second.message.payload).message_id
    assert named_next(alice, START_MS) == [second_id]


def test_acknowledged_message_stays_although_it_is_refused() -> None:
    """Another participant has it: the network accepted an earlier attempt."""
    alice = started()
    (dispatch,) = alice.apply(Send(b"tea"), START_MS).dispatches
    sds_id = decode(dispatch.message.payload).message_id
    frame = FrameFactory(CHANNEL).sync("bob", history=[sds_id])
    only(alice.apply(arrived(value_of(frame)), START_MS), MessageAcknowledged)
    assert alice.apply(refusal(dispatch), START_MS).events == []
    assert named_next(alice, START_MS) == [sds_id]


def test_acknowledged_chunk_has_no_error_although_its_retry_is_refused() -> None:
    """Its message is still tracked, because the other chunks are not acknowledged."""
    alice = started(options=replace(SEGMENTED, sync_min_interval_ms=0))
    chunks = []
    for one in alice.apply(Send(PAYLOAD), START_MS).dispatches:
        chunks.append(decode(one.message.payload).message_id)
        alice.apply(Dispatched(one.number), START_MS)
    retry_ms = START_MS + OPTIONS.retry_interval_ms
    first, second, *_ = alice.apply(Advance(), retry_ms).dispatches
    held, lacking = (decode(one.message.payload).message_id for one in (first, second))
    frame = FrameFactory(CHANNEL).sync("bob", history=[held])
    only(alice.apply(arrived(value_of(frame)), retry_ms), MessageAcknowledged)
    assert alice.apply(refusal(first), retry_ms).events == []
    failed = alice.apply(refusal(second), retry_ms)
    info = only(failed, SendingMessageIrrecoverableError).chunk_info
    assert info.chunks == (chunks.index(lacking),)


def test_waiting_repairs_of_a_refused_message_are_withdrawn() -> None:
    """Those of other messages are sent when the rate limit allows it."""
    limit = RateLimitOptions(
        messages_per_epoch=3, epoch_ms=10 * MINUTE, window=Window.SLIDING
    )
    options = replace(OPTIONS, rate_limit=limit, sync_min_interval_ms=0)
    alice = started(options=replace(options, max_retry_attempts=0))
    dispatches = [
        one
        for payload in (b"one", b"two", b"three")
        for one in alice.apply(Send(payload), START_MS).dispatches
    ]
    refused, *others = dispatches
    ids = [decode(one.message.payload).message_id for one in dispatches]
    requests = [(one, "alice") for one in ids]
    frame = FrameFactory(CHANNEL).sync("bob", requests=requests)
    alice.apply(arrived(value_of(frame)), START_MS)
    for one in others:
        alice.apply(Dispatched(one.number), START_MS)
    assert causes(alice, 9 * MINUTE) == []
    alice.apply(refusal(refused), START_MS + 9 * MINUTE)
    repairs = []
    while (at_ms := int(alice.next_deadline_ms)) < START_MS + 30 * MINUTE:
        for one in alice.apply(Advance(), at_ms).dispatches:
            alice.apply(Dispatched(one.number), at_ms)
            if one.cause is Cause.REPAIR:
                repairs.append(decode(one.message.payload).message_id)
    assert sorted(repairs) == sorted(ids[1:])


@pytest.mark.rule("rc-ephemeral-fields", "rc-ephemeral-receive", "rc-send-ephemeral")
@pytest.mark.rule(
    "rc-ephemeral-no-retry",
    "rc-ephemeral-no-history",
    "rc-ephemeral-no-log",
    "rc-send-ephemeral-id",
    "rc-ephemeral-received-event",
    "rc-ephemeral-not-acknowledged",
    "rc-ephemeral-sent-event",
)
def test_ephemeral_message_is_sent_once_and_received_at_once() -> None:
    """Without timestamp, history or filter; nobody acknowledges or repeats it."""
    net = network("alice", "bob")
    message_id = net.apply("alice", SendEphemeral(b"typing")).message_id
    (transmission,) = sent(net)
    frame = decode(transmission.dispatch.message.payload)
    assert frame.kind is FrameKind.EPHEMERAL
    assert frame.lamport is None
    assert not frame.causal_history
    assert not frame.bloom_filter
    assert transmission.dispatch.message.ephemeral
    net.run(10 * MINUTE)
    assert [one.event for one in net.events] == [
        MessageSent(message_id, ONE),
        MessageReceived(b"typing", "alice", is_ephemeral=True),
    ]
    assert len(sent(net)) == 1


@pytest.mark.rule("rc-ephemeral-never-segmented")
def test_ephemeral_message_that_needs_two_segments_is_rejected() -> None:
    """One byte less is sent."""
    alice = started(options=SEGMENTED)
    output = alice.apply(SendEphemeral(bytes(SHARE + 1)), START_MS)
    error = only(output, SendingMessageIrrecoverableError)
    assert error.error is SendError.SIZE_TOO_LARGE
    assert alice.apply(SendEphemeral(bytes(SHARE)), START_MS).dispatches


@pytest.mark.rule("rc-seg-unsegmented", "rc-life-sending")
@pytest.mark.parametrize("length", [102_272, 102_273, 102_400])
def test_payload_of_100_kb_is_one_message(length: int) -> None:
    """An ephemeral one is not rejected."""
    alice = started(options=ReliableChannelOptions())
    output = alice.apply(Send(bytes(length)), START_MS)
    assert output.events == [SendingMessage(output.message_id, ONE)]
    (dispatch,) = alice.apply(SendEphemeral(bytes(length)), START_MS).dispatches
    assert dispatch.message.ephemeral


@pytest.mark.rule("rc-ephemeral-error")
def test_ephemeral_message_whose_sending_fails_is_an_error() -> None:
    """There is no second attempt, so the application hears of it."""
    alice = started()
    output = alice.apply(SendEphemeral(b"typing"), START_MS)
    (dispatch,) = output.dispatches
    failed = alice.apply(DispatchFailed(dispatch.number, None, "busy"), START_MS)
    error = only(failed, SendingMessageIrrecoverableError)
    assert (error.message_id, error.detail) == (output.message_id, "busy")


def test_message_beyond_the_queue_is_refused() -> None:
    """Otherwise an application offline for long would fill the memory."""
    alice = started(options=replace(OPTIONS, limits=Limits(queue=1)))
    alice.apply(OFFLINE, START_MS)
    assert alice.apply(Send(b"one"), START_MS).events == []
    error = only(alice.apply(Send(b"two"), START_MS), SendingMessageIrrecoverableError)
    assert error.error is SendError.QUEUE_FULL


@pytest.mark.rule("rc-limit-1b")
def test_oldest_message_goes_if_too_many_are_tracked() -> None:
    """Its later acknowledgement has no event any more."""
    alice = started(options=replace(OPTIONS, limits=Limits(messages=1)))
    first = alice.apply(Send(b"one"), START_MS).message_id
    events = alice.apply(Send(b"two"), START_MS).events
    assert LimitReached("messages", first) in events


def test_answer_to_an_unknown_dispatch_is_ignored() -> None:
    """A node may answer twice."""
    alice = started()
    (dispatch,) = alice.apply(Send(b"tea"), START_MS).dispatches
    assert alice.apply(Dispatched(dispatch.number), START_MS).events
    assert alice.apply(Dispatched(dispatch.number), START_MS).events == []
    assert alice.apply(DispatchFailed(99), START_MS).events == []
