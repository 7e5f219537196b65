"""Retrieval hints and senders that are learned after the id that they belong to."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    IrretrievablyLost,
    MessageChannel,
    Missing,
    RepairRequested,
    Step,
)
from sds_core.wire import Frame, HistoryEntry, HistoryEntryLike
from tests.support.frames import START_MS, FrameFactory, value_of
from tests.support.message_channel.repair_steps import t_req_ms
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    of_type,
    participant,
    receive,
)

FRAMES = FrameFactory(CHANNEL)
HINT = b"\x01" * 32


def naming(
    message_id: str, hint: bytes = b"", sender: str = "", by: str = "m"
) -> Frame:
    """A message of carol that names another."""
    entry = HistoryEntry(message_id, hint, sender)
    return FRAMES.content(by, "carol")._replace(causal_history=[entry])


def hint_of(channel: MessageChannel, message_id: str) -> bytes:
    """The hint with which the next message names one of the log."""
    history = frame_of(channel.send(b"hi", START_MS)).causal_history
    return next(one.retrieval_hint for one in history if one.message_id == message_id)


def requests_of(step: Step) -> list[HistoryEntryLike]:
    """The entries that the one frame of a step requests."""
    return list(frame_of(step).detached().repair_request)


class TestMissing:
    def test_hint_and_sender_learned_later_are_kept(self) -> None:
        """They are in the view, in the request, and in the report of the loss."""
        bob = participant("bob", replace(SPEC, sync_interval_ms=10**9))
        receive(bob, naming("x"))
        receive(bob, naming("x", HINT, by="n"))
        assert bob.missing == (HistoryEntry("x", HINT, ""),)
        receive(bob, naming("x", sender="alice", by="o"))
        assert bob.missing == (HistoryEntry("x", HINT, "alice"),)
        step = bob.send(b"hi", t_req_ms("bob", "x"))
        assert of_type(step.events, RepairRequested)
        assert requests_of(step) == [HistoryEntry("x", HINT, "alice")]
        events = bob.advance(START_MS + 10**8).events
        assert IrretrievablyLost("x", HINT, "alice") in events

    @pytest.mark.rule("sds-r-send-4")
    def test_hint_learned_after_the_request_was_queued_goes_with_it(self) -> None:
        """The request's own entry is completed too."""
        bob = participant("bob")
        receive(bob, naming("x", sender="alice"), naming("x", HINT, "alice", by="n"))
        step = bob.send(b"hi", t_req_ms("bob", "x"))
        assert requests_of(step) == [HistoryEntry("x", HINT, "alice")]

    def test_first_sender_stays(self) -> None:
        """A stranger's frame does not replace it: the sender is no matter of time."""
        bob = participant("bob")
        receive(bob, naming("x", HINT, "alice"), naming("x", HINT, "eve", by="n"))
        assert bob.missing == (HistoryEntry("x", HINT, "alice"),)

    @pytest.mark.rule("sds-incoming-3", "sds-send-3", "sds-missing-3")
    def test_newest_hints_are_kept(self) -> None:
        """Each retry has a new hash, and the first copy may have reached no store."""
        profile = replace(SPEC, sync_interval_ms=10**9)
        bob = participant("bob", profile)
        hints = [bytes([number]) * 32 for number in range(1, 6)]
        for number, hint in enumerate(hints):
            receive(bob, naming("x", hint, "alice", by=f"m{number}"))
        kept = tuple(reversed(hints))[: bob.HINTS_KEPT]
        assert len(kept) == 3
        for one in (
            bob,
            MessageChannel.restore(bob.snapshot(), random=Random(1), profile=profile),
        ):
            assert one.missing == (HistoryEntry("x", hints[-1], "alice"),)
            assert one.retrieval_hints_of("x") == kept
        step = bob.send(b"hi", t_req_ms("bob", "x"))
        assert requests_of(step) == [HistoryEntry("x", hints[-1], "alice")]
        events = bob.advance(START_MS + 10**8).events
        assert IrretrievablyLost("x", hints[-1], "alice") in events

    def test_hint_that_is_named_again_is_the_newest(self) -> None:
        """It is kept once; a naming without one changes nothing."""
        bob = participant("bob")
        for number, hint in enumerate((b"1", b"2", b"1", b"")):
            receive(bob, naming("x", hint, "alice", by=f"m{number}"))
        assert bob.retrieval_hints_of("x") == (b"1", b"2")
        assert bob.missing == (HistoryEntry("x", b"1", "alice"),)

    def test_only_missing_messages_have_hints(self) -> None:
        """What arrived, and what nobody named, has none."""
        bob = participant("bob")
        receive(bob, naming("x", HINT, "alice"), FRAMES.content("x", "alice"))
        assert bob.retrieval_hints_of("x") == bob.retrieval_hints_of("y") == ()

    def test_missing_is_reported_once(self) -> None:
        """What is learned later changes only the view."""
        bob = participant("bob")
        events = receive(bob, naming("x"), naming("x", HINT, by="n"))
        assert of_type(events, Missing) == [Missing("x", b"", "", "m")]

    def test_hint_that_is_too_long_is_not_learned(self) -> None:
        """As at the first naming."""
        bob = participant("bob", replace(SPEC, hint_limit=31))
        receive(bob, naming("x"), naming("x", HINT, by="n"))
        assert bob.missing == (HistoryEntry("x"),)


class TestLog:
    def test_hint_of_our_message_is_learned_from_its_echo(self) -> None:
        """The network gives our own frame back, with its hash."""
        alice = participant()
        value = alice.send(b"hi", START_MS, message_id="own").broadcasts[0].value
        alice.receive(value, START_MS, retrieval_hint=HINT)
        assert hint_of(alice, "own") == HINT

    def test_hint_is_learned_from_a_second_copy(self) -> None:
        """The first copy may have come by another way, without one."""
        alice = participant()
        value = value_of(FRAMES.content("m", "bob"))
        alice.receive(value, START_MS)
        alice.receive(value, START_MS, retrieval_hint=HINT)
        assert hint_of(alice, "m") == HINT

    def test_hint_is_learned_from_histories_of_others(self) -> None:
        """A message that was received without one."""
        alice = participant()
        receive(alice, FRAMES.content("x", "bob"), naming("x", HINT, "bob"))
        assert hint_of(alice, "x") == HINT

    def test_known_hint_stays(self) -> None:
        """The transport's own is the one that it can use."""
        alice = participant()
        value = value_of(FRAMES.content("x", "bob"))
        alice.receive(value, START_MS, retrieval_hint=HINT)
        alice.receive(value, START_MS, retrieval_hint=b"second")
        receive(alice, naming("x", b"third", "bob"))
        assert hint_of(alice, "x") == HINT

    @pytest.mark.parametrize(("limit", "learned"), [(31, b""), (32, HINT)])
    def test_hint_over_the_limit_is_not_learned(
        self, limit: int, learned: bytes
    ) -> None:
        """Of whatever frame."""
        alice = participant(profile=replace(SPEC, hint_limit=limit))
        value = value_of(FRAMES.content("x", "bob"))
        alice.receive(value, START_MS)
        alice.receive(value, START_MS, retrieval_hint=HINT)
        receive(alice, naming("x", HINT, "bob"))
        assert hint_of(alice, "x") == learned


class TestWaiting:
    @pytest.mark.parametrize("source", ["note", "copy"])
    def test_hint_of_a_waiting_message_is_kept(self, source: str) -> None:
        """Until it is delivered, and over a restart."""
        alice = participant()
        late = value_of(FRAMES.content("late", "bob", 1_001, history=["x"]))
        alice.receive(late, START_MS)
        if source == "note":
            alice.note_retrieval_hint("late", HINT)
        else:
            alice.receive(late, START_MS, retrieval_hint=HINT)
        alice = MessageChannel.restore(alice.snapshot(), random=Random(1), profile=SPEC)
        receive(alice, FRAMES.content("x", "bob"))
        assert hint_of(alice, "late") == HINT
