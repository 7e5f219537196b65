"""Our reliable channel and that of `@waku/sdk` 0.0.36 understand each other.

Both in virtual time on one lossy network: names that begin with j are js.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

import pytest

from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    ChunkInfo,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    ReliableChannelOptions,
    SegmentationOptions,
    Send,
    SendingMessage,
)
from sds_core.reliable_channel.segmentation import Reassembler, Segmenter
from sds_core.simulation.reliable_network import ReliableNetwork
from sds_core.waku import RELIABLE_CHANNEL_META
from sds_core.wire import decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.interop.pia import network_of_pia
from tests.support.interop.sdk_host import SdkHost, node_with_sdk
from tests.support.reliable_channel import CHANNEL, SHARD, TOPIC, emitted

pytestmark = [pytest.mark.node, pytest.mark.slow]

JS_WAKU = ReliableChannelOptions.js_waku()
ONE = ChunkInfo((0,), 1)

PUBLIC_KEYS = ("02" + "c0" * 32, "03" + "fe" * 32)
"""Sender ids of 66 characters."""

MEBIBYTE = bytes(number % 251 for number in range(2**20))


class OpenPair(Protocol):
    """A function that opens a channel of two."""

    def __call__(
        self,
        loss: float = 0.0,
        options: ReliableChannelOptions = JS_WAKU,
        ids: tuple[str, str] = ("pia", "jane"),
    ) -> tuple[ReliableNetwork, SdkHost]:
        """Open a channel with ours, "pia", and a js one, with these sender ids."""


@pytest.fixture
def open_pair() -> Iterator[OpenPair]:
    """Opens channels; their processes end with the test."""
    node = node_with_sdk()
    with ExitStack() as stack:

        def open_one(
            loss: float = 0.0,
            options: ReliableChannelOptions = JS_WAKU,
            ids: tuple[str, str] = ("pia", "jane"),
        ) -> tuple[ReliableNetwork, SdkHost]:
            ours, theirs = ids
            net = network_of_pia(options, participants=4, loss=loss, sender_id=ours)
            host = SdkHost(node, net, CHANNEL, TOPIC, SHARD)
            stack.enter_context(host)
            host.enter(theirs)
            return net, host

        yield open_one


def payloads(net: ReliableNetwork) -> list[bytes]:
    """Return what ours received."""
    return [one.payload for one in emitted(net, "pia", MessageReceived)]


def test_events_of_both_are_alike(open_pair: OpenPair) -> None:
    """Sending, sent, acknowledged, by the other's sync messages."""
    net, host = open_pair()
    ours = net.apply("pia", Send(b"from pia")).message_id
    host.run(5 * SECOND)
    theirs = host.say("jane", b"from jane")
    host.run(3 * MINUTE)
    assert emitted(net, "pia", SendingMessage)[0] == SendingMessage(ours, ONE)
    assert emitted(net, "pia", MessageSent)[0] == MessageSent(ours, ONE)
    assert emitted(net, "pia", MessageAcknowledged) == [MessageAcknowledged(ours, ONE)]
    names = host.names("jane", theirs)
    assert names[:2] == ["sending-message", "message-sent"]
    assert names.count("message-acknowledged") == 1
    assert host.received("jane")[0] == b"from pia"
    assert payloads(net) == [b"from jane"]


@pytest.mark.parametrize(
    "options", [JS_WAKU, replace(ReliableChannelOptions(), segmentation=None)]
)
def test_conversation_over_a_lossy_network_is_complete(
    open_pair: OpenPair, options: ReliableChannelOptions
) -> None:
    """A tenth of everything is lost; both have all, and all is acknowledged."""
    net, host = open_pair(loss=0.1, options=options)
    host.connect("jane")
    said: dict[str, list[bytes]] = {"pia": [], "jane": []}
    for number in range(20):
        for name in ("pia", "jane"):
            payload = b"%d of %s" % (number, name.encode())
            said[name].append(payload)
            if name == "pia":
                net.apply("pia", Send(payload))
            else:
                host.say("jane", payload)
            host.run(3 * SECOND)
    host.run(5 * MINUTE)
    # The SDK repeats retried messages, and does not order them.
    assert sorted(set(host.received("jane"))) == sorted(said["pia"])
    assert payloads(net) == said["jane"]
    assert len(emitted(net, "pia", MessageAcknowledged)) == 20
    acknowledged = {
        one.message_id for one in host.heard if one.name == "message-acknowledged"
    }
    assert len(acknowledged) == 20


def test_retries_of_each_reach_the_other(open_pair: OpenPair) -> None:
    """What is lost at first arrives with a retry, and is then acknowledged."""
    net, host = open_pair()
    until_ms = net.now_ms + 20 * SECOND
    net.keeps = False
    net.losses.append(lambda one, _: one.at_ms < until_ms)
    ours = net.apply("pia", Send(b"from pia")).message_id
    theirs = host.say("jane", b"from jane")
    host.run(10 * SECOND)
    assert payloads(net) == host.received("jane") == []
    host.run(4 * MINUTE)
    assert payloads(net) == [b"from jane"]
    assert host.received("jane")[0] == b"from pia"
    assert emitted(net, "pia", MessageAcknowledged) == [MessageAcknowledged(ours, ONE)]
    assert "message-acknowledged" in host.names("jane", theirs)


@pytest.mark.parametrize("meta", [b"", RELIABLE_CHANNEL_META])
def test_hints_of_each_find_the_message_in_the_store(
    open_pair: OpenPair, meta: bytes
) -> None:
    """Each misses one message, and gets it by hash before any retry or repair.

    The SDK reads messages with the mark of logos-delivery too, and hashes it.
    """
    net, host = open_pair(options=replace(JS_WAKU, meta=meta))
    host.run(SECOND)
    losing = True
    net.losses.append(lambda _one, _name: losing)
    net.apply("pia", Send(b"lost of pia"))
    host.say("jane", b"lost of jane")
    host.run(SECOND)
    losing = False
    net.apply("pia", Send(b"next of pia"))
    host.say("jane", b"next of jane")
    before = net.now_ms
    host.run(22 * SECOND)
    assert sorted(payloads(net)) == [b"lost of jane", b"next of jane"]
    assert set(host.received("jane")) == {b"lost of pia", b"next of pia"}
    assert host.queries("jane") >= 1
    causes = {one.dispatch.cause for one in net.transmissions if one.by == "pia"}
    assert Cause.RETRY not in causes
    assert Cause.REPAIR not in causes
    assert net.now_ms - before < JS_WAKU.retry_interval_ms


def test_syncs_of_each_are_understood(open_pair: OpenPair) -> None:
    """They name the other's messages in their history, under the same ids and hints."""
    net, host = open_pair()
    net.apply("pia", Send(b"from pia"))
    host.run(SECOND)
    host.say("jane", b"from jane")
    host.run(3 * MINUTE)
    hashes = {
        decode(one.dispatch.message.payload).message_id: one.dispatch.message_hash
        for one in net.transmissions
        if one.dispatch.cause is Cause.CONTENT
    }
    for name in ("pia", "jane"):
        syncs = [
            decode(one.dispatch.message.payload)
            for one in net.transmissions
            if one.by == name and one.dispatch.cause is Cause.SYNC
        ]
        hints = {
            entry.message_id: entry.retrieval_hint for entry in syncs[-1].causal_history
        }
        assert hints == hashes, name


def spoken(segments: list[bytes]) -> list[bytes]:
    """Return the payloads that an application of js makes of what it receives."""
    reassembler = Reassembler(SegmentationOptions())
    found = [reassembler.add(one, START_MS, PUBLIC_KEYS[0]) for one in segments]
    return [one.payload for one in found if one.payload is not None]


@pytest.mark.parametrize("history", [0, 200])
def test_mebibyte_by_participants_with_long_ids(
    open_pair: OpenPair, history: int
) -> None:
    """Each sends 1 MiB to the other, at first, or when histories are full.

    The application of js splits and joins: the SDK does neither. Its history does not
    give way, so its segments are shorter: with 200 entries and a filter, 102,400 bytes
    would not fit into the 150 KB of the network.
    """
    net, host = open_pair(options=ReliableChannelOptions(), ids=PUBLIC_KEYS)
    jane = PUBLIC_KEYS[1]
    for number in range(history // 2):
        net.apply("pia", Send(b"%d" % number))
        host.say(jane, b"%d" % number)
        host.run(100)
    host.run(5 * SECOND)
    ours = net.apply("pia", Send(MEBIBYTE)).message_id
    host.run(10 * SECOND)
    assert spoken(host.received(jane))[-1] == MEBIBYTE
    segmenter = Segmenter(SegmentationOptions(segment_bytes=92_160))
    theirs = [host.say(jane, one) for one in segmenter.split(MEBIBYTE)]
    host.run(5 * MINUTE)
    assert payloads(net)[-1] == MEBIBYTE
    assert payloads(net).count(MEBIBYTE) == 1
    sizes = [len(one.dispatch.message.payload) for one in net.transmissions]
    assert max(sizes) < 150 * 1024
    named = [
        len(decode(one.dispatch.message.payload).causal_history)
        for one in net.transmissions
        if one.dispatch.cause is Cause.CONTENT
    ]
    assert max(named) >= history
    acknowledged = emitted(net, "pia", MessageAcknowledged)
    assert [one for one in acknowledged if one.message_id == ours][
        -1
    ].chunk_info.is_complete
    assert all("message-acknowledged" in host.names(jane, one) for one in theirs)
