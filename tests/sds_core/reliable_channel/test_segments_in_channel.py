"""Segments as messages of a channel: ids, events, retries, sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    ChunkInfo,
    Event,
    Irretrievable,
    IrretrievableMessage,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    ReliableChannelCore,
    Restarted,
    Send,
    SendingMessage,
    Start,
)
from sds_core.reliable_channel.encryption import ChaChaEncryption
from sds_core.reliable_channel.segmentation import (
    SegmentationOptions,
    Segmenter,
    payload_hash,
)
from sds_core.simulation.reliable_network import Transmission
from sds_core.wire import BloomFilter, Dialect, Frame, HistoryEntry, decode, encode
from sds_core.wire.segment_header import read_segment_header
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.reliable_channel import (
    ONLINE,
    OPTIONS,
    SHARD,
    SMALL_SEGMENTS,
    emitted,
    network,
    sent,
    started,
)

SEGMENTED = replace(OPTIONS, segmentation=SMALL_SEGMENTS)
SHARE = SMALL_SEGMENTS.share_bytes
PAYLOAD = bytes(number % 251 for number in range(5 * SHARE))

LARGEST_MESSAGE_BYTES = 150 * 1024
"""Of the routing layer: 64/WAKU2-NETWORK."""


def frame_of(transmission: Transmission) -> Frame:
    """The SDS message in a transmission."""
    return decode(transmission.dispatch.message.payload)


@pytest.mark.rule("rc-seg-tracked", "rc-seg-wrap", "rc-seg-metadata", "rc-seg-own-ids")
def test_each_segment_is_an_sds_message() -> None:
    """With an id of its own, and a header: index, count and hash of the payload."""
    net = network("alice", "bob", options=SEGMENTED)
    net.apply("alice", Send(PAYLOAD))
    frames = [frame_of(one) for one in sent(net, Cause.CONTENT)]
    headers = [read_segment_header(frame.content or b"") for frame in frames]
    assert [
        header and (header.index, header.data_count, header.payload_hash)
        for header in headers
    ] == [(index, 5, payload_hash(PAYLOAD)) for index in range(5)]
    assert len({frame.message_id for frame in frames}) == 5
    # Each names those before it, like any message.
    assert [len(frame.causal_history) for frame in frames] == [0, 1, 2, 3, 4]


@pytest.mark.rule("rc-seg-event-sending", "rc-seg-event-sent", "rc-seg-event-acked")
@pytest.mark.rule("rc-seg-chunk-info", "rc-seg-share-id", "rc-seg-events-id")
@pytest.mark.rule("rc-seg-progress")
def test_events_of_all_chunks_have_one_id_and_the_progress() -> None:
    """From one chunk to all five, for each of the three steps."""
    net = network("alice", "bob", options=SEGMENTED)
    message_id = net.apply("alice", Send(PAYLOAD)).message_id
    net.run(MINUTE)
    for kind in (SendingMessage, MessageSent, MessageAcknowledged):
        events = emitted(net, "alice", kind)
        assert {one.message_id for one in events} == {message_id}
        assert [len(one.chunk_info.chunks) for one in events] == [1, 2, 3, 4, 5]
        assert events[-1].chunk_info == ChunkInfo((0, 1, 2, 3, 4), 5)


@pytest.mark.rule("rc-seg-independent", "rc-seg-retries", "rc-seg-once")
def test_only_lost_chunks_are_sent_again() -> None:
    """The last is lost at first; the message is received once it has come."""
    alone = replace(SEGMENTED, profile=replace(SEGMENTED.profile, repair=False))
    net = network("alice", "bob", options=alone)
    net.keeps = False

    def is_lost(transmission: Transmission, _: str) -> bool:
        frame = frame_of(transmission)
        header = read_segment_header(frame.content or b"")
        is_first_time = transmission.dispatch.cause is Cause.CONTENT
        return is_first_time and header is not None and header.index == 4

    net.losses.append(is_lost)
    net.apply("alice", Send(PAYLOAD))
    last = frame_of(sent(net, Cause.CONTENT)[4]).message_id
    net.run(10 * MINUTE)
    again = [frame_of(one).message_id for one in sent(net, Cause.RETRY)]
    assert set(again) == {last}
    assert emitted(net, "bob", MessageReceived) == [MessageReceived(PAYLOAD, "alice")]


@pytest.mark.parametrize(
    ("segmentation", "dropped"),
    [(SMALL_SEGMENTS, 0), (replace(SMALL_SEGMENTS, max_sets=1), 1), (None, 2)],
)
def test_restart_reports_the_incomplete_messages_that_its_options_drop(
    segmentation: SegmentationOptions | None, dropped: int
) -> None:
    """Oldest first; SDS has their chunks, so nothing would ask for them again."""
    bob, payloads = started("bob", SEGMENTED), {"alice": PAYLOAD, "carol": PAYLOAD[1:]}
    for number, (name, payload) in enumerate(payloads.items(), 1):
        chunks = started(name, SEGMENTED).apply(Send(payload), START_MS).dispatches
        for one in chunks[:2]:
            bob.apply(Arrived(one.message, one.message_hash), START_MS)
        bob.apply(Advance(), START_MS + 2 * SECOND * number)
    again = ReliableChannelCore.restore(
        bob.snapshot(),
        pubsub_topic=SHARD,
        options=replace(SEGMENTED, segmentation=segmentation),
    )
    events = again.apply(Restarted(), START_MS + MINUTE).events
    lost: list[Event] = [
        IrretrievableMessage(
            HistoryEntry(payload_hash(payload).hex(), b"", name), Irretrievable.CHUNKS
        )
        for name, payload in payloads.items()
    ]
    assert events == lost[:dropped]


@pytest.mark.rule("rc-seg-partial", "rc-seg-timeout")
def test_chunks_that_never_come_make_the_message_irretrievable() -> None:
    """The other four are dropped, and the application hears of it."""
    options = replace(
        SEGMENTED,
        max_retry_attempts=0,
        timeout_for_lost_messages_ms=MINUTE,
        profile=replace(SEGMENTED.profile, repair=False),
    )
    net = network("alice", "bob", options=options)
    net.keeps = False

    def is_lost(transmission: Transmission, receiver: str) -> bool:
        header = read_segment_header(frame_of(transmission).content or b"")
        return receiver == "bob" and header is not None and header.index == 2

    net.losses.append(is_lost)
    net.apply("alice", Send(PAYLOAD))
    net.run(30 * MINUTE)
    ids = [
        one.entry.message_id
        for one in emitted(net, "bob", IrretrievableMessage)
        if one.what is Irretrievable.CHUNKS
    ]
    assert ids == [payload_hash(PAYLOAD).hex()]
    assert emitted(net, "bob", MessageReceived) == []


@pytest.mark.rule("rc-received-once")
@pytest.mark.parametrize(
    ("parity_rate", "payload"),
    [(1.0, PAYLOAD), (0.25, PAYLOAD)],
    ids=["enough for a second copy", "too few for a second copy"],
)
def test_parity_that_comes_after_a_restart_belongs_to_the_received_message(
    parity_rate: float, payload: bytes
) -> None:
    """It is neither a second message nor the begin of one that never completes."""
    segmentation = replace(SMALL_SEGMENTS, parity_rate=parity_rate)
    options = replace(OPTIONS, segmentation=segmentation)
    alice, bob = started("alice", options), started("bob", options)
    dispatches = alice.apply(Send(payload), START_MS).dispatches
    needed = -(-len(payload) // SHARE)
    now_ms = START_MS
    events: list[Event] = []
    for number, dispatch in enumerate(dispatches):
        if number == needed:
            assert events == [MessageReceived(payload, "alice")]
            bob = ReliableChannelCore.restore(
                bob.snapshot(), pubsub_topic=SHARD, options=options
            )
            # While the process was off, no parity could come.
            now_ms += 2 * segmentation.idle_timeout_ms
            for one in (Restarted(), ONLINE, Start()):
                bob.apply(one, now_ms)
        arrived = Arrived(dispatch.message, dispatch.message_hash)
        for one in (arrived, Advance()):
            now_ms += 2 * SECOND
            events += bob.apply(one, now_ms).events
    assert len(dispatches) > needed
    now_ms += 2 * segmentation.idle_timeout_ms
    events += bob.apply(Advance(), now_ms).events
    assert events == [MessageReceived(payload, "alice")]


@pytest.mark.rule("rc-seg-below-limit", "rc-seg-final-size")
def test_a_whole_segment_with_everything_around_it_fits_into_a_message() -> None:
    """With 200 history entries, a filter, encryption and the proof of RLN."""
    options = SegmentationOptions(parity_rate=0.125)
    segments = Segmenter(options).split(bytes(options.max_payload_bytes))
    longest_id = "0x" + "a" * 40
    frame = Frame.build(
        Dialect.SPEC,
        channel_id="/kettle/1/tea/proto",
        sender_id=longest_id,
        message_id="f" * 64,
        lamport=2**43,
        causal_history=[
            HistoryEntry("f" * 64, bytes(32), longest_id) for _ in range(200)
        ],
        bloom_filter=BloomFilter(Dialect.SPEC).to_wire(),
        content=max(segments, key=len),
    )
    # 17/WAKU2-RLN-RELAY: proof, root, epoch, share and nullifier.
    proof_bytes = 128 + 6 * 32
    around_bytes = ChaChaEncryption.overhead_bytes + proof_bytes
    assert len(encode(frame)) + around_bytes < LARGEST_MESSAGE_BYTES
