"""Histories, requests and frames in any number: no memory grows without limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Delivered,
    Ignored,
    IgnoredReason,
    Missing,
    Received,
    RepairRequestReceived,
    Step,
    SyncReceived,
)
from sds_core.message_channel.snapshot import SEAL
from sds_core.wire import Frame, HistoryEntry
from tests.support.frames import START_MS, FrameFactory
from tests.support.message_channel.strangers import HEAD, SMALL, assert_usable, busy
from tests.support.participants import (
    CHANNEL,
    SPEC,
    of_type,
    participant,
    receive,
    typed,
)
from tests.support.wire.raw import field

FRAMES = FrameFactory(CHANNEL)


class TestHistory:
    def test_history_of_100_000_entries_is_ignored(self) -> None:
        """With the shortest entries they fit into a frame of allowed size."""
        value = HEAD + field(11, b"") * 100_000 + field(20, b"hi")
        assert len(value) < SPEC.max_frame_bytes
        alice = busy()
        before = alice.snapshot()
        detail = f"100000 entries, at most {SPEC.history_limit}"
        assert typed(alice.receive(value, START_MS).events) == typed(
            [Ignored(IgnoredReason.HISTORY_TOO_LONG, "m", detail)]
        )
        assert alice.snapshot() == before

    @pytest.mark.parametrize("kind", ["content", "sync"])
    def test_history_up_to_the_limit_is_taken(self, kind: str) -> None:
        """One more entry is too many."""
        alice = participant(profile=replace(SMALL, history_limit=3))
        for count in (3, 4):
            history = [f"x{number}" for number in range(count)]
            frame = {
                "content": FRAMES.content(f"m{count}", "eve", history=history),
                "sync": FRAMES.sync("eve", message_id=f"m{count}", history=history),
            }[kind]
            events = receive(alice, frame)
        assert typed(events) == typed(
            [Ignored(IgnoredReason.HISTORY_TOO_LONG, "m4", "4 entries, at most 3")]
        )
        assert len(alice.missing) == 3

    def test_missing_messages_are_limited(self) -> None:
        """For any number of invented ids."""
        profile = replace(
            SMALL,
            log_limit=50,
            missing_limit=50,
            repair_buffer_limit=50,
            history_limit=100,
        )
        alice = participant(profile=profile)

        def flood(number: int) -> int:
            history = [(f"{number:04}-{entry:04}", "carol") for entry in range(100)]
            receive(alice, FRAMES.sync("eve", history=history))
            assert len(alice.missing) == 50
            state = SEAL.unpack(alice.snapshot())
            # How many of those named last are asked for depends on their T_req.
            asked_for = {entry.message_id for entry, *_ in state.requests}
            assert asked_for <= {entry.message_id for entry in alice.missing}
            state.requests.clear()
            return len(SEAL.pack(state))

        sizes = [flood(number) for number in range(10)]
        assert sizes[2:] == sizes[2:3] * 8
        assert_usable(alice)

    @pytest.mark.parametrize("sender", ["", "carol"])
    def test_entry_without_an_id_is_skipped(self, sender: str) -> None:
        """No message has an empty id, so it is not missing."""
        alice = participant(profile=SMALL)
        only = FRAMES.content("m", "eve", history=[("", sender)])
        among = FRAMES.content("n", "eve", history=["x", ("", sender), ("y", "bob")])
        sync = FRAMES.sync("eve", message_id="s", history=[("", sender)])
        assert typed(receive(alice, only, among, sync)) == typed(
            [
                Received("m", "eve"),
                Delivered("m", "eve", 1_000, b"text"),
                Received("n", "eve"),
                Missing("x", b"", "", "n"),
                Missing("y", b"", "bob", "n"),
                SyncReceived("s", "eve"),
            ]
        )
        assert [one.message_id for one in alice.missing] == ["x", "y"]
        assert_usable(alice)

    def test_entries_of_the_log_may_have_any_length_of_hint(self) -> None:
        """Only hints that would be stored are checked."""
        alice = busy()
        entry = HistoryEntry("known", b"x" * 10_000, "y" * 1_000)
        frame = FRAMES.content("m", "bob")._replace(causal_history=(entry,))
        assert of_type(receive(alice, frame), Delivered)


class TestRepairRequests:
    def test_requests_for_unknown_messages_leave_nothing_behind(self) -> None:
        """They are reported, and no answer becomes due."""
        alice = participant(profile=SMALL)
        receive(alice, FRAMES.content("known", "bob"), FRAMES.sync("eve"))
        # Fixed by the first frame; a sync message only draws its time anew.
        size = len(alice.snapshot())
        for number in range(20):
            requests = [(f"{number}-{entry}", "bob") for entry in range(50)]
            events = receive(
                alice, FRAMES.sync("eve", message_id="s", requests=requests)
            )
            assert RepairRequestReceived((), "eve") in events
        assert len(alice.snapshot()) == size
        assert alice.sweep_repairs(START_MS + 10**9) == Step([], [])

    def test_any_number_of_requests_is_read(self) -> None:
        """As many as a frame can hold, all without an id."""
        value = HEAD + field(13, b"") * 100_000
        assert len(value) < SPEC.max_frame_bytes
        events = busy().receive(value, START_MS).events
        assert RepairRequestReceived((), "eve") in events


class TestFloods:
    @pytest.mark.parametrize(
        "frame",
        [
            lambda n: FRAMES.content(f"{n:05}", "eve", START_MS + n),
            lambda n: FRAMES.content(f"{n:05}", "eve", history=[f"x{n:05}"]),
            lambda n: FRAMES.content(
                f"{n:05}", "eve", history=[f"{n - 1:05}", f"x{n:05}"]
            ),
            lambda n: FRAMES.content(f"{n:05}", "eve", history=[f"{n + 1:05}"]),
            lambda n: FRAMES.sync("eve", history=[(f"{n:05}", "carol")]),
            lambda n: FRAMES.ephemeral("eve"),
        ],
        ids=["content", "waiting", "chain", "backwards", "missing", "ephemeral"],
    )
    def test_memory_is_bounded(self, frame: Callable[[int], Frame]) -> None:
        """The same kind of frame for ever, each with new ids."""
        profile = replace(
            SMALL,
            bloom_rollover_ids=20,
            bloom_kept_ids=10,
            log_limit=20,
            incoming_limit=20,
            missing_limit=20,
            repair_buffer_limit=20,
            repair_retained_limit=20,
        )
        alice = participant(profile=profile)

        def size_after(first: int) -> int:
            sizes = []
            for number in range(first, first + 100):
                receive(alice, frame(number), now_ms=START_MS + number)
                sizes.append(len(alice.snapshot()))
            return max(sizes)

        full = size_after(100)
        # Some bytes more or less, as numbers and ids differ in length.
        assert size_after(200) <= 1.05 * full
        assert_usable(alice)

    def test_stored_participants_are_limited(self) -> None:
        """Messages of all count; the participants silent longest are forgotten."""
        alice = busy(replace(SMALL, participants_limit=3))
        events = receive(
            alice,
            *(FRAMES.content(f"m{n}", f"eve{n}") for n in range(9)),
        )
        assert len(of_type(events, Delivered)) == 9
        assert list(SEAL.unpack(alice.snapshot()).participants) == [
            "eve6",
            "eve7",
            "eve8",
        ]

    def test_duplicates_leave_nothing_behind(self) -> None:
        """A frame received a thousand times has the effect of one."""
        alice = busy()
        frame = FRAMES.content("m", "eve", history=["x"])
        receive(alice, frame)
        before = alice.snapshot()
        events = receive(alice, *[frame] * 1_000)
        assert set(typed(events)) == set(typed([Ignored(IgnoredReason.DUPLICATE, "m")]))
        assert alice.snapshot() == before
