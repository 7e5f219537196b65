"""The monitor reports truly what channels of `@waku/sdk` 0.0.36 and ours do together.

On one lossy network in virtual time, without a store: "pia" is ours, the others are js.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from connectors.kafka.producer import TopicRecord
from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    MessageReceived,
    ReliableChannelOptions,
    Send,
)
from sds_core.simulation.comparison import compare
from sds_core.simulation.reliable_network import ReliableNetwork
from sds_core.wire import decode
from tests.support.frames import MINUTE, SECOND
from tests.support.interop.pia import network_of_pia
from tests.support.interop.sdk_host import SdkHost, node_with_sdk
from tests.support.monitor import Monitor, batches, report_of
from tests.support.reliable_channel import CHANNEL, SHARD, TOPIC, emitted
from tests.support.reliable_channel.witnessed import witnessed

pytestmark = [pytest.mark.node, pytest.mark.slow]

JS = ("jane", "jack")
EACH = 20
"""Messages of each participant."""

# What reaches a participant is in its filter in the same moment, as the network has it.
AT_ONCE = replace(ReliableChannelOptions.js_waku(), process_task_min_elapse_ms=0)
JS_AT_ONCE = {"processTaskMinElapseMs": 0}

LOST = b"Nobody ever receives this."


class Conversation(NamedTuple):
    """A conversation that is over.

    Attributes:
        net: The network.
        host: The js participants.
        records: What a tap recorded.
        truth: What a correct monitor finds.
    """

    net: ReliableNetwork
    host: SdkHost
    records: list[TopicRecord]
    truth: dict[str, Any]


@pytest.fixture(scope="module")
def conversation() -> Iterator[Conversation]:
    """A tenth of everything is lost, and all copies of the last message."""
    net = network_of_pia(AT_ONCE, participants=1 + len(JS), loss=0.1)
    net.losses.append(lambda sent, _: LOST in sent.dispatch.message.payload)
    net.keeps = False
    with ExitStack() as stack:
        host = SdkHost(node_with_sdk(), net, CHANNEL, TOPIC, SHARD)
        stack.enter_context(host)
        for name in JS:
            host.enter(name, JS_AT_ONCE)
        for number in range(EACH):
            net.apply("pia", Send(b"%d of pia" % number))
            host.run(2 * SECOND)
            for name in JS:
                host.say(name, b"%d of %s" % (number, name.encode()))
                host.run(2 * SECOND)
        net.apply("pia", Send(LOST))
        host.run(8 * MINUTE)
        records, truth = witnessed(net, SHARD)
        yield Conversation(net, host, records, truth)


def test_every_figure_is_what_the_network_knows(conversation: Conversation) -> None:
    """Frames, acknowledgements, deliveries, repairs and bytes; none is empty."""
    report = report_of(conversation.records)
    assert [one for one in compare(conversation.truth, report) if not one.same] == []
    totals = report["totals"]
    assert totals["undecodable"] == {}
    assert totals["participants"] == 1 + len(JS)
    for some in (
        totals["acknowledged"]["definite"],
        totals["deliveries"]["first_pass"],
        totals["deliveries"]["recovered"],
        totals["deliveries"]["lost"],
        totals["rebroadcasts"]["repair"],
        totals["rebroadcasts"]["retry"],
        totals["repair"]["answered"],
        totals["unacknowledged"],
    ):
        assert some > 0


def test_messages_are_those_that_the_applications_sent(
    conversation: Conversation,
) -> None:
    """Retries and repairs are the same messages, though of two libraries."""
    totals = report_of(conversation.records)["totals"]
    assert totals["messages"] == EACH * (1 + len(JS)) + 1
    assert totals["message_id_collisions"] == 0
    assert totals["gaps"]["opened"] == 0


def test_only_ours_answers_requests_for_repair(conversation: Conversation) -> None:
    """Js channels ask, but never sweep the requests of others.

    When this fails, docs/reliable-channel.md changes too.
    """
    sent = conversation.net.transmissions
    frames = [decode(one.dispatch.message.payload) for one in sent]
    asking = {frame.sender_id for frame in frames if frame.repair_request}
    assert "pia" in asking
    assert asking & {*JS}
    assert any(one.dispatch.cause is Cause.REPAIR for one in sent if one.by == "pia")
    assert [
        frame.message_id
        for one, frame in zip(sent, frames, strict=True)
        if one.by in JS and frame.sender_id != one.by
    ] == []


def test_acknowledged_messages_reached_an_application(
    conversation: Conversation,
) -> None:
    """Each was received by another participant's application, and the lost one by none.

    The senders' own events say less: js counts one participant's filter twice.
    """
    monitor = Monitor()
    for batch in batches(conversation.records):
        monitor.read(*batch)
    net, host = conversation.net, conversation.host
    received = {
        *(one.payload for one in emitted(net, "pia", MessageReceived)),
        *(payload for name in JS for payload in host.received(name)),
    }
    frames = [decode(one.dispatch.message.payload) for one in net.transmissions]
    contents = {one.message_id: one.content for one in frames if one.content}
    acknowledged = {
        contents[one.message_id] for one in monitor.acknowledgements[CHANNEL]
    }
    assert LOST in contents.values()
    assert acknowledged
    assert acknowledged <= received
    assert LOST not in received
