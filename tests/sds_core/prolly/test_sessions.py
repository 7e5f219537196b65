"""Both protocols: exact, whatever breaks, and cheap."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sds_core.prolly.batched.client import BatchedClient
from sds_core.prolly.batched.server import BatchedServer
from sds_core.prolly.item import Item
from sds_core.prolly.outcome import DEFAULT_LIMITS
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.sessions import BATCHED, BOTH, Protocol, found, synchronise
from tests.support.prolly.strategies import FAN_OUTS, SETS

protocols = pytest.mark.parametrize("protocol", BOTH, ids=lambda one: one.name)


@given(here=SETS, there=SETS, fan_out=FAN_OUTS)
def test_the_batched_protocol_is_exact_too(
    here: set[Item], there: set[Item], fan_out: int
) -> None:
    """Both ways."""
    only_here, only_there = found(BATCHED, here, there, fan_out)
    assert list(only_here) == sorted(here - there)
    assert list(only_there) == sorted(there - here)


@pytest.mark.rule("sync-step-5")
@protocols
@given(
    messages=SETS, more=SETS, seed=st.integers(0, 9), fan_out=FAN_OUTS, data=st.data()
)
@settings(max_examples=60)
def test_a_broken_connection_loses_nothing(
    protocol: Protocol,
    messages: set[Item],
    more: set[Item],
    seed: int,
    fan_out: int,
    data: st.DataObject,
) -> None:
    """Broken again and again, also while the server's messages change."""
    chance = random.Random(seed)
    pool = sorted(messages | more)
    here = set(chance.sample(pool, len(pool) // 2))
    there = set(chance.sample(pool, len(pool) // 2))
    client = protocol.client(ProllyTree(here, fan_out), DEFAULT_LIMITS)
    for after in data.draw(st.lists(st.integers(0, 4), max_size=4)):
        server = protocol.server(ProllyTree(there, fan_out), DEFAULT_LIMITS)
        synchronise(client, server, break_after=after)
        if client.outcome is not None:
            break
        if pool and data.draw(st.booleans()):
            there.symmetric_difference_update({chance.choice(pool)})
    else:
        synchronise(client, protocol.server(ProllyTree(there, fan_out), DEFAULT_LIMITS))
    assert client.outcome is not None
    assert list(client.outcome.only_here) == sorted(here - there)
    assert list(client.outcome.only_there) == sorted(there - here)


@pytest.mark.rule("sync-step-6", "sync-fully")
@protocols
@given(
    steps=st.lists(
        st.tuples(st.booleans(), SETS, st.one_of(st.none(), st.integers(0, 3))),
        max_size=5,
    ),
    fan_out=FAN_OUTS,
)
@settings(max_examples=60)
def test_two_sides_end_with_the_same_messages(
    protocol: Protocol,
    steps: list[tuple[bool, set[Item], int | None]],
    fan_out: int,
) -> None:
    """Messages arrive, connections break, either side asks; then a whole session."""
    sides = [ProllyTree(fan_out=fan_out), ProllyTree(fan_out=fan_out)]
    everything: set[Item] = set()
    for is_first, arrived, break_after in [*steps, (True, set(), None)]:
        everything |= arrived
        asking, asked = (0, 1) if is_first else (1, 0)
        sides[asked] = sides[asked].changed(insert=arrived)
        client = protocol.client(sides[asking], DEFAULT_LIMITS)
        synchronise(client, protocol.server(sides[asked], DEFAULT_LIMITS), break_after)
        if client.outcome is not None:
            sides[asking] = sides[asking].changed(insert=client.outcome.only_there)
            sides[asked] = sides[asked].changed(insert=client.outcome.only_here)
    assert sides[0] == sides[1] == ProllyTree(everything, fan_out)


def test_messages_of_a_broken_connection_do_not_come_again() -> None:
    """An empty client is broken after one message of items of three."""
    items = [Item(n, n.to_bytes(32, "little")) for n in range(1, 50_000)]
    server = ProllyTree(items)
    client = BatchedClient(ProllyTree(), random.Random(1).randbytes)
    synchronise(client, BatchedServer(server), break_after=1)
    assert client.outcome is None
    again = synchronise(client, BatchedServer(server))
    assert client.outcome is not None
    assert list(client.outcome.only_there) == items
    whole = synchronise(
        BatchedClient(ProllyTree(), random.Random(1).randbytes), BatchedServer(server)
    )
    assert again.size < 0.65 * whole.size


@given(
    here=SETS,
    there=SETS,
    start=st.integers(-1, 14),
    end=st.integers(-1, 14),
    fan_out=FAN_OUTS,
)
def test_only_the_times_that_are_asked_for_are_compared(
    here: set[Item], there: set[Item], start: int, end: int, fan_out: int
) -> None:
    """From inclusive to exclusive."""
    client = BatchedClient(
        ProllyTree(here, fan_out), random.Random(2).randbytes, start, end
    )
    synchronise(client, BatchedServer(ProllyTree(there, fan_out)))
    assert client.outcome is not None
    wanted = {one for one in here | there if start <= one.timestamp_ns < end}
    assert list(client.outcome.only_here) == sorted((here - there) & wanted)
    assert list(client.outcome.only_there) == sorted((there - here) & wanted)


def test_differences_among_the_newest_messages_take_two_rounds() -> None:
    """The children of all tails go along with the first message."""
    items = [Item(10 * n, n.to_bytes(32, "little")) for n in range(1, 100_000)]
    server = ProllyTree(items)
    for lacking in (items[-1:], items[-30::3], items[-300:-200], items[-200::5]):
        client = BatchedClient(
            server.changed(delete=lacking), random.Random(3).randbytes
        )
        course = synchronise(client, BatchedServer(server))
        assert client.outcome is not None
        assert list(client.outcome.only_there) == lacking
        assert course.rounds <= 2


def test_too_much_for_a_frame_is_sent_rather_than_compared() -> None:
    """And what both have is not counted as a difference."""
    items = [Item(n, n.to_bytes(32, "little")) for n in range(1, 3_000)]
    limits = DEFAULT_LIMITS._replace(frame_bytes=4_000)
    client = BatchedClient(
        ProllyTree(items[::3], 2), random.Random(3).randbytes, limits=DEFAULT_LIMITS
    )
    server = BatchedServer(ProllyTree(items[1:], 2), limits)
    synchronise(client, server)
    assert client.outcome is not None
    assert list(client.outcome.only_here) == items[:1]
    assert set(client.outcome.only_there) == set(items[1:]) - set(items[::3])
