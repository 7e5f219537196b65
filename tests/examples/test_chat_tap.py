"""The monitor finds in a witness's records what the network knows."""

from __future__ import annotations

from dataclasses import replace

from examples.chat.tap import WitnessTap
from sds_core.message_channel import Cause
from sds_core.observer.record import read_headers
from sds_core.reliable_channel import (
    MessageReceived,
    ReliableChannelOptions,
    RetrievalStrategy,
    Send,
)
from sds_core.simulation.comparison import compare
from sds_core.wire import decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.monitor import report_of
from tests.support.reliable_channel import SHARD, emitted, network, sent
from tests.support.reliable_channel.witnessed import witnessed

AT_ONCE = replace(
    ReliableChannelOptions(),
    retrieval=RetrievalStrategy.SDS_R,
    process_task_min_elapse_ms=0,
    query_on_connect=False,
)
"""What reaches a participant is in its filter in the same moment."""


def test_monitor_finds_what_the_network_knows_of_channels() -> None:
    """Every figure, with losses, retries, repairs and large payloads."""
    names = ("alice", "bob", "carol")
    net = network(*names, options=AT_ONCE, loss=0.15)
    for number in range(12):
        payload = bytes([number]) * (250_000 if number % 4 == 0 else 50)
        net.apply(names[number % 3], Send(payload))
        net.run(10 * SECOND)
    net.run(12 * MINUTE)
    records, truth = witnessed(net, SHARD)
    report = report_of(records)
    assert [one for one in compare(truth, report) if not one.same] == []
    totals = report["totals"]
    assert totals["messages"] == len(sent(net, Cause.CONTENT))
    assert totals["deliveries"]["recovered"] > 0
    # What came after the monitor's deadline.
    assert totals["deliveries"]["lost"] == totals["deliveries"]["retracted"]
    again = len(sent(net, Cause.RETRY, Cause.REPAIR))
    assert sum(totals["rebroadcasts"].values()) == again > 0
    received = sum(len(emitted(net, name, MessageReceived)) for name in names)
    assert received == 12 * 2


def test_cause_is_what_the_network_sees() -> None:
    """A repeat by the sender is a retry, one by another participant a repair."""
    net = network("alice", "bob")
    net.apply("alice", Send(b"tea"))
    net.run(10 * MINUTE)
    (content,) = sent(net, Cause.CONTENT)
    message = content.dispatch.message
    tap = WitnessTap("tap", "network")
    for place, by in enumerate(("alice", "alice", "bob")):
        headers = read_headers(tap.sent(START_MS, by, message, SHARD).headers)
        assert (headers.observer, headers.seq) == ("tap", place + 1)
        assert headers.waku_hash_bytes == content.dispatch.message_hash
    told = tap.truth()["channels"][decode(message.payload).channel_id]
    assert told["sender_side"]["first_copies"]["content"] == 1
    assert told["sender_side"]["rebroadcasts"] == {
        "content": 0,
        "repair": 1,
        "retry": 1,
    }
