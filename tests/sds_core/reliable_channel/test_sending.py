"""From `send` to the acknowledgement: events in the order of the document."""

from __future__ import annotations

from dataclasses import replace

from sds_core.reliable_channel import (
    ChunkInfo,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    Send,
    SendingMessage,
)
from tests.support.reliable_channel import (
    OPTIONS,
    SMALL_SEGMENTS,
    emitted,
    network,
)

ONE = ChunkInfo((0,), 1)


def test_message_is_sending_then_sent_then_acknowledged() -> None:
    """Each once, with the one chunk."""
    net = network("alice", "bob")
    message_id = net.apply("alice", Send(b"The kettle is on.")).message_id
    net.run(60_000)
    own = [one.event for one in net.events if one.by == "alice"]
    assert own == [
        SendingMessage(message_id, ONE),
        MessageSent(message_id, ONE),
        MessageAcknowledged(message_id, ONE),
    ]
    assert emitted(net, "bob", MessageReceived) == [
        MessageReceived(b"The kettle is on.", "alice")
    ]


def test_chunks_are_listed_cumulatively() -> None:
    """Five chunks give five events of each kind, the last with all chunks."""
    net = network("alice", "bob", options=replace(OPTIONS, segmentation=SMALL_SEGMENTS))
    payload = bytes(range(256)) * 4
    message_id = net.apply("alice", Send(payload[: 5 * 192])).message_id
    net.run(60_000)
    growing = [ChunkInfo(tuple(range(count)), 5) for count in range(1, 6)]
    for kind in (SendingMessage, MessageSent):
        events = emitted(net, "alice", kind)
        assert [one.chunk_info for one in events] == growing
        assert {one.message_id for one in events} == {message_id}
    acknowledged = emitted(net, "alice", MessageAcknowledged)
    assert acknowledged[-1].chunk_info.is_complete
    assert emitted(net, "bob", MessageReceived) == [
        MessageReceived(payload[: 5 * 192], "alice")
    ]
