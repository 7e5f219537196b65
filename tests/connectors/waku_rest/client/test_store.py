"""The client of a node's REST API over real HTTP: pages of its store."""

from __future__ import annotations

import pytest

from connectors.waku_rest.errors import BadAnswer, NodeRefused, NodeUnreachable
from connectors.waku_rest.store_query import StoreQuery
from sds_core.waku import WakuMessage
from tests.support.waku_node import ConformanceNode, Endpoint, Fault
from tests.support.waku_rest.asking import SHARD, TOPIC, ask, look, message, offer


def test_store_pages_lead_to_the_end(node: ConformanceNode) -> None:
    """Each message once, with its hash and topic, oldest first."""
    offered = offer(node, 7)
    found, cursor = [], None
    for _ in range(3):
        page = look(node, cursor, page_size=3)
        found += page.messages
        cursor = page.cursor
    assert cursor is None
    assert [one.message for one in found] == offered
    assert [one.hash for one in found] == [one.hash_on(SHARD) for one in offered]
    assert {one.pubsub_topic for one in found} == {SHARD}


def test_store_can_return_hashes_only(node: ConformanceNode) -> None:
    """The pubsub topic is that of the query."""
    (only,) = offer(node, 1)
    query = StoreQuery(pubsub_topic=SHARD)
    page = ask(node, lambda client: client.store_page(query, include_data=False))
    (stored,) = page.messages
    assert stored.hash == only.hash_on(SHARD)
    assert (stored.pubsub_topic, stored.message) == (SHARD, None)


def test_store_query_has_all_parameters(node: ConformanceNode) -> None:
    """Topics of any letters, both times, hashes, newest page first."""
    offered = offer(node, 4)
    other = message(9, "/app/1/other/proto")
    node.offer(other, pubsub_topic="/waku/2/rs/1/4")
    times = [one.timestamp_ns for one in offered]
    hashes = [offered[index].hash_on(SHARD) for index in (3, 0)]
    for query, wanted in (
        ({"pubsub_topic": SHARD}, offered),
        ({"content_topics": ["/x/1/y/z", other.content_topic]}, [other]),
        ({"content_topics": [TOPIC]}, offered),
        ({"start_ns": times[1], "end_ns": times[2]}, offered[1:3]),
        ({"hashes": hashes}, [offered[0], offered[3]]),
        ({"pubsub_topic": SHARD, "ascending": False, "page_size": 2}, offered[2:]),
    ):
        assert [one.message for one in look(node, **query).messages] == wanted


@pytest.mark.parametrize("fault", [Fault(duplicated=True), Fault(reordered=True)])
def test_store_answer_is_returned_unchanged(
    node: ConformanceNode, fault: Fault
) -> None:
    """Order and copies are left to the mirror."""
    offered = offer(node, 3)
    node.inject(Endpoint.STORE, fault)
    page = look(node)
    assert {one.message.payload for one in page.messages} == {
        one.payload for one in offered
    }
    assert len(page.messages) == (6 if fault.duplicated else 3)


def test_hashes_in_base64_are_read(node: ConformanceNode) -> None:
    """Older nodes write them so, also in cursors."""
    offered = offer(node, 2)
    node.inject(Endpoint.STORE, Fault(base64_hashes=True))
    page = look(node, page_size=1)
    assert page.cursor == offered[0].hash_on(SHARD)
    assert page.messages[0].hash == page.cursor


def test_computed_hash_replaces_a_wrong_one_of_the_store(node: ConformanceNode) -> None:
    """The message is used."""
    (only,) = offer(node, 1)
    node.inject(Endpoint.STORE, Fault(wrong_hash=True))
    page = look(node)
    assert page.messages[0].hash == only.hash_on(SHARD)


def test_unreadable_message_of_a_store_does_not_hide_the_others(
    node: ConformanceNode,
) -> None:
    """An invalid hash matters only if the hash cannot be computed."""
    stored = b'{"messageHash":"0x12","pubsubTopic":"t","message":%s}'
    good = stored % b'{"payload":"AQ==","contentTopic":"c"}'
    bad = [stored % b'{"payload":1}', b'{"messageHash":"0x12"}', b"{}"]
    offered = offer(node, 2)
    node.inject(Endpoint.STORE, Fault(extra=[good, *bad]))
    page = look(node)
    assert [one.message for one in page.messages] == [
        offered[0],
        WakuMessage(b"\1", "c"),
        offered[1],
    ]
    assert page.undecodable.count == len(bad)


def test_status_inside_a_store_answer_is_an_error(node: ConformanceNode) -> None:
    """HTTP says 200, but the body says that the store is busy, and how long."""
    fault = Fault(store_status=503, retry_after="7")
    node.inject(Endpoint.STORE, fault)
    with pytest.raises(NodeRefused, match="503") as caught:
        look(node)
    assert (caught.value.status, caught.value.retry_after_s) == (503, 7.0)
    assert caught.value.detail == "as injected"


def test_incomplete_store_answer_can_be_requested_again(
    node: ConformanceNode,
) -> None:
    """A store does not delete what it returned."""
    offered = offer(node, 3)
    node.inject(Endpoint.STORE, Fault(cut=True))
    with pytest.raises(NodeUnreachable):
        look(node)
    assert [one.message for one in look(node).messages] == offered


@pytest.mark.parametrize(
    "body",
    [
        b'{"statusCode":200,"messages":[],"paginationCursor":"0x12"}',
        b'{"statusCode":200,"messages":[],"paginationCursor":"0x%s"}' % (b"11" * 32),
        b'{"messages":[]}',
        b"[]",
    ],
)
def test_cursor_that_does_not_advance_is_an_error(
    node: ConformanceNode, body: bytes
) -> None:
    """A cursor must be a new hash, or a sweep would never end."""
    node.inject(Endpoint.STORE, Fault(body=body))
    with pytest.raises(BadAnswer):
        look(node, bytes.fromhex("11" * 32))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"content_topics": ["t"] * 11}, "10 content topics, not 11"),
        ({"hashes": [bytes(32)] * 51}, "50 hashes, not 51"),
        ({"page_size": 101}, "100 messages per page, not 101"),
        ({"page_size": 0}, "at least 1 message, not 0"),
        (
            {"content_topics": ["/a/1/b,c/d"]},
            "'/a/1/b,c/d': this topic contains a comma",
        ),
    ],
)
def test_query_that_does_not_fit_the_api_is_refused(
    query: dict[str, object], text: str
) -> None:
    """Otherwise a node could answer only part of it."""
    with pytest.raises(ValueError, match=text):
        StoreQuery(**query)
