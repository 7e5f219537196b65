"""Arbitrary bytes, ids, filters and timestamps: nothing raises."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Acknowledged,
    Delivered,
    Ignored,
    IgnoredReason,
    MessageChannel,
    Missing,
    Profile,
    Received,
    RepairRequestReceived,
)
from sds_core.message_channel.lamport import CENTURY_MS
from sds_core.wire import (
    BloomParameters,
    Dialect,
    Frame,
    HistoryEntry,
    UndecodableFrame,
    decode,
)
from tests.support.frames import START_MS, FrameFactory, value_of
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
ONES = b"\xff" * SPEC.bloom.length_bytes


class TestBytes:
    @pytest.mark.rule("sds-event-4")
    @pytest.mark.parametrize(
        "value",
        [
            b"",
            b"\xff" * 40,
            b"\x00",
            b"plain text",
            HEAD[:-1],
            field(2, "m") + field(10, 1),
            field(1, "eve") + field(3, CHANNEL) + field(20, b"hi"),
            field(2, "m") + field(3, CHANNEL),
            field(2, b"\xff\xfe") + field(3, CHANNEL) + field(10, 1),
        ],
        ids=[
            "empty",
            "ones",
            "zero",
            "text",
            "cut off",
            "no channel",
            "no id",
            "no kind",
            "not UTF-8",
        ],
    )
    def test_undecodable_bytes_are_ignored(self, value: bytes) -> None:
        """The event has the decoder's reason."""
        with pytest.raises(UndecodableFrame) as wrong:
            decode(value)
        alice = busy()
        before = alice.snapshot()
        assert typed(alice.receive(value, START_MS).events) == typed(
            [Ignored(IgnoredReason.MALFORMED, "", str(wrong.value))]
        )
        assert alice.snapshot() == before

    @pytest.mark.parametrize("dialect", [Dialect.SPEC, Dialect.NIM])
    def test_message_cut_off_anywhere_raises_nothing(self, dialect: Dialect) -> None:
        """At any length."""
        profile = SMALL
        if dialect is Dialect.NIM:
            profile = replace(Profile.nim_sds(), bloom=BloomParameters(50, 0.01))
        frames = FrameFactory(CHANNEL, dialect)
        value = value_of(
            frames.content(
                "m",
                "eve",
                history=["ours", ("missing", "carol")],
                requests=[("ours", "alice")],
                filter_=b"\xff" * 70,
            )
        )
        alice = busy(profile)
        for length in range(len(value)):
            alice.receive(value[:length], START_MS)
        assert_usable(alice)

    def test_message_with_wrong_bytes_raises_nothing(self) -> None:
        """The random bytes are the same in every run."""
        random = Random(20)
        value = value_of(
            FRAMES.content(
                "m", "eve", history=["ours", "x"], requests=["known"], holds=None
            )
        )
        alice = busy()
        for _ in range(500):
            damaged = bytearray(value)
            for _ in range(random.randint(1, 4)):
                damaged[random.randrange(len(damaged))] = random.randrange(256)
            alice.receive(bytes(damaged), START_MS)
        assert_usable(alice)

    def test_too_long_frame_is_not_decoded(self) -> None:
        """A frame of exactly the limit is."""
        limit = SMALL.max_frame_bytes
        text = bytes(limit - 100)
        text += bytes(limit - len(value_of(FRAMES.content("m", "eve", text=text))))
        at_limit = value_of(FRAMES.content("m", "eve", text=text))
        above = value_of(FRAMES.content("m", "eve", text=text + b"."))
        assert (len(at_limit), len(above)) == (limit, limit + 1)
        alice = participant(profile=SMALL)
        before = alice.snapshot()
        detail = f"{limit + 1} bytes, at most {limit}"
        assert typed(alice.receive(above, START_MS).events) == typed(
            [Ignored(IgnoredReason.TOO_LARGE, "", detail)]
        )
        assert alice.snapshot() == before
        assert of_type(alice.receive(at_limit, START_MS).events, Delivered)


class TestIds:
    LONG = "x" * 65

    @pytest.mark.parametrize(
        "frame",
        [
            FRAMES.content(LONG, "eve"),
            FRAMES.content("m", LONG),
            FRAMES.content("m", "eve", history=["known", LONG]),
            FRAMES.content("m", "eve", history=[("x", LONG)]),
            FRAMES.content("m", "eve", requests=[LONG]),
            FRAMES.sync("eve", message_id="m", requests=[("x", LONG)]),
            FRAMES.sync(LONG, message_id="m"),
        ],
        ids=[
            "message",
            "sender",
            "history",
            "history's sender",
            "request",
            "request's sender",
            "sync's sender",
        ],
    )
    def test_frame_with_an_id_that_is_too_long_is_ignored(self, frame: Frame) -> None:
        """It has no effect, and the event has only the start of its id."""
        alice = busy(replace(SMALL, id_limit=64))
        before = alice.snapshot()
        detail = "65 characters, at most 64"
        assert typed(receive(alice, frame)) == typed(
            [Ignored(IgnoredReason.ID_TOO_LONG, frame.message_id[:64], detail)]
        )
        assert alice.snapshot() == before

    def test_ids_of_maximum_length_are_accepted(self) -> None:
        """In all fields at the same time."""
        name = "x" * 63
        alice = participant(profile=replace(SMALL, id_limit=64))
        frame = FRAMES.content(
            name + "1",
            name + "2",
            history=[(name + "3", name + "4")],
            requests=[(name + "5", name + "6")],
        )
        assert typed(receive(alice, frame)) == typed(
            [
                Received(name + "1", name + "2"),
                RepairRequestReceived((), name + "2"),
                Missing(name + "3", b"", name + "4", name + "1"),
            ]
        )

    def test_longest_ids_of_others_fit_into_our_frames(self) -> None:
        """Ids of maximum length in four-byte characters, in the longest history."""
        alice = participant(profile=Profile.js_sds())
        limit = alice.profile.id_limit
        receive(
            alice,
            *(
                FRAMES.content(f"{number:🎉>{limit}}", "🎉" * limit, START_MS + number)
                for number in range(alice.profile.causal_history_size)
            ),
        )
        for now_ms in (alice.next_deadline_ms, START_MS + 10**6):
            alice.advance(now_ms)
        assert alice.send(b"hi", START_MS + 10**6).broadcasts

    def test_too_long_hint_is_dropped(self) -> None:
        """The missing message is reported without it."""
        alice = busy()
        entry = HistoryEntry("x", b"x" * (SPEC.hint_limit + 1), "carol")
        frame = FRAMES.content("m", "bob")._replace(causal_history=(entry,))
        assert of_type(receive(alice, frame), Missing) == [
            Missing("x", b"", "carol", "m")
        ]


class TestFilters:
    @pytest.mark.parametrize("size", [1, 7, 8, 18_751, 18_753, 200_000])
    def test_filter_of_the_wrong_size_is_no_filter(self, size: int) -> None:
        """It is no error: the message counts."""
        alice = busy(SPEC)
        events = receive(alice, FRAMES.content("m", "eve", filter_=b"\xff" * size))
        assert of_type(events, Delivered)
        assert alice.unacknowledged == ("ours",)

    def test_filters_of_all_ones_acknowledge_nothing(self) -> None:
        """For any number of participants."""
        alice = busy(SPEC)
        frames = [FRAMES.sync(f"eve{number}", filter_=ONES) for number in range(50)]
        assert of_type(receive(alice, *frames), Acknowledged) == []
        assert alice.possibly_acknowledged == ("ours",)

    def test_senders_of_useless_filters_are_not_stored_per_message(
        self,
    ) -> None:
        """An invented name costs the memory of one participant, not 30 times that."""
        alice = participant()
        for _ in range(30):
            alice.send(b"hi", START_MS)
        before = len(alice.snapshot())
        names = [f"eve-{number:03}" for number in range(100)]
        receive(alice, *(FRAMES.sync(name, filter_=ONES) for name in names))
        assert len(alice.snapshot()) - before < 3 * len("".join(names))

    @pytest.mark.parametrize(
        "filter_",
        [b"", b"\x0a", field(1, b"\xff" * 8), field(1, b"") + field(5, 1 << 62)],
    )
    def test_header_of_a_filter_may_have_any_values(self, filter_: bytes) -> None:
        """A nim-sds header gives the filter's own size."""
        profile = Profile.nim_sds()
        alice = busy(profile)
        frames = FrameFactory(CHANNEL, Dialect.NIM)
        for size in (field(4, 1), field(4, 1 << 31) + field(5, 64), b""):
            frame = frames.sync("eve", filter_=filter_ + size)
            assert of_type(receive(alice, frame), Acknowledged) == []


class TestTimestamps:
    def test_log_with_timestamps_from_far_ahead_is_kept_over_a_restart(self) -> None:
        """The largest timestamp that is adopted survives too."""
        alice = busy()
        receive(alice, FRAMES.content("m", "eve", START_MS + CENTURY_MS))
        assert alice.log == ("known", "ours", "m")
        assert_usable(alice)
        again = MessageChannel.restore(
            alice.snapshot(), random=Random(1), profile=SMALL
        )
        assert again.log == alice.log

    def test_timestamps_from_the_far_future_do_not_shut_out_those_of_today(
        self,
    ) -> None:
        """With a limit of adoption they do not enter the log."""
        profile = replace(SMALL, log_limit=3, lamport_max_ahead_ms=60_000)
        alice = participant(profile=profile)
        events = receive(
            alice,
            *(FRAMES.content(f"eve{n}", "eve", START_MS * 2) for n in range(3)),
        )
        assert {one.reason for one in of_type(events, Ignored)} == {
            IgnoredReason.FAR_FUTURE
        }
        assert alice.log == ()
        events = receive(alice, FRAMES.content("honest", "bob", START_MS + 1))
        assert of_type(events, Delivered)
        alice.send(b"hi", START_MS, message_id="ours")
        assert alice.log == ("honest", "ours")
