"""Reading stores over real HTTP: missed messages are found, nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

import msgspec
import pytest

from connectors.waku_rest.settings import Listen
from connectors.waku_rest.spool import Swept
from sds_core.mirror.figures import Source
from sds_core.mirror.selection import Skip
from sds_core.waku import WakuMessage
from tests.support.waku_node import NO_FAULT, ConformanceNode, Endpoint, Fault
from tests.support.waku_rest.rig import (
    SHARD,
    TOPIC,
    Clock,
    Rig,
    Running,
    calls,
    message,
    offer,
    until,
)

pytestmark = pytest.mark.slow

RigMaker = Callable[..., Rig]

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


@pytest.fixture
def clock() -> Clock:
    """Of the mirror and its nodes."""
    return Clock()


@pytest.fixture
def node(clock: Clock) -> Iterator[ConformanceNode]:
    """A node with a store."""
    with ConformanceNode(now_ns=clock.now_ns) as made:
        yield made


@pytest.fixture
def rig(make_rig: RigMaker, node: ConformanceNode, clock: Clock) -> Rig:
    """A new mirror."""
    return make_rig(node, now_ms=clock)


def store(node: ConformanceNode, *messages: WakuMessage) -> list[bytes]:
    """Have the store know messages; returns their hashes."""
    return [node.store_late(one, pubsub_topic=SHARD) for one in messages]


def given_by_store(node: ConformanceNode) -> Counter[bytes]:
    """How often the store gave each message."""
    return Counter(
        one.hash for one in node.handed_out if one.endpoint is Endpoint.STORE
    )


async def read(rig: Rig, node: ConformanceNode, clock: Clock, step_ms: int = 0) -> None:
    """Move the clock, and wait until the store is read up to then."""
    clock.now_ms += step_ms
    settled_ms = clock.now_ms - 5 * SECOND
    await until(lambda: rig.node(node).swept_ms == settled_ms)


async def asked_again(node: ConformanceNode) -> None:
    """Wait until the store was asked some more times."""
    before = calls(node, Endpoint.STORE)
    await until(lambda: calls(node, Endpoint.STORE) >= before + 4)


def reading(
    rig: Rig, node: ConformanceNode, clock: Clock, *steps_ms: int
) -> Callable[[Running], Awaitable[None]]:
    """The clock moves, and the store is read after each step."""

    async def script(running: Running) -> None:
        for step_ms in (0, *steps_ms):
            await read(rig, node, clock, step_ms)

    return script


def test_missed_messages_are_found_in_the_order_of_sending(
    rig: Rig, node: ConformanceNode, clock: Clock
) -> None:
    """Once each, and not before other nodes could have relayed them."""
    start_ms = clock.now_ms

    async def script(running: Running) -> None:
        await read(rig, node, clock)
        offer(node, *(message(n, start_ms + n * SECOND) for n in (4, 2, 3, 9)))
        await read(rig, node, clock, 10 * SECOND)
        assert rig.accepted == 3
        await read(rig, node, clock, 10 * SECOND)
        await asked_again(node)

    rig.sweep(script)
    offers = {one.message.timestamp_ns: one.hash for one in node.offers}
    assert rig.hashes == [offers[at] for at in sorted(offers)]
    assert rig.seqs == [1, 2, 3, 4]
    assert dict(rig.frames[0].headers)["source"] == b"store"
    assert set(given_by_store(node).values()) == {1}
    assert rig.node(node).swept_ms == clock.now_ms - 5 * SECOND


def test_received_messages_are_not_fetched(
    rig: Rig, node: ConformanceNode, clock: Clock
) -> None:
    """Nor are unwanted messages of the shard."""
    sent_ms = clock.now_ms + SECOND
    heard = [message(number, sent_ms) for number in range(5)]
    stranger = msgspec.structs.replace(message(9, sent_ms), payload=b"no frame")

    async def script(running: Running) -> None:
        await read(rig, node, clock)
        pairs = [(SHARD, one) for one in (*heard, stranger)]
        await running.intake.take(pairs, Source.RELAY)
        unheard = message(7, sent_ms)
        another = msgspec.structs.replace(stranger, payload=b"nor this")
        offer(node, *heard, stranger, unheard, another)
        await read(rig, node, clock, 10 * SECOND)
        await asked_again(node)

    rig.sweep(script)
    given = given_by_store(node)
    assert set(given.values()) == {1}
    assert len(given) == 2
    assert rig.figures.skipped[Skip.NOT_SDS] == 2
    assert rig.figures.duplicates[Source.STORE] == 0


@pytest.mark.parametrize(
    ("age_ms", "seen_after_ms"),
    [(15 * SECOND, 10 * SECOND), (4 * MINUTE, 150 * SECOND), (55 * MINUTE, HOUR // 2)],
)
def test_messages_that_reach_a_store_late_are_found(
    age_ms: int, seen_after_ms: int, node: ConformanceNode, clock: Clock, rig: Rig
) -> None:
    """The older a range, the less often it is swept."""

    async def script(running: Running) -> None:
        for step_ms in (0, HOUR, HOUR // 2):
            await read(rig, node, clock, step_ms)
        store(node, message(1, clock.now_ms - age_ms))
        await read(rig, node, clock, seen_after_ms)

    rig.sweep(script)
    assert [one.at_ms for one in rig.frames] == [clock.now_ms]


def test_new_mirror_reads_no_past(
    rig: Rig, node: ConformanceNode, clock: Clock
) -> None:
    """Unless the past is requested."""
    _, later = store(
        node, message(1, clock.now_ms - SECOND), message(2, clock.now_ms + SECOND)
    )
    rig.sweep(reading(rig, node, clock, 10 * SECOND, HOUR))
    assert rig.hashes == [later]


def test_new_mirror_reads_the_requested_past(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """In slices; a restart does not begin again."""
    hashes = store(
        node,
        *(message(n, clock.now_ms - n * HOUR - MINUTE) for n in (3, 2, 1)),
    )
    rig = make_rig(node, now_ms=clock, backfill_s=3 * 3_600.0)
    rig.sweep(reading(rig, node, clock))
    assert rig.hashes == hashes[1:]
    again = make_rig(node, now_ms=clock, backfill_s=9 * 3_600.0)
    again.sweep(reading(again, node, clock, 10 * SECOND))
    assert again.accepted == 0


def test_messages_sent_while_no_mirror_ran_are_found(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """However long that was, and without older messages."""
    rig = make_rig(node, now_ms=clock)

    async def hear(running: Running) -> None:
        await read(rig, node, clock)
        offer(node, *(message(n, clock.now_ms + SECOND) for n in range(3)))
        await read(rig, node, clock, 10 * SECOND)

    rig.sweep(hear)
    stopped_ms = clock.now_ms
    store(node, *(message(100 + n, stopped_ms + n * HOUR) for n in range(10)))
    clock.now_ms += 10 * HOUR
    again = make_rig(node, now_ms=clock)
    again.sweep(reading(again, node, clock))
    assert again.accepted == 10
    assert again.seqs == list(range(1, 14))


def test_forgotten_messages_are_not_read_again(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """Neither from a node that is new nor from one that returns."""
    rig = make_rig(node, now_ms=clock)
    old = [message(number, clock.now_ms + SECOND) for number in range(3)]

    async def hear(running: Running) -> None:
        await running.intake.take([(SHARD, one) for one in old], Source.RELAY)
        clock.now_ms += 3 * HOUR
        await running.intake.use(rig.spool.forget_before, clock.now_ms - HOUR)

    rig.take(hear)
    for backfill_s in (0.0, 86_400.0):
        with ConformanceNode(now_ns=clock.now_ns) as other:
            store(other, *old, message(50, clock.now_ms - MINUTE))
            again = make_rig(other, now_ms=clock, backfill_s=backfill_s)
            again.sweep(reading(again, other, clock, 10 * SECOND))
            assert again.accepted == (1 if backfill_s else 0)
    returned = make_rig(node, now_ms=clock)
    returned.spool.set_swept(node.url, Swept(1, clock.now_ms - 4 * HOUR))
    store(node, *old)
    returned.sweep(reading(returned, node, clock, 10 * SECOND))
    assert returned.accepted == 0


def test_busy_store_is_continued_at_the_same_page(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """Starting again each time might never end."""
    hashes = store(node, *(message(n, clock.now_ms - MINUTE + n) for n in range(250)))
    rig = make_rig(node, now_ms=clock, backfill_s=600.0)
    for fault in (
        Fault(status=429),
        Fault(store_status=503),
        Fault(status=503, retry_after="0"),
        Fault(cut=True),
    ):
        # Two pages of hashes and what they name; then the third does not come.
        node.inject(Endpoint.STORE, NO_FAULT, 2 if fault.status == 429 else 0)
        node.inject(Endpoint.STORE, fault)
    rig.sweep(reading(rig, node, clock))
    assert rig.hashes == hashes
    assert rig.node(node).failures[Source.STORE] == 4
    assert set(given_by_store(node).values()) == {1}


def test_query_restarts_if_the_store_lost_the_cursor(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """It may have deleted the cursor's message."""
    hashes = store(node, *(message(n, clock.now_ms - MINUTE + n) for n in range(250)))
    rig = make_rig(node, now_ms=clock, backfill_s=600.0)
    node.inject(Endpoint.STORE, NO_FAULT, 3)
    node.inject(Endpoint.STORE, Fault(status=500))
    rig.sweep(reading(rig, node, clock))
    assert rig.hashes == hashes
    # Three pages of hashes, of which the first twice, and five of what they name.
    good = [one for one in node.calls if one.status == 200]
    assert len(good) == 4 + 5


def test_repeating_cursors_end_the_query(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """The query starts again, as after any failure."""
    hashes = store(node, message(1, clock.now_ms - MINUTE))
    rig = make_rig(node, now_ms=clock, backfill_s=600.0)
    for cursor in ("11", "22", "11"):
        page = f'{{"statusCode":200,"paginationCursor":"0x{cursor * 32}"}}'
        node.inject(Endpoint.STORE, Fault(body=page.encode()))
    rig.sweep(reading(rig, node, clock))
    assert rig.hashes == hashes
    assert rig.node(node).failures[Source.STORE] == 1


def test_clock_set_back_stops_nothing(
    rig: Rig, node: ConformanceNode, clock: Clock
) -> None:
    """The store is read up to the new time, and on from there."""

    async def script(running: Running) -> None:
        await read(rig, node, clock)
        await read(rig, node, clock, 2 * HOUR)
        await read(rig, node, clock, -HOUR)
        for number in range(3):
            offer(node, message(number, clock.now_ms - 5 * SECOND))
            await read(rig, node, clock, MINUTE)

    rig.sweep(script)
    assert rig.seqs == [1, 2, 3]


def test_node_without_a_store_is_not_down(
    rig: Rig, node: ConformanceNode, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The listener decides that; the log says once what to do, and when it is over."""
    caplog.set_level("INFO", "sds-monitor")
    node.spoil(Endpoint.STORE, Fault(status=404))
    rig.node(node).is_up = True

    async def script(running: Running) -> None:
        await read(rig, node, clock)
        clock.now_ms += 10 * SECOND
        await until(lambda: rig.node(node).failures[Source.STORE] >= 4)
        assert rig.node(node).is_up
        node.heal()
        await read(rig, node, clock)

    rig.sweep(script)
    said, over = [one.message for one in caplog.records if one.name == "sds-monitor"]
    assert "switch on this protocol" in said
    assert re.fullmatch(rf"node {node.url}: its store answers again after \d+ s", over)


def test_stop_does_not_wait_for_a_long_query(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """An unfinished range is not recorded as read."""
    store(node, *(message(n, clock.now_ms - MINUTE + n) for n in range(250)))
    rig = make_rig(node, now_ms=clock, backfill_s=500.0)

    async def script(running: Running) -> None:
        await until(lambda: rig.accepted)

    rig.sweep(script)
    assert rig.accepted < 250
    swept = rig.spool.swept(node.url)
    assert swept is not None
    assert swept.up_to_ms == swept.from_ms
    again = make_rig(node, now_ms=clock)
    again.sweep(reading(again, node, clock))
    assert len(again.frames) == 250


def test_mirror_can_read_from_stores_only(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """The tap counts as alive as long as the store answers."""
    rig = make_rig(node, now_ms=clock, listen=Listen.NONE)

    async def script(running: Running) -> None:
        await until(lambda: rig.node(node).swept_ms)
        offer(node, message(1, clock.now_ms + SECOND))
        clock.now_ms += 2 * SECOND
        await until(lambda: rig.accepted == 1)
        await until(lambda: running.coverage.has_answer_since(clock.now_ms))
        assert rig.node(node).is_up
        node.spoil(Endpoint.STORE, Fault(status=500))
        await until(lambda: not rig.node(node).is_up)
        clock.now_ms += 1
        assert not running.coverage.has_answer_since(clock.now_ms)
        node.heal()
        await until(lambda: running.coverage.has_answer_since(clock.now_ms))

    rig.sweep(script)


def test_many_content_topics_need_several_queries(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """A store accepts ten per query."""
    topics = tuple(f"/app/1/room {number}/proto" for number in range(25))
    rig = make_rig(node, now_ms=clock, topics={SHARD: topics}, backfill_s=60.0)
    sent_ms = clock.now_ms - 30 * SECOND
    store(node, message(99, sent_ms, topic=TOPIC))
    store(node, *(message(n, sent_ms, topic=one) for n, one in enumerate(topics)))
    rig.sweep(reading(rig, node, clock))
    assert len(rig.frames) == len(topics)


def test_full_spool_pauses_the_sweep(
    make_rig: RigMaker, node: ConformanceNode, clock: Clock
) -> None:
    """At the next page, until there is space."""
    store(node, *(message(n, clock.now_ms - MINUTE + n) for n in range(150)))
    rig = make_rig(node, now_ms=clock, backfill_s=500.0, limit_bytes=1)

    async def script(running: Running) -> None:
        await until(lambda: rig.accepted == 100)
        assert running.intake.is_full
        written = await running.intake.use(rig.spool.pending, 1_000)
        await running.intake.use(rig.spool.written, written)
        await until(lambda: rig.accepted == 150)

    rig.sweep(script)
    assert rig.seqs == list(range(101, 151))
