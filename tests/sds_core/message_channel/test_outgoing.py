"""Messages of ours that are broadcast again (SDS, "Periodic Outgoing Buffer Sweep")."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Acknowledged,
    Broadcast,
    Buffer,
    Cause,
    Evicted,
    Evidence,
    MessageChannel,
    Profile,
    Retried,
    RetriesExhausted,
    Sent,
    Step,
)
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import (
    CHANNEL,
    SPEC,
    of_type,
    participant,
    receive,
    typed,
)

FRAMES = FrameFactory(CHANNEL)
# Sync messages have tests of their own.
QUIET = replace(SPEC, sync_interval_ms=10**9, sync_least_share=None)


def ids_of(step: Step) -> list[str]:
    """What is broadcast, in order."""
    return [broadcast.message_id for broadcast in step.broadcasts]


@pytest.mark.rule(
    "sds-outgoing-1", "sds-schedule-3", "sds-sdk-config-2", "sds-sdk-task-2"
)
def test_unacknowledged_message_is_broadcast_again_after_its_period() -> None:
    """The same bytes, 30 s after the last time, with the retry's number."""
    alice = participant(profile=QUIET)
    (first,) = alice.send(b"hi", START_MS, message_id="a").broadcasts
    again = Broadcast(Cause.RETRY, "a", first.value)
    for attempt in (1, 2, 3):
        due_ms = START_MS + attempt * 30_000
        assert alice.next_deadline_ms == due_ms
        assert alice.advance(due_ms - 1) == Step([], [])
        step = alice.advance(due_ms)
        assert step.broadcasts == [again]
        assert typed(step.events) == typed([Retried("a", attempt)])
    assert alice.unacknowledged == ("a",)


def test_period_counts_from_the_last_broadcast_even_if_late() -> None:
    """After a late sweep the next retry is not due at once."""
    alice = participant(profile=QUIET)
    alice.send(b"hi", START_MS, message_id="a")
    assert ids_of(alice.advance(START_MS + 95_000)) == ["a"]
    assert alice.next_deadline_ms == START_MS + 125_000


@pytest.mark.rule("sds-outgoing-2")
def test_possibly_acknowledged_message_has_a_period_of_its_own() -> None:
    """60 s from its last broadcast, not from the filter's arrival."""
    alice = participant(profile=QUIET)
    alice.send(b"hi", START_MS, message_id="a")
    receive(alice, FRAMES.sync("carol"))
    receive(alice, FRAMES.sync("bob", holds=["a"]), now_ms=START_MS + 20_000)
    assert alice.next_deadline_ms == START_MS + 60_000
    assert ids_of(alice.advance(START_MS + 59_999)) == []
    assert ids_of(alice.advance(START_MS + 60_000)) == ["a"]
    assert alice.next_deadline_ms == START_MS + 120_000


@pytest.mark.rule("sds-outgoing-2", "sds-schedule-3")
def test_unacknowledged_messages_go_first() -> None:
    """Before possibly acknowledged ones; in each state the most overdue first."""
    alice = participant(profile=QUIET)
    for at, message_id in enumerate(("d", "c", "b", "a")):
        alice.send(b"hi", START_MS + at, message_id=message_id)
    receive(alice, FRAMES.sync("carol"), FRAMES.sync("bob", holds=["d", "b"]))
    assert ids_of(alice.advance(START_MS + 70_000)) == ["c", "a", "d", "b"]


@pytest.mark.rule("sds-outgoing-2")
def test_unacknowledged_messages_go_before_more_overdue_ones() -> None:
    """The state counts first, then the time."""
    alice = participant(profile=QUIET)
    alice.send(b"hi", START_MS, message_id="a")
    receive(alice, FRAMES.sync("carol"), FRAMES.sync("bob", holds=["a"]))
    alice.send(b"hi", START_MS + 40_000, message_id="b")
    assert alice.next_deadline_ms == START_MS + 60_000
    assert ids_of(alice.advance(START_MS + 70_000)) == ["b", "a"]


def test_acknowledged_message_is_not_broadcast_again() -> None:
    """It has no deadline either."""
    alice = participant(profile=QUIET)
    alice.send(b"hi", START_MS, message_id="a")
    receive(alice, FRAMES.sync("bob", history=["a"]))
    assert alice.next_deadline_ms == START_MS + QUIET.sync_interval_ms
    assert ids_of(alice.advance(START_MS + 90_000)) == []


@pytest.mark.rule("sds-sdk-config-3")
def test_retries_end_and_the_message_may_still_be_acknowledged() -> None:
    """One period after the 10th retry it is reported once as exhausted."""
    alice = participant(profile=QUIET)
    alice.send(b"hi", START_MS, message_id="a")
    steps = [alice.advance(START_MS + n * 30_000) for n in range(1, 15)]
    assert [len(step.broadcasts) for step in steps] == [1] * 10 + [0] * 4
    assert typed(steps[10].events) == typed([RetriesExhausted("a")])
    assert [list(step.events) for step in steps[11:]] == [[], [], []]
    assert alice.unacknowledged == ("a",)
    receive(alice, FRAMES.sync("carol"), FRAMES.sync("bob", holds=["a"]))
    assert alice.possibly_acknowledged == ("a",)
    assert alice.next_deadline_ms == START_MS + QUIET.sync_interval_ms
    events = receive(alice, FRAMES.sync("bob", history=["a"]))
    assert Acknowledged("a", "bob", Evidence.CAUSAL_HISTORY) in events


def test_number_of_retries_may_be_zero() -> None:
    """The message is then exhausted when its first retry would be due."""
    alice = participant(profile=replace(QUIET, max_retries=0))
    alice.send(b"hi", START_MS, message_id="a")
    step = alice.advance(START_MS + 30_000)
    assert typed(step.events) == typed([RetriesExhausted("a")])
    assert step.broadcasts == []


@pytest.mark.parametrize("profile", [Profile.js_sds(), Profile.nim_sds()])
def test_libraries_have_one_period_for_both_states(profile: Profile) -> None:
    """30 s in js-waku's SDK, 60 s in nim-sds."""
    profile = replace(
        profile,
        sync_interval_ms=10**9,
        sync_least_share=None,
        possible_acks_threshold=None,
    )
    frames = FrameFactory(CHANNEL, profile.dialect)
    alice = participant(profile=profile)
    alice.send(b"hi", START_MS, message_id="a")
    alice.send(b"hi", START_MS, message_id="b")
    receive(alice, frames.sync("bob", holds=["a"]))
    due_ms = START_MS + profile.retry_unacknowledged_ms
    assert ids_of(alice.advance(due_ms - 1)) == []
    assert ids_of(alice.advance(due_ms)) == ["b", "a"]


def test_full_buffer_gives_up_its_oldest_message() -> None:
    """It is neither broadcast again nor acknowledged."""
    alice = participant(profile=replace(QUIET, outgoing_limit=2))
    alice.send(b"hi", START_MS, message_id="c")
    alice.send(b"hi", START_MS, message_id="a")
    step = alice.send(b"hi", START_MS, message_id="b")
    assert typed(step.events) == typed(
        [Sent("b", START_MS + 3), Evicted(Buffer.OUTGOING, "c")]
    )
    assert alice.unacknowledged == ("a", "b")
    events = receive(alice, FRAMES.sync("bob", history=["c"]))
    assert of_type(events, Acknowledged) == []
    assert ids_of(alice.advance(START_MS + 30_000)) == ["a", "b"]


def test_sweep_is_idempotent() -> None:
    """A second sweep at the same time finds nothing due."""
    alice = participant(profile=QUIET)
    alice.send(b"hi", START_MS, message_id="a")
    alice.sweep_outgoing(START_MS + 30_000)
    before = alice.snapshot()
    assert alice.sweep_outgoing(START_MS + 30_000) == Step([], [])
    assert alice.snapshot() == before


@pytest.mark.rule("sds-schedule-5")
def test_deadline_is_correct_after_every_call() -> None:
    """The caller needs no timer other than `next_deadline_ms`."""

    def after_a_message(alice: MessageChannel) -> int:
        alice.send(b"hi", START_MS + 1, message_id="a")
        return alice.next_deadline_ms

    alice = participant(profile=QUIET)
    idle_ms = START_MS + QUIET.sync_interval_ms
    assert alice.next_deadline_ms == idle_ms
    assert after_a_message(alice) == START_MS + 30_001
    alice.sweep_outgoing(START_MS + 40_000)
    assert alice.next_deadline_ms == START_MS + 70_000
    receive(alice, FRAMES.sync("bob", history=["a"]))
    assert alice.next_deadline_ms == idle_ms
    late = FRAMES.content("late", "bob", history=["missing"])
    receive(alice, late, now_ms=START_MS + 50_000)
    assert alice.next_deadline_ms == START_MS + 50_000 + 600_000
    alice.sweep_incoming(START_MS + 650_000)
    assert alice.next_deadline_ms == idle_ms
