"""Missing messages from a store: by their hints, and after connecting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import Cause, MessageChannel
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    ConnectionChanged,
    Dispatched,
    DispatchFailed,
    IrretrievableMessage,
    LimitReached,
    Limits,
    MessageReceived,
    Output,
    ReliableChannelCore,
    Restarted,
    RetrievalStrategy,
    Send,
    Start,
    Stop,
    StoreAnswered,
    StoreFailed,
)
from sds_core.reliable_channel.fetching import hashes_to_query
from sds_core.waku import WakuMessage
from sds_core.wire import decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.reliable_channel import (
    CHANNEL,
    ONLINE,
    OPTIONS,
    PROFILE,
    SHARD,
    TOPIC,
    emitted,
    network,
    of_kind,
    sent,
    started,
)

ONLY_STORE = replace(OPTIONS, retrieval=RetrievalStrategy.STORE, query_on_connect=False)
NO_QUERY = replace(ONLY_STORE, sync_min_interval_ms=0)
FREQUENCY_MS = OPTIONS.retrieve_frequency_ms


@pytest.mark.rule(
    "rc-retrieve",
    "rc-retrieve-detection",
    "rc-arch-missing",
    "rc-retrieve-hash",
    "rc-retrieve-pipeline",
)
@pytest.mark.rule("rc-retrieve-removed", "rc-hint-computed", "rc-hint-entry")
@pytest.mark.rule("rc-hint-used", "rc-map-1e")
@pytest.mark.rule("rc-retrieve-tracking")
def test_lost_message_comes_from_the_store_by_its_waku_hash() -> None:
    """The hint in the causal history is the hash under which the store has it."""
    net = network("alice", "bob", options=ONLY_STORE)
    net.losses.append(lambda one, _: one.dispatch.number == 1 and one.by == "alice")
    net.apply("alice", Send(b"lost"))
    net.run(SECOND)
    net.apply("alice", Send(b"next"))
    net.run(25 * SECOND)
    first = sent(net)[0].dispatch
    assert first.message_hash == first.message.hash_on(SHARD)
    received = [one.payload for one in emitted(net, "bob", MessageReceived)]
    assert received == [b"lost", b"next"]
    assert not sent(net, Cause.RETRY, Cause.REPAIR)
    assert net.channel("bob").missing == ()


@pytest.mark.rule("rc-connect")
def test_more_messages_than_may_wait_come_from_the_store() -> None:
    """The newest come first, so all others wait for older ones until these are read."""
    few = replace(PROFILE, incoming_limit=10)
    options = replace(OPTIONS, profile=few, causal_history_size=5)
    net = network("alice", "bob", options=options)
    net.run(SECOND)
    net.disconnect("bob")
    payloads = [b"%d" % number for number in range(40)]
    for payload in payloads:
        net.apply("alice", Send(payload))
        net.run(SECOND)
    net.connect("bob")
    net.run(10 * MINUTE)
    received = [one.payload for one in emitted(net, "bob", MessageReceived)]
    assert sorted(received) == sorted(payloads)
    assert emitted(net, "bob", IrretrievableMessage) == []


@pytest.mark.rule("rc-hint-computed")
def test_message_sent_at_once_after_another_names_its_hash() -> None:
    """Before the network has accepted the first one."""
    alice = started("alice", NO_QUERY)
    (first,) = alice.apply(Send(b"one"), START_MS).dispatches
    (second,) = alice.apply(Send(b"two"), START_MS).dispatches
    (entry,) = decode(second.message.payload).causal_history
    assert entry.retrieval_hint == first.message_hash


@pytest.mark.rule("rc-hint-computed")
def test_hint_is_the_hash_of_the_retry_once_that_is_accepted() -> None:
    """The first message may not have reached any store."""
    alice = started("alice", NO_QUERY)
    alice.apply(Send(b"one"), START_MS)
    alice.apply(DispatchFailed(1), START_MS)
    late_ms = START_MS + NO_QUERY.retry_interval_ms
    (retry,) = alice.apply(Advance(), late_ms).dispatches
    alice.apply(Dispatched(retry.number), late_ms)
    (after,) = alice.apply(Send(b"two"), late_ms).dispatches
    (entry,) = decode(after.message.payload).causal_history
    assert entry.retrieval_hint == retry.message_hash


def test_repair_that_was_due_while_offline_is_not_sent_late() -> None:
    """Whoever asked asks again."""
    options = replace(NO_QUERY, retrieval=RetrievalStrategy.SDS_R, max_retry_attempts=0)
    net = network("alice", "bob", options=replace(options, sync_min_interval_ms=30_000))
    net.losses.append(lambda one, _: one.dispatch.number == 1 and one.by == "alice")
    net.apply("alice", Send(b"lost"))
    net.run(SECOND)
    net.apply("alice", Send(b"next"))

    def asks() -> bool:
        return any(
            decode(one.dispatch.message.payload).repair_request for one in sent(net)
        )

    while not asks():
        net.run(100)
    net.run(300)
    net.disconnect("alice")
    net.run(MINUTE)
    net.connect("alice")
    net.run(100)
    assert sent(net, Cause.REPAIR) == []
    net.run(10 * MINUTE)
    assert len(emitted(net, "bob", MessageReceived)) == 2


@pytest.mark.parametrize(
    ("strategy", "causes"),
    [
        (RetrievalStrategy.SDS_R, {Cause.REPAIR}),
        (RetrievalStrategy.STORE, set()),
    ],
)
def test_strategy_decides_who_is_asked(
    strategy: RetrievalStrategy, causes: set[Cause]
) -> None:
    """The other way stays unused, and the message comes."""
    options = replace(
        # Retries would bring it as well.
        OPTIONS,
        retrieval=strategy,
        query_on_connect=False,
        max_retry_attempts=0,
    )
    net = network("alice", "bob", options=options)
    net.losses.append(lambda one, _: one.dispatch.number == 1 and one.by == "alice")
    net.keeps = strategy.uses_store
    net.apply("alice", Send(b"lost"))
    net.run(SECOND)
    net.apply("alice", Send(b"next"))
    net.run(10 * MINUTE)
    assert len(emitted(net, "bob", MessageReceived)) == 2
    assert {one.dispatch.cause for one in sent(net)} & {Cause.REPAIR} == causes


def missing(core: ReliableChannelCore, number: int, now_ms: int = START_MS) -> None:
    """Have a channel hear of messages that it has not got."""
    speaker = MessageChannel(
        CHANNEL,
        f"speaker {now_ms}",
        now_ms=now_ms,
        random=Random(1),
        profile=replace(PROFILE, causal_history_size=number, history_limit=number),
    )
    for index in range(number):
        step = speaker.send(b"never arrives %d" % index, now_ms)
        speaker.note_retrieval_hint(step.broadcasts[0].message_id, b"%032d" % index)
    (broadcast,) = speaker.send(b"names them", now_ms).broadcasts
    message = WakuMessage(broadcast.value, TOPIC, now_ms * 1_000_000)
    core.apply(Arrived(message, message.hash_on(SHARD)), now_ms)


def run_to(core: ReliableChannelCore, at_ms: int) -> list[Output]:
    """Do everything that is due until a time."""
    outputs = []
    while core.next_deadline_ms <= at_ms:
        outputs.append(core.apply(Advance(), int(core.next_deadline_ms)))
    return outputs


@pytest.mark.rule(
    "rc-retrieve-periodic", "rc-retrieve-query", "rc-default-retrieve", "rc-limit-1c"
)
@pytest.mark.rule("rc-start")
def test_queries_are_periodic_and_one_at_a_time() -> None:
    """While one is under way there is no other, and then after the interval."""
    bob = started("bob", NO_QUERY, has_store=True)
    missing(bob, 3)
    (first,) = [q for o in run_to(bob, START_MS + FREQUENCY_MS) for q in o.queries]
    assert sorted(first.hashes) == [b"%032d" % index for index in range(3)]
    assert not any(o.queries for o in run_to(bob, START_MS + 5 * FREQUENCY_MS))
    now_ms = START_MS + 5 * FREQUENCY_MS
    (second,) = bob.apply(StoreFailed(first.number), now_ms).queries
    assert second.hashes == first.hashes
    bob.apply(StoreAnswered(second.number, []), now_ms)
    assert not any(o.queries for o in run_to(bob, now_ms + FREQUENCY_MS - 1))
    assert any(o.queries for o in run_to(bob, now_ms + FREQUENCY_MS))


def asked(hints: Mapping[str, tuple[bytes, ...]]) -> list[list[int]]:
    """The hashes of three queries of two hashes each."""
    queries = []
    asked_ms: dict[str, int] = {}
    for now_ms in range(3):
        hashes, asked_ms = hashes_to_query(hints, asked_ms, 2, START_MS + now_ms)
        queries.append([int(one) for one in hashes])
    return queries


@pytest.mark.rule("rc-limit-1a", "rc-limit-1c")
def test_query_names_at_most_so_many_and_takes_turns() -> None:
    """Those that were not asked for longest come first."""
    hints = {f"m{i}": (b"%032d" % i,) for i in range(4)} | {"no hint": ()}
    assert asked(hints) == [[0, 1], [2, 3], [0, 1]]


@pytest.mark.rule("rc-limit-1a", "rc-limit-1c")
def test_messages_take_turns_if_the_clock_was_ahead_before_a_restart() -> None:
    """Those that were asked for then count as never asked for."""
    options = replace(NO_QUERY, limits=Limits(hashes_per_query=1))
    bob = started("bob", options, has_store=True)
    missing(bob, 3)
    run_to(bob, START_MS + FREQUENCY_MS)
    now_ms = START_MS - 60 * MINUTE
    for one in (Restarted(), Start(), CONNECTED):
        bob.apply(one, now_ms)
    queried = []
    for _ in range(3):
        now_ms += FREQUENCY_MS
        (query,) = [one for out in run_to(bob, now_ms) for one in out.queries]
        queried += query.hashes
        bob.apply(StoreAnswered(query.number, []), now_ms)
    assert sorted(queried) == [b"%032d" % index for index in range(3)]


@pytest.mark.rule("rc-limit-1a")
def test_query_names_the_hints_of_whole_messages() -> None:
    """One that has more than fit into a query alone is asked for with its newest."""
    hints = {
        "m0": tuple(b"%032d" % i for i in (3, 2, 1)),
        "m1": (b"%032d" % 4, b"short", b"%032d" % 4),
        "m2": (b"%032d" % 5,),
    }
    assert asked(hints) == [[3, 2], [4, 5], [3, 2]]


@pytest.mark.rule("rc-retrieve-hash", "rc-retrieve-query")
def test_message_comes_by_the_hash_of_a_retry() -> None:
    """Its first copy reached no store, and others go on naming that one's hash."""
    bob = started("bob", replace(NO_QUERY, causal_history_size=1), has_store=True)
    speaker = MessageChannel(
        CHANNEL, "alice", now_ms=START_MS, random=Random(1), profile=PROFILE
    )
    (lost,) = speaker.send(b"lost", START_MS, message_id="lost").broadcasts
    first, retry = (
        WakuMessage(lost.value, TOPIC, at_ms * 1_000_000)
        for at_ms in (START_MS, START_MS + 30_000)
    )
    for number, copy in enumerate((first, retry, first)):
        speaker.note_retrieval_hint("lost", copy.hash_on(SHARD))
        (step,) = speaker.sync(START_MS + number).broadcasts
        naming = WakuMessage(step.value, TOPIC, START_MS * 1_000_000 + number)
        bob.apply(Arrived(naming, naming.hash_on(SHARD)), START_MS)
    outputs = run_to(bob, START_MS + FREQUENCY_MS)
    (query,) = [one for output in outputs for one in output.queries]
    assert query.hashes == (first.hash_on(SHARD), retry.hash_on(SHARD))
    found = [Arrived(retry, retry.hash_on(SHARD))]
    now_ms = START_MS + FREQUENCY_MS
    assert bob.sync_status == (0, 1, 0)
    bob.apply(StoreAnswered(query.number, found), now_ms)
    run_to(bob, now_ms + SECOND)
    assert bob.missing == ()
    assert bob.sync_status == (1, 0, 0)


@pytest.mark.rule("rc-limit-1a")
def test_missing_messages_are_limited() -> None:
    """The oldest counts as lost."""
    options = replace(NO_QUERY, limits=Limits(missing=2))
    bob = started("bob", options, has_store=True)
    missing(bob, 3)
    assert len(bob.missing) == 2


@pytest.mark.rule("rc-events-irretrievable", "rc-retrieve-irretrievable")
@pytest.mark.rule("rc-timeout-lost", "rc-type-history-entry", "rc-default-sweep")
@pytest.mark.rule("rc-sds-tasks-1b", "rc-perf-sweep")
def test_message_that_stays_missing_is_irretrievable() -> None:
    """After the timeout, at the next sweep; what waited for it is received."""
    options = replace(NO_QUERY, timeout_for_lost_messages_ms=MINUTE + SECOND)
    bob = started("bob", options)
    missing(bob, 1)
    sweep_ms = START_MS + MINUTE + 5 * SECOND
    early = run_to(bob, sweep_ms - 1)
    assert not any(output.events for output in early)
    assert bob.apply(Advance(), sweep_ms - 1).events == []
    late = run_to(bob, sweep_ms)
    events = [event for output in late for event in output.events]
    (lost,) = of_kind(events, IrretrievableMessage)
    assert lost.entry.retrieval_hint == b"%032d" % 0
    assert [one.payload for one in of_kind(events, MessageReceived)] == [b"names them"]


@pytest.mark.rule("rc-timeout-lost")
@pytest.mark.parametrize("timeout_ms", [None, 0])
def test_without_a_timeout_nothing_is_irretrievable(timeout_ms: int | None) -> None:
    """Zero disables it as well."""
    options = replace(NO_QUERY, timeout_for_lost_messages_ms=timeout_ms)
    bob = started("bob", options)
    missing(bob, 1)
    outputs = run_to(bob, START_MS + 24 * 60 * MINUTE)
    assert not any(output.events for output in outputs)


@pytest.mark.rule("rc-timeout-lost")
def test_time_while_the_process_is_off_does_not_count() -> None:
    """After a restart the rest of the timeout passes before the message is lost."""
    options = replace(NO_QUERY, timeout_for_lost_messages_ms=10 * MINUTE)
    bob = started("bob", options)
    missing(bob, 1)
    run_to(bob, START_MS + 5 * MINUTE)
    bob = ReliableChannelCore.restore(bob.snapshot(), pubsub_topic="", options=options)
    back_ms = START_MS + 60 * MINUTE
    for event in (Restarted(), Start(), ONLINE):
        bob.apply(event, back_ms)
    early = run_to(bob, back_ms + 5 * MINUTE - SECOND)
    late = run_to(bob, back_ms + 5 * MINUTE + 2 * OPTIONS.sweep_in_buf_interval_ms)
    for outputs, count in (early, 0), (late, 1):
        events = [event for output in outputs for event in output.events]
        assert len(of_kind(events, IrretrievableMessage)) == count


# -- query on connect


def channel_message(number: int, *, of_channel: bool = True) -> Arrived:
    """A stored message with a causal history, of this channel or another one."""
    now_ms = START_MS - number
    speaker = MessageChannel(
        CHANNEL if of_channel else "coffee",
        "alice",
        now_ms=now_ms,
        random=Random(number),
        profile=PROFILE,
    )
    speaker.send(b"first", now_ms)
    (broadcast,) = speaker.send(b"second", now_ms).broadcasts
    message = WakuMessage(broadcast.value, TOPIC, now_ms * 1_000_000)
    return Arrived(message, message.hash_on(SHARD))


QUERYING = replace(NO_QUERY, query_on_connect=True)
CONNECTED = ConnectionChanged(is_online=True, has_store=True)
NO_STORE = ConnectionChanged(is_online=True, has_store=False)
CURSOR = bytes(32)


@pytest.mark.rule("rc-connect-trigger-1a", "rc-connect", "rc-default-query-on-connect")
def test_store_that_becomes_available_is_queried() -> None:
    """By time, for at most thirty days."""
    bob = started("bob", QUERYING)
    assert bob.next_deadline_ms > START_MS
    (query,) = bob.apply(CONNECTED, START_MS + SECOND).queries
    assert query.hashes == ()
    assert query.end_ms == START_MS + SECOND
    assert query.end_ms - query.start_ms == QUERYING.query_on_connect_range_ms
    bob.apply(StoreAnswered(query.number, []), START_MS + SECOND)
    bob.apply(NO_STORE, START_MS + MINUTE)
    assert len(bob.apply(CONNECTED, START_MS + MINUTE).queries) == 1


@pytest.mark.rule("rc-connect")
def test_whole_period_is_queried_if_the_clock_was_ahead_before_a_restart() -> None:
    """How far the last query reached is not known."""
    bob = started("bob", QUERYING)
    (query,) = bob.apply(CONNECTED, START_MS).queries
    bob.apply(StoreAnswered(query.number, []), START_MS)
    now_ms = START_MS - MINUTE
    bob.apply(Restarted(), now_ms)
    bob.apply(Start(), now_ms)
    (again,) = bob.apply(CONNECTED, now_ms).queries
    assert again.end_ms == now_ms
    assert again.end_ms - again.start_ms == QUERYING.query_on_connect_range_ms


@pytest.mark.rule("rc-connect-option")
def test_query_on_connect_can_be_switched_off() -> None:
    """The store is then only asked for what is missing."""
    bob = started("bob", NO_QUERY)
    assert bob.apply(CONNECTED, START_MS).queries == []
    assert not any(o.queries for o in run_to(bob, START_MS + 60 * MINUTE))


@pytest.mark.rule("rc-connect-stop")
def test_query_stops_at_a_message_of_the_channel() -> None:
    """It has a causal history, from which the rest is found missing."""
    bob = started("bob", QUERYING)
    (query,) = bob.apply(CONNECTED, START_MS).queries
    page = [channel_message(1, of_channel=False), channel_message(2)]
    output = bob.apply(StoreAnswered(query.number, page, CURSOR), START_MS)
    assert output.queries == []
    assert [e for o in run_to(bob, START_MS + SECOND) for e in o.events] == []
    assert len(bob.missing) == 1


@pytest.mark.rule("rc-connect-continue")
def test_query_goes_on_over_pages_of_other_channels() -> None:
    """Page by page, until the last."""
    bob = started("bob", QUERYING)
    (query,) = bob.apply(CONNECTED, START_MS).queries
    for number in range(3):
        page = [channel_message(number, of_channel=False)]
        answer = StoreAnswered(query.number, page, CURSOR)
        (after,) = bob.apply(answer, START_MS).queries
        assert (after.cursor, after.start_ms, after.end_ms) == (
            CURSOR,
            query.start_ms,
            query.end_ms,
        )
        query = after
    last = StoreAnswered(query.number, [channel_message(9, of_channel=False)])
    assert bob.apply(last, START_MS).queries == []


@pytest.mark.rule("rc-connect-stop")
def test_message_without_a_history_does_not_stop_the_query() -> None:
    """Nothing can be found missing by it."""
    bob = started("bob", QUERYING)
    (query,) = bob.apply(CONNECTED, START_MS).queries
    speaker = MessageChannel(
        CHANNEL, "alice", now_ms=START_MS, random=Random(1), profile=PROFILE
    )
    (broadcast,) = speaker.send(b"first", START_MS).broadcasts
    page = [Arrived(WakuMessage(broadcast.value, TOPIC))]
    answer = StoreAnswered(query.number, page, CURSOR)
    assert len(bob.apply(answer, START_MS).queries) == 1


@pytest.mark.rule("rc-connect-stop")
def test_own_message_does_not_stop_the_query() -> None:
    """It says nothing about what others sent after it."""
    alice = started("alice", QUERYING)
    (query,) = alice.apply(CONNECTED, START_MS).queries
    answer = StoreAnswered(query.number, [channel_message(1)], CURSOR)
    assert len(alice.apply(answer, START_MS).queries) == 1


@pytest.mark.rule("rc-limit-1c")
def test_pages_of_one_query_are_limited() -> None:
    """A topic full of other channels' messages is not read to its begin."""
    bob = started("bob", replace(QUERYING, limits=Limits(pages_per_query=2)))
    (query,) = bob.apply(CONNECTED, START_MS).queries
    (query,) = bob.apply(StoreAnswered(query.number, [], CURSOR), START_MS).queries
    answer = StoreAnswered(query.number, [], CURSOR)
    assert bob.apply(answer, START_MS).queries == []


@pytest.mark.rule("rc-connect-trigger-1b", "rc-connect-trigger-1c")
def test_query_is_repeated_after_being_offline_and_after_the_threshold() -> None:
    """It covers the time since the last one, with the drift of clocks."""
    bob = started("bob", QUERYING)
    (first,) = bob.apply(CONNECTED, START_MS).queries
    bob.apply(StoreAnswered(first.number, []), START_MS)
    assert bob.apply(CONNECTED, START_MS + MINUTE).queries == []
    bob.apply(ConnectionChanged(is_online=False, has_store=False), START_MS + MINUTE)
    online_ms = START_MS + 2 * MINUTE
    (second,) = bob.apply(CONNECTED, online_ms).queries
    assert second.start_ms == first.end_ms - 20 * SECOND
    bob.apply(StoreAnswered(second.number, []), online_ms)
    threshold_ms = online_ms + 5 * MINUTE
    assert not any(o.queries for o in run_to(bob, threshold_ms - 1))
    queries = [q for o in run_to(bob, threshold_ms) for q in o.queries]
    assert len(queries) == 1


@pytest.mark.rule("rc-limit-1c")
def test_flapping_connection_does_not_flood_the_store() -> None:
    """Between two queries there is at least the interval of retrieval."""
    bob = started("bob", QUERYING)
    times_ms = []
    for now_ms in range(START_MS, START_MS + MINUTE, SECOND):
        bob.apply(NO_STORE, now_ms)
        for query in bob.apply(CONNECTED, now_ms).queries:
            times_ms.append(now_ms - START_MS)
            bob.apply(StoreAnswered(query.number, []), now_ms)
    assert times_ms == list(range(0, MINUTE, FREQUENCY_MS))


def test_failed_query_on_connect_is_made_again() -> None:
    """For the same time."""
    bob = started("bob", QUERYING)
    (first,) = bob.apply(CONNECTED, START_MS).queries
    bob.apply(StoreFailed(first.number), START_MS)
    queries = [q for o in run_to(bob, START_MS + FREQUENCY_MS) for q in o.queries]
    assert [one.start_ms for one in queries] == [
        START_MS + FREQUENCY_MS - QUERYING.query_on_connect_range_ms
    ]


@pytest.mark.rule("rc-connect")
def test_participant_catches_up_after_being_offline() -> None:
    """With everything that was said meanwhile, in order."""
    net = network("alice", "bob")
    net.run(SECOND)
    net.disconnect("bob")
    said = [b"message %d" % number for number in range(20)]
    for payload in said:
        net.apply("alice", Send(payload))
        net.run(SECOND)
    net.connect("bob")
    net.run(20 * SECOND)
    assert [one.payload for one in emitted(net, "bob", MessageReceived)] == said


@pytest.mark.rule("rc-stop")
def test_answer_after_the_stop_is_ignored() -> None:
    """So is one to a query that was never made."""
    bob = started("bob", QUERYING)
    (query,) = bob.apply(CONNECTED, START_MS).queries
    page = [channel_message(1)]
    bob.apply(StoreAnswered(query.number + 1, page), START_MS)
    bob.apply(Stop(), START_MS)
    bob.apply(Start(), START_MS)
    bob.apply(StoreAnswered(query.number, page), START_MS)
    run_to(bob, START_MS + MINUTE)
    assert bob.missing == ()


@pytest.mark.rule(
    "rc-perf-throttle",
    "rc-sds-tasks-1a",
    "rc-arch-tasks",
    "rc-default-process",
    "rc-perf-lazy",
)
def test_received_messages_are_processed_at_most_once_a_second() -> None:
    """The first at once; those within the second together at its end."""
    bob = started("bob", NO_QUERY)
    arrivals = []
    for number in range(4):
        speaker = MessageChannel(
            CHANNEL, f"s{number}", now_ms=START_MS, random=Random(1), profile=PROFILE
        )
        (broadcast,) = speaker.send(b"%d" % number, START_MS).broadcasts
        arrivals.append(Arrived(WakuMessage(broadcast.value, TOPIC)))
    received = [
        len(of_kind(bob.apply(one, START_MS + 100 * index).events, MessageReceived))
        for index, one in enumerate(arrivals)
    ]
    assert received == [1, 0, 0, 0]
    assert bob.next_deadline_ms == START_MS + SECOND
    assert len(bob.apply(Advance(), START_MS + SECOND).events) == 3


def test_messages_beyond_the_intake_are_dropped_and_reported() -> None:
    """SDS finds them missing later."""
    bob = started("bob", replace(NO_QUERY, limits=Limits(intake=2)))
    message = channel_message(1)
    bob.apply(message, START_MS)
    events = [bob.apply(message, START_MS + 1).events for _ in range(3)]
    assert events == [[], [], [LimitReached("intake")]]
