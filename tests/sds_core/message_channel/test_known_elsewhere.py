"""What the application knows: messages that it has, and hints (nim-sds has both)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Delivered,
    Ignored,
    IgnoredReason,
    IrretrievablyLost,
    MessageChannel,
    Missing,
    RepairRequested,
)
from sds_core.wire import BloomFilter
from tests.support.frames import SECOND, START_MS, FrameFactory
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    of_type,
    participant,
    receive,
    typed,
)

FRAMES = FrameFactory(CHANNEL)
PROFILE = replace(SPEC, lost_after_ms=SECOND)
LATER = START_MS + SPEC.t_max_ms


def delivered(events: object) -> list[str]:
    """Ids of delivered messages."""
    return [one.message_id for one in of_type(events, Delivered)]  # type: ignore[arg-type]


class TestMarkDependenciesMet:
    def test_waiting_messages_are_delivered_in_order(self) -> None:
        """Once the last message that they lack is there (as nim-sds's chain)."""
        bob = participant("bob")
        receive(bob, FRAMES.content("m3", "alice", 3, history=["m2", "m1"]))
        receive(bob, FRAMES.content("m4", "alice", 4, history=["m3"]))
        assert bob.mark_dependencies_met(["m2"], START_MS).events == []
        assert [one.message_id for one in bob.missing] == ["m1"]
        step = bob.mark_dependencies_met(["m1"], START_MS)
        assert delivered(step.events) == ["m3", "m4"]
        assert bob.log == ("m3", "m4")
        assert bob.missing == bob.waiting == ()
        assert bob.sync_status == (2, 0, 0)

    def test_message_is_neither_asked_for_nor_lost(self) -> None:
        """Nor missed when another history names it."""
        bob = participant("bob", PROFILE)
        receive(bob, FRAMES.content("m", "alice", history=[("x", "alice")]))
        bob.mark_dependencies_met(["x"], START_MS)
        events = [*bob.advance(LATER).events, *bob.send(b"hi", LATER).events]
        events += receive(bob, FRAMES.sync("eve", history=[("x", "alice")]))
        for kind in (RepairRequested, IrretrievablyLost, Missing):
            assert of_type(events, kind) == []

    def test_message_that_nobody_has_named_yet_is_met_too(self) -> None:
        """A participant with an archive names all that is in there."""
        bob = participant("bob")
        bob.mark_dependencies_met(["x", "y"], START_MS)
        events = receive(bob, FRAMES.content("m", "alice", history=["x", "y"]))
        assert delivered(events) == ["m"]

    def test_filter_holds_it_and_a_copy_is_a_duplicate(self) -> None:
        """Its sender learns that we have it; it is in no causal history of ours."""
        bob = participant("bob")
        bob.mark_dependencies_met(["x"], START_MS)
        assert typed(receive(bob, FRAMES.content("x", "alice"))) == typed(
            [Ignored(IgnoredReason.DUPLICATE, "x")]
        )
        frame = frame_of(bob.send(b"hi", START_MS))
        raw = frame.bloom_filter
        assert BloomFilter.from_wire(frame.dialect, raw).contains("x")
        assert list(frame.causal_history) == []

    def test_lost_message_is_lost_no_more(self) -> None:
        """Those that waited for it were delivered already."""
        bob = participant("bob", PROFILE)
        receive(bob, FRAMES.content("m", "alice", history=["x"]))
        bob.advance(START_MS + SECOND)
        assert bob.sync_status == (1, 0, 1)
        assert bob.mark_dependencies_met(["x"], LATER).events == []
        assert bob.sync_status == (1, 0, 0)

    @pytest.mark.parametrize("known", ["delivered", "waiting", "own"])
    def test_message_that_is_here_stays_as_it_is(self, known: str) -> None:
        """It was received, and a waiting one still waits."""
        bob = participant("bob")
        bob.send(b"hi", START_MS, message_id="own")
        receive(bob, FRAMES.content("delivered", "alice"))
        receive(bob, FRAMES.content("waiting", "alice", history=["x"]))
        bob.record_changes()
        before = bob.snapshot()
        assert bob.mark_dependencies_met([known], START_MS).events == []
        assert bob.snapshot() == before
        assert bob.take_changes() == []

    def test_changes_bring_it_back(self) -> None:
        """After a snapshot from before."""
        bob = participant("bob")
        receive(bob, FRAMES.content("m", "alice", history=["x"]))
        before = bob.snapshot()
        bob.record_changes()
        bob.mark_dependencies_met(["x", "y"], START_MS)
        again = MessageChannel.restore(
            before, changes=bob.take_changes(), random=Random(1), profile=SPEC
        )
        assert again.snapshot() == bob.snapshot()
        assert again.log == ("m",)

    def test_memory_is_bounded(self) -> None:
        """By as many ids as the log holds; the oldest is forgotten."""
        bob = participant("bob", replace(SPEC, log_limit=3))
        bob.mark_dependencies_met(map(str, range(10)), START_MS)
        events = receive(bob, FRAMES.content("m", "alice", history=["9", "6"]))
        assert [one.message_id for one in of_type(events, Missing)] == ["6"]

    def test_forgotten_marks_do_not_make_a_message_older_than_the_log(self) -> None:
        """The log has dropped nothing, so the dependency cannot have been in it."""
        profile = replace(SPEC, log_limit=3)
        bob = participant("bob", profile)
        bob.mark_dependencies_met(map(str, range(10)), START_MS)
        receive(bob, FRAMES.content("newer", "alice", 5))
        again = MessageChannel.restore(
            bob.snapshot(), random=Random(1), profile=profile
        )
        for one in (bob, again):
            events = receive(one, FRAMES.content("m", "alice", 4, history=["x"]))
            assert [missing.message_id for missing in of_type(events, Missing)] == ["x"]
            assert one.waiting == ("m",)

    @pytest.mark.parametrize("bad", ["", "x" * (SPEC.id_limit + 1), "\ud800"])
    def test_bad_id_changes_nothing(self, bad: str) -> None:
        """Not even for the ids before it."""
        bob = participant("bob")
        before = bob.snapshot()
        with pytest.raises(ValueError, match="message_id"):
            bob.mark_dependencies_met(["x", bad], START_MS)
        assert bob.snapshot() == before


class TestHintProvider:
    @staticmethod
    def hints(channel: MessageChannel, *, sync: bool = False) -> dict[str, bytes]:
        """Hints in the causal history of the next frame."""
        step = channel.sync(START_MS) if sync else channel.send(b"hi", START_MS)
        history = frame_of(step).causal_history
        return {one.message_id: one.retrieval_hint for one in history}

    @pytest.mark.rule("sds-send-3")
    @pytest.mark.parametrize("sync", [False, True])
    def test_history_has_the_hints_of_the_provider(self, *, sync: bool) -> None:
        """Where none is known; it is asked for nothing else."""
        asked: list[str] = []

        def provider(message_id: str) -> bytes:
            asked.append(message_id)
            return {"n": b"hint of n"}.get(message_id, b"")

        bob = participant("bob", replace(SPEC, causal_history_size=3))
        receive(bob, *(FRAMES.content(one, "alice", 9) for one in "klmn"))
        bob.note_retrieval_hint("m", b"known")
        bob.hint_provider = provider
        assert self.hints(bob, sync=sync) == {
            "l": b"",
            "m": b"known",
            "n": b"hint of n",
        }
        assert asked == ["l", "n"]

    def test_hint_that_is_too_long_is_left_out(self) -> None:
        """As everywhere."""
        bob = participant("bob", replace(SPEC, hint_limit=4))
        bob.hint_provider = lambda _: b"12345"
        receive(bob, FRAMES.content("m", "alice"))
        assert self.hints(bob) == {"m": b""}

    def test_provider_stays_if_the_clock_was_ahead_before_a_restart(self) -> None:
        """The application sets it before the first call."""
        before = participant("bob")
        receive(before, FRAMES.content("m", "alice"))
        bob = MessageChannel.restore(before.snapshot(), random=Random(1), profile=SPEC)
        bob.hint_provider = lambda _: b"hint"
        bob.advance(START_MS - 1)
        assert self.hints(bob) == {"m": b"hint"}

    def test_changes_have_the_hints(self) -> None:
        """A restart needs no provider for what was sent before."""
        bob = participant("bob")
        receive(bob, FRAMES.content("m", "alice"))
        before = bob.snapshot()
        bob.record_changes()
        bob.hint_provider = lambda _: b"hint"
        bob.send(b"hi", START_MS, message_id="own")
        again = MessageChannel.restore(
            before, changes=bob.take_changes(), random=Random(1), profile=SPEC
        )
        assert again.snapshot() == bob.snapshot()
        assert again.hint_provider is None
