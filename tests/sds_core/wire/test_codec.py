"""Bytes <-> Frame in both dialects."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.wire import (
    Dialect,
    Frame,
    FrameKind,
    HistoryEntry,
    Reason,
    decode,
    dialect_of,
    encode,
)
from tests.support.wire.raw import entry, field
from tests.support.wire.values import (
    CANONICAL,
    JS_CONTENT,
    JS_SYNC,
    NIM_CONTENT,
    lamports,
    reason_of,
)

entries = st.lists(
    st.builds(HistoryEntry, st.text(min_size=1), st.binary(), st.text()), max_size=4
).map(tuple)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Frames of every kind in both dialects."""
    lamport = draw(st.none() | lamports)
    content = draw(st.binary(min_size=1 if lamport is None else 0))
    return Frame.build(
        draw(st.sampled_from(Dialect)),
        message_id=draw(st.text(min_size=1)),
        channel_id=draw(st.text(min_size=1)),
        sender_id=draw(st.text()),
        lamport=lamport,
        causal_history=draw(entries),
        bloom_filter=draw(st.binary(max_size=64)),
        repair_request=draw(entries),
        content=content,
    )


class TestReading:
    def test_reads_every_field_that_js_waku_writes(self) -> None:
        """The content vector of @waku/sds comes out field by field."""
        assert decode(JS_CONTENT).detached() == Frame(
            dialect=Dialect.SPEC,
            kind=FrameKind.CONTENT,
            sender_id="snd",
            message_id="mid",
            channel_id="ch",
            lamport=1_760_000_000_000,
            causal_history=(HistoryEntry("h", b"\x01\x02", "hs"),),
            bloom_filter=b"\x09",
            repair_request=(HistoryEntry("rr", b"", "rs"),),
            content=b"hi",
        )

    def test_reads_a_sync_message_of_js_waku(self) -> None:
        """Lamport without content is a sync message, and what is absent is empty."""
        assert decode(JS_SYNC) == Frame.build(
            Dialect.SPEC, message_id="s", channel_id="ch", sender_id="snd", lamport=5
        )

    def test_reads_every_field_that_nim_sds_writes(self) -> None:
        """The other layout comes out as the same fields."""
        assert decode(NIM_CONTENT).detached() == Frame(
            dialect=Dialect.NIM,
            kind=FrameKind.CONTENT,
            sender_id="snd",
            message_id="mid",
            channel_id="ch",
            lamport=1_760_000_000,
            causal_history=(HistoryEntry("h", b"\x01\x02"), HistoryEntry("i")),
            bloom_filter=b"\x09",
            repair_request=(HistoryEntry("rr", b"", "rs"),),
            content=b"hi",
        )

    @pytest.mark.parametrize("value", CANONICAL.values(), ids=CANONICAL)
    def test_writes_the_bytes_it_has_read(self, value: bytes) -> None:
        """What either library wrote is written again byte for byte."""
        assert encode(decode(value)) == value

    def test_reads_a_lamport_of_milliseconds_that_int32_would_break(self) -> None:
        """The 32-bit field printed in SDS would make it negative; 64 bits keep it."""
        lamport = decode(JS_CONTENT).lamport
        assert lamport == 1_760_000_000_000
        as_int32 = (lamport + 2**31) % 2**32 - 2**31
        assert as_int32 == -936_591_360

    @pytest.mark.parametrize("lamport", [2**63 - 1, 2**63, 2**64 - 1])
    @pytest.mark.parametrize("dialect", Dialect)
    def test_keeps_lamports_beyond_a_signed_integer(
        self, dialect: Dialect, lamport: int
    ) -> None:
        """Only hostile messages have them, and js-waku takes them as they are."""
        number = 10 if dialect is Dialect.SPEC else 2
        rest = (
            field(2, "m") + field(3, "ch")
            if dialect is Dialect.SPEC
            else field(1, "m") + field(4, "ch")
        )
        assert decode(rest + field(number, lamport)).lamport == lamport

    def test_passes_over_fields_it_does_not_know(self) -> None:
        """A newer message is read as far as it is known."""
        newer = JS_SYNC + field(99, b"new") + field(100, 7)
        assert decode(newer) == decode(JS_SYNC)


class TestKinds:
    @pytest.mark.parametrize(
        ("lamport", "content", "kind"),
        [
            (7, b"x", FrameKind.CONTENT),
            (0, b"x", FrameKind.CONTENT),
            (7, None, FrameKind.SYNC),
            (7, b"", FrameKind.SYNC),
            (0, None, FrameKind.SYNC),
            (0, b"", FrameKind.SYNC),
            (None, b"x", FrameKind.EPHEMERAL),
            (None, b"", None),
            (None, None, None),
        ],
    )
    @pytest.mark.parametrize("dialect", Dialect)
    def test_kind_follows_from_lamport_and_content(
        self,
        dialect: Dialect,
        lamport: int | None,
        content: bytes | None,
        kind: FrameKind | None,
    ) -> None:
        """A lamport of 0 is present; content of no bytes is absent."""
        spec = dialect is Dialect.SPEC
        value = field(2, "m") + field(3, "ch") if spec else field(1, "m")
        if lamport is not None:
            value += field(10 if spec else 2, lamport)
        if not spec:
            value += field(4, "ch")
        if content is not None:
            value += field(20 if spec else 5, content)
        if kind is None:
            assert reason_of(value) is Reason.NEITHER_LAMPORT_NOR_CONTENT
        else:
            frame = decode(value)
            assert (frame.dialect, frame.kind) == (dialect, kind)
            assert (frame.lamport, frame.content) == (lamport, content or b"")


class TestDialect:
    @pytest.mark.parametrize("name", ["js_sync", "nim_sync"])
    def test_is_found_whatever_the_order_of_fields(self, name: str) -> None:
        """Protobuf allows any order; the dialect and the frame stay the same."""
        parts = {
            "js_sync": [field(1, "snd"), field(2, "s"), field(3, "ch"), field(10, 5)],
            "nim_sync": [field(1, "s"), field(2, 5), field(4, "ch"), field(5, b"")],
        }[name]
        expected = decode(b"".join(parts))
        assert expected.dialect is (Dialect.SPEC if name == "js_sync" else Dialect.NIM)
        for order in itertools.permutations(parts):
            assert decode(b"".join(order)) == expected

    @pytest.mark.parametrize("length", [0, 1, 127, 128, 200, 20_000])
    def test_is_found_behind_a_first_field_of_any_length(self, length: int) -> None:
        """Field 1 is a sender in one dialect and an id in the other, of any length."""
        # Filled with tags of the other dialect, should the scan stop within it.
        nim_tags, spec_tags = b"\x10" * length, b"\x12" * length
        assert dialect_of(field(1, nim_tags) + field(2, "m")) is Dialect.SPEC
        assert dialect_of(field(1, spec_tags) + field(2, 7)) is Dialect.NIM

    @pytest.mark.parametrize("number", [4, 5, 6, 7])
    def test_without_field_2_is_nim_if_a_field_of_its_own_is_there(
        self, number: int
    ) -> None:
        """Only nim-sds has the fields 4 to 7."""
        assert dialect_of(field(1, "m") + field(number, b"x")) is Dialect.NIM

    def test_without_field_2_is_spec_otherwise(self) -> None:
        """Such a message lacks its id, which is what the reason says."""
        value = field(1, "snd") + field(3, "ch") + field(20, b"x")
        assert dialect_of(value) is Dialect.SPEC
        assert reason_of(value) is Reason.NO_MESSAGE_ID

    def test_is_not_misled_by_a_field_2_inside_another(self) -> None:
        """Entries and content may hold anything, a field 2 for example."""
        inside = field(2, 7) + field(2, "m")
        value = field(20, inside) + field(11, entry("h", b"x")) + field(3, "ch")
        assert dialect_of(value + field(2, "m")) is Dialect.SPEC


class TestNimHistory:
    HEAD = field(1, "m") + field(2, 7) + field(4, "ch")

    def ids(self, *raw_entries: bytes) -> list[str]:
        """Return the ids of a history made of `raw_entries`."""
        value = self.HEAD + b"".join(field(3, raw) for raw in raw_entries)
        return [entry.message_id for entry in decode(value).causal_history]

    @pytest.mark.parametrize(
        "message_id",
        [
            "0" * 63 + "1",
            "0x" + "ab" * 32,
            *"0123456789abcdef",
            "deadbeef" * 8,
            "sync-k3v9x0q2",
            "b" * 200,
            "Ω-nachricht",
        ],
    )
    def test_reads_the_bare_ids_of_older_peers(self, message_id: str) -> None:
        """A bare id is taken as it stands, whatever protobuf would make of it."""
        assert self.ids(message_id.encode()) == [message_id]

    def test_tells_each_entry_by_itself(self) -> None:
        """Bare ids and entries may stand side by side, in any order."""
        mixed = [b"8f", entry("a"), b"0" * 64, entry("b", b"hint", "s"), b"ff"]
        expected = ["8f", "a", "0" * 64, "b", "ff"]
        for order in itertools.permutations(range(len(mixed))):
            assert self.ids(*[mixed[i] for i in order]) == [expected[i] for i in order]

    def test_keeps_hint_and_sender_beside_bare_ids(self) -> None:
        """One bare id costs the other entries nothing, in whatever order they stand."""
        last_first = field(3, "s") + field(2, b"hint") + field(1, "c")
        value = self.HEAD + b"".join(
            field(3, raw) for raw in (b"8f", entry("b", b"hint", "s"), last_first)
        )
        assert decode(value).detached().causal_history == (
            HistoryEntry("8f"),
            HistoryEntry("b", b"hint", "s"),
            HistoryEntry("c", b"hint", "s"),
        )

    def test_passes_over_new_fields_of_an_entry(self) -> None:
        """A newer peer's entry stays an entry and does not become an odd bare id."""
        newer = entry("a", b"hint") + field(4, "new")
        assert self.ids(newer) == ["a"]
        assert self.ids(newer, b"8f") == ["a", "8f"]

    def test_refuses_an_entry_that_is_no_text_either(self) -> None:
        """Bytes that are neither an entry nor UTF-8 cannot be an id."""
        assert reason_of(self.HEAD + field(3, b"\xff\xfe")) is Reason.PROTOBUF_ERROR

    def test_is_written_in_entries(self) -> None:
        """What an older peer wrote as bare ids is written as today's peers write it."""
        value = field(1, "m") + field(2, 7) + field(3, b"8f") + field(4, "ch")
        assert encode(decode(value)) == (
            field(1, "m")
            + field(2, 7)
            + field(3, entry("8f"))
            + field(4, "ch")
            + field(5, b"")
            + field(6, b"")
        )


class TestWriting:
    @given(frames())
    def test_what_is_written_is_read_back(self, frame: Frame) -> None:
        """A frame of any kind survives the wire of its dialect."""
        value = encode(frame)
        assert decode(value) == frame
        assert encode(decode(value)) == value

    @pytest.mark.parametrize("lamport", [-1, 2**64])
    @pytest.mark.parametrize("dialect", Dialect)
    def test_refuses_a_lamport_that_64_bits_cannot_hold(
        self, dialect: Dialect, lamport: int
    ) -> None:
        """A timestamp out of range is an error of the caller, never wrapped around."""
        frame = Frame.build(dialect, message_id="m", channel_id="c", lamport=lamport)
        with pytest.raises(ValueError, match="out of range"):
            encode(frame)

    def test_frame_of_200_entries_and_a_filter_survives(self) -> None:
        """The largest frame that js-waku writes by default comes back whole."""
        rng = random.Random(7)
        frame = Frame.build(
            Dialect.SPEC,
            message_id=rng.randbytes(32).hex(),
            channel_id="general",
            sender_id="0x" + rng.randbytes(20).hex(),
            lamport=1_760_000_000_000,
            causal_history=[
                HistoryEntry(rng.randbytes(32).hex(), rng.randbytes(32), "0xsender")
                for _ in range(200)
            ],
            bloom_filter=rng.randbytes(18_752),
            content=b"hello",
        )
        assert decode(encode(frame)) == frame


def test_import_refuses_a_slow_protobuf() -> None:
    """The pure Python implementation is told at once, not found out under load."""
    result = subprocess.run(
        [sys.executable, "-c", "import sds_core.wire"],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "sds_core.wire needs protobuf's upb implementation" in result.stderr
