"""The conformance node and its log, on which tests of the mirror rely."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from sds_core.waku import WakuMessage
from tests.support.waku_node import Cause, ConformanceNode, Endpoint, Fault

SHARD, OTHER_SHARD = "/waku/2/rs/1/3", "/waku/2/rs/1/4"
TOPIC = "/app/1/chat/proto"
S = 1_000_000_000


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now_ns = 1_786_276_990 * S

    def __call__(self) -> int:
        """Tell the time, Unix ns."""
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    """The node's clock."""
    return Clock()


@pytest.fixture
def node(clock: Clock) -> Iterator[ConformanceNode]:
    """A node with a small cache."""
    with ConformanceNode(relay_capacity=3, now_ns=clock) as made:
        yield made


def message(clock: Clock, age_s: int = 0, **fields: Any) -> WakuMessage:
    """A message of some seconds ago."""
    time_ns = clock.now_ns - age_s * S
    return WakuMessage(f"sent {time_ns}".encode(), TOPIC, time_ns, **fields)


def subscribe(node: ConformanceNode, *topics: str) -> None:
    """Have the node cache what is relayed on these topics."""
    url = f"{node.url}/relay/v1/subscriptions"
    assert httpx.post(url, json=topics).status_code == 200


def take(node: ConformanceNode, topic: str = SHARD) -> list[int]:
    """Read a page; returns the times of its messages, Unix ns."""
    answer = httpx.get(f"{node.url}/relay/v1/messages/{quote(topic, safe='')}")
    assert answer.status_code == 200
    return [one["timestamp"] for one in answer.json()]


def look(node: ConformanceNode, **parameters: Any) -> dict[str, Any]:
    """Read a page of the store."""
    answer = httpx.get(f"{node.url}/store/v3/messages", params=parameters)
    assert answer.status_code == 200
    told: dict[str, Any] = answer.json()
    return told


def test_overflow_evicts_the_oldest_by_its_senders_time(
    node: ConformanceNode, clock: Clock
) -> None:
    """Over all topics, whenever a message arrived; the store may have it."""
    subscribe(node, SHARD, OTHER_SHARD)
    oldest = message(clock, 9)
    for one, topic in (
        (message(clock, 5), SHARD),
        (oldest, OTHER_SHARD),
        (message(clock, 3, ephemeral=True), SHARD),
        (message(clock, 1), SHARD),
        (message(clock, 0), SHARD),
    ):
        node.offer(one, pubsub_topic=topic)
    ages_s = [(clock.now_ns - time_ns) // S for time_ns in take(node)]
    assert ages_s == [3, 1, 0]
    assert take(node, OTHER_SHARD) == []
    assert [one.cause for one in node.dropped] == [Cause.OVERFLOW] * 2
    assert node.dropped[0].hash == oldest.hash_on(OTHER_SHARD)
    assert node.lost() == set()


def test_message_that_only_the_cache_had_is_lost_by_overflow(
    node: ConformanceNode, clock: Clock
) -> None:
    """For example an ephemeral message, or one with a wrong clock."""
    subscribe(node, SHARD)
    for one in (
        message(clock, 10, ephemeral=True),
        message(clock, 30),
        *(message(clock, age_s) for age_s in (1, 2, 3)),
    ):
        node.offer(one, pubsub_topic=SHARD)
    assert node.lost() == {one.hash for one in node.offers[:2]}
    assert node.offered_to_anyone() == {one.hash for one in node.offers[2:]}


def test_identical_messages_are_one_and_a_page_is_read_once(
    node: ConformanceNode, clock: Clock
) -> None:
    """After the read, the same message is cached again."""
    subscribe(node, SHARD)
    one = message(clock, ephemeral=True)
    for _ in range(2):
        node.offer(one, pubsub_topic=SHARD)
    assert take(node) == [one.timestamp_ns]
    assert take(node) == []
    assert node.only_in_pages() == {one.hash_on(SHARD)}
    node.offer(one, pubsub_topic=SHARD)
    assert take(node) == [one.timestamp_ns]


def test_store_refuses_bad_clocks_and_ephemerals_except_by_sync(
    node: ConformanceNode, clock: Clock
) -> None:
    """The limit is 20 s either way; sync adds messages of the past."""
    ages_s = (21, 20, 0, -20, -21)
    for age_s in ages_s:
        node.offer(message(clock, age_s), pubsub_topic=SHARD)
        node.offer(message(clock, age_s, ephemeral=True), pubsub_topic=SHARD)
    node.store_late(message(clock, 900), pubsub_topic=SHARD)
    found = look(node, includeData="true")["messages"]
    assert [(clock.now_ns - one["message"]["timestamp"]) // S for one in found] == [
        900,
        20,
        0,
        -20,
    ]


def test_store_pages_by_cursor_in_both_directions(
    node: ConformanceNode, clock: Clock
) -> None:
    """By default 20 hashes a page, at most 100."""
    hashes = [
        f"0x{node.store_late(message(clock, age_s), pubsub_topic=SHARD).hex()}"
        for age_s in reversed(range(130))
    ]
    assert look(node, ascending="true")["messages"] == [
        {"messageHash": text} for text in hashes[:20]
    ]
    for ascending, page_1, page_2 in (
        ("true", hashes[:100], hashes[100:]),
        ("false", hashes[30:], hashes[:30]),
    ):
        first = look(node, ascending=ascending, pageSize=500)
        cursor = first["paginationCursor"]
        second = look(node, ascending=ascending, pageSize=500, cursor=cursor)
        assert [one["messageHash"] for one in first["messages"]] == page_1
        assert [one["messageHash"] for one in second["messages"]] == page_2
        assert "paginationCursor" not in second


def test_restart_forgets_all_but_the_store(node: ConformanceNode, clock: Clock) -> None:
    """Caches, subscriptions and messages meanwhile; the address stays."""
    subscribe(node, SHARD)
    url = node.url
    kept, gone = message(clock, 1), message(clock, 2, ephemeral=True)
    for one in (kept, gone):
        node.offer(one, pubsub_topic=SHARD)
    node.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
    missed = message(clock)
    node.offer(missed, pubsub_topic=SHARD)
    node.start()
    assert node.url == url
    answer = httpx.get(f"{url}/relay/v1/messages/{quote(SHARD, safe='')}")
    assert answer.status_code == 404
    assert [one.arrived for one in node.offers] == [True, True, False]
    assert [one.cause for one in node.dropped] == [Cause.RESTART] * 2
    assert node.lost() == {gone.hash_on(SHARD)}
    assert node.stored.keys() == {kept.hash_on(SHARD)}


def test_message_of_an_unsubscribed_topic_is_only_in_the_store(
    node: ConformanceNode, clock: Clock
) -> None:
    """It is lost if the store refuses it."""
    for one in (message(clock, 1), message(clock, 2, ephemeral=True)):
        node.offer(one, pubsub_topic=SHARD)
    assert [one.cause for one in node.dropped] == [Cause.UNSUBSCRIBED] * 2
    assert node.lost() == {node.offers[1].hash}
    subscribe(node, SHARD)
    assert take(node) == []


def test_page_that_did_not_arrive_counts_as_dropped(
    node: ConformanceNode, clock: Clock
) -> None:
    """In part if it was cut, completely if nobody waited for it."""
    subscribe(node, SHARD)
    url = f"{node.url}/relay/v1/messages/{quote(SHARD, safe='')}"
    patience = httpx.Timeout(10, read=2)
    for fault in (Fault(cut=True), Fault(delay_s=3)):
        for age_s in (1, 2):
            node.offer(message(clock, age_s, ephemeral=True), pubsub_topic=SHARD)
        node.inject(Endpoint.RELAY, fault)
        with pytest.raises(httpx.TransportError):
            httpx.get(url, timeout=patience)
        clock.now_ns += S
    deadline = time.monotonic() + 60
    while len(node.dropped) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    hashes = [one.hash for one in node.offers]
    assert [one.hash for one in node.handed_out] == hashes[:1]
    assert {one.hash for one in node.dropped} == set(hashes[1:])
    assert {one.cause for one in node.dropped} == {Cause.ANSWER}


def test_filter_caches_fifty_messages(clock: Clock) -> None:
    """Of its content topics, whatever the capacity of the relay cache."""
    with ConformanceNode(relay_capacity=100, now_ns=clock) as node:
        subscribe(node, SHARD)
        asked = {"requestId": "1", "contentFilters": [TOPIC], "pubsubTopic": SHARD}
        httpx.post(f"{node.url}/filter/v2/subscriptions", json=asked)
        for age_s in range(60):
            one = message(clock, age_s)
            node.offer(one, pubsub_topic=SHARD)
            other = msgspec.structs.replace(one, content_topic="/app/1/other/proto")
            node.offer(other, pubsub_topic=SHARD)
        answer = httpx.get(f"{node.url}/filter/v2/messages/{quote(TOPIC, safe='')}")
        assert len(answer.json()) == 50
        assert len(take(node)) == 100
    drops = Counter(one.endpoint for one in node.dropped)
    assert drops == {Endpoint.FILTER: 10, Endpoint.RELAY: 20}


def test_every_message_is_handed_out_dropped_or_cached(
    node: ConformanceNode, clock: Clock
) -> None:
    """Exactly one of them, even with many threads."""
    subscribe(node, SHARD)
    done = threading.Event()

    def read() -> None:
        with httpx.Client() as client:
            while not done.is_set():
                client.get(f"{node.url}/relay/v1/messages/{quote(SHARD, safe='')}")

    def feed(feeder: int) -> None:
        for number in range(100):
            one = message(clock, feeder * 100 + number, ephemeral=True)
            node.offer(one, pubsub_topic=SHARD)

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(4) as feeders:
        list(feeders.map(feed, range(4)))
    done.set()
    reader.join()
    take(node)
    ended = Counter(one.hash for one in (*node.handed_out, *node.dropped))
    assert ended == Counter(one.hash for one in node.offers)
    assert len(ended) == 400
