"""The priority queue of the repair buffers, and what a full buffer costs."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from math import log2
from random import Random
from typing import Any

import pytest

from sds_core.message_channel import AfterRequest, Eviction, Profile
from sds_core.message_channel.repair import (
    PriorityQueue,
    RepairRequests,
    RepairResponses,
)
from sds_core.wire import HistoryEntry
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import CHANNEL, SPEC, participant, receive

FULL = SPEC.repair_buffer_limit


class Counted(int):
    """A time that counts how often any of its kind was compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        """Count, and compare."""
        Counted.comparisons += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        """Count, and compare."""
        Counted.comparisons += 1
        return int(self) > int(other)

    def __neg__(self) -> Counted:
        """Stay a counted number."""
        return Counted(-int(self))


def times(count: int) -> list[Counted]:
    """Times in no order, all different."""
    drawn = [Counted(number) for number in range(count)]
    Random(1).shuffle(drawn)
    return drawn


def comparisons(call: Callable[[], object]) -> int:
    """How many comparisons of times a call takes."""
    Counted.comparisons = 0
    call()
    return Counted.comparisons


def logarithmic(calls: int) -> float:
    """The most comparisons of so many calls on a full buffer.

    A few heaps are sifted in each call, down and up.
    """
    return calls * 8 * log2(FULL)


BOTH_EVICTIONS = pytest.mark.parametrize("eviction", list(Eviction))


class TestCost:
    @pytest.mark.rule("sds-r-performance-1")
    @BOTH_EVICTIONS
    def test_request_in_a_full_buffer_takes_logarithmic_time(
        self, eviction: Eviction
    ) -> None:
        """As many comparisons as a heap needs, not one with each entry."""
        profile = replace(SPEC, repair_eviction=eviction)
        buffer = RepairRequests(profile)
        drawn = times(2 * FULL)
        for number, t_req_ms in enumerate(drawn[:FULL]):
            buffer.add(HistoryEntry(f"m{number}", b"", "bob"), t_req_ms)

        def add_as_many() -> None:
            for number, t_req_ms in enumerate(drawn[FULL:]):
                buffer.add(HistoryEntry(f"n{number}", b"", "bob"), t_req_ms)
                assert buffer.next_ms

        assert comparisons(add_as_many) < logarithmic(FULL)
        assert len(buffer.state()) == FULL

    @pytest.mark.rule("sds-r-performance-1")
    def test_due_request_is_found_in_logarithmic_time(self) -> None:
        """Each sending searches for what is due."""
        buffer = RepairRequests(replace(SPEC, after_request=AfterRequest.FORGET))
        for number, t_req_ms in enumerate(times(FULL)):
            buffer.add(HistoryEntry(f"m{number}", b"", "bob"), t_req_ms)
        frames = FULL // SPEC.requests_per_message

        def carry_all() -> None:
            for _ in range(frames):
                buffer.carried(buffer.due(FULL))

        assert comparisons(carry_all) < logarithmic(FULL)
        assert len(buffer.state()) == FULL - frames * SPEC.requests_per_message

    @pytest.mark.rule("sds-r-performance-1")
    @BOTH_EVICTIONS
    def test_answer_in_a_full_buffer_takes_logarithmic_time(
        self, eviction: Eviction
    ) -> None:
        """And so does each that another gives."""
        buffer = RepairResponses(replace(SPEC, repair_eviction=eviction))
        drawn = times(2 * FULL)
        for number, t_resp_ms in enumerate(drawn[:FULL]):
            buffer.add(f"m{number}", t_resp_ms)

        def add_and_remove() -> None:
            for number, t_resp_ms in enumerate(drawn[FULL:]):
                buffer.add(f"n{number}", t_resp_ms)
                buffer.remove(f"n{number - 1}")
                assert buffer.next_ms >= 0

        assert comparisons(add_and_remove) < logarithmic(2 * FULL)

    @pytest.mark.parametrize(
        "profile", [Profile.spec(), Profile.js_sds(), Profile.nim_sds()]
    )
    def test_unknown_ids_cost_the_same_at_full_buffers(self, profile: Profile) -> None:
        """A frame of the longest history executes a fixed number of lines per id."""
        frames = FrameFactory(CHANNEL, profile.dialect)
        alice = participant(profile=profile)
        now = START_MS // profile.lamport_unit_ms

        def history(number: int) -> Any:
            entries = [(f"{number}-{n}", "carol") for n in range(profile.history_limit)]
            return frames.sync("bob", now, history=entries)

        def lines_of(number: int) -> int:
            """Count lines, since time is not the same on a busy machine."""
            frame = history(number)
            counted = 0

            def count(*_: Any) -> Any:
                nonlocal counted
                counted += 1
                return count

            before = sys.gettrace()
            sys.settrace(count)
            try:
                receive(alice, frame)
            finally:
                sys.settrace(before)
            return counted

        empty = lines_of(0)
        rounds = profile.missing_limit // profile.history_limit + 2
        for number in range(1, rounds):
            receive(alice, history(number))
        assert len(alice.missing) == profile.missing_limit
        assert lines_of(rounds) < 4 * empty


class TestQueue:
    def test_any_calls_keep_the_order(self) -> None:
        """Compared with a sorted list, over many additions, changes and removals."""
        random = Random(7)
        queue: PriorityQueue[int] = PriorityQueue()
        expected: dict[str, int] = {}
        for _ in range(5_000):
            name = f"m{random.randrange(50)}"
            match random.randrange(5):
                case 0:
                    assert queue.remove(name) == (expected.pop(name, None) is not None)
                case 1 if expected:
                    first = min(expected, key=lambda one: (expected[one], one))
                    assert queue.pop() == first
                    del expected[first]
                case 2:
                    last = random.randrange(20)
                    due = sorted((p, one) for one, p in expected.items() if p <= last)
                    assert queue.smallest_up_to(last, 3) == [n for _, n in due[:3]]
                    if random.random() < 0.1:
                        assert list(queue.pop_up_to(last)) == [n for _, n in due]
                        for _, one in due:
                            del expected[one]
                case _:
                    expected[name] = random.randrange(20)
                    queue.put(name, expected[name])
            assert queue.items() == expected
            assert len(queue) == len(expected)
            assert (name in queue) == (name in expected)
            assert queue.get(name) == expected.get(name)
            pairs = [(priority, one) for one, priority in expected.items()]
            assert queue.first() == min(pairs, default=None)

    def test_changes_leave_no_memory_behind(self) -> None:
        """However often an entry changes."""
        queue: PriorityQueue[int] = PriorityQueue()

        def memory_after_changes() -> int:
            for number in range(5_000):
                queue.put("one", number)
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            first = memory_after_changes()
            # A pair that stays in the heap takes 56 bytes and more.
            assert memory_after_changes() < first + 56 * 1_000
        finally:
            tracemalloc.stop()

    def test_empty_queue_has_no_first_entry(self) -> None:
        """Taking one out of it is an error."""
        queue: PriorityQueue[int] = PriorityQueue()
        assert queue.first() is None
        with pytest.raises(IndexError):
            queue.pop()
