"""Bytes that are no frame: the reason, and no other error for any bytes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.wire import (
    MAX_VALUE_BYTES,
    Frame,
    Reason,
    UndecodableFrame,
    ValueTooLarge,
    decode,
)
from tests.support.wire.raw import field
from tests.support.wire.values import (
    CANONICAL,
    JS_CONTENT,
    JS_SYNC,
    lamports,
    reason_of,
)


def frame_or_reason(value: bytes) -> Frame | Reason:
    """Return what becomes of `value`; any other error fails the test."""
    try:
        return decode(value)
    except UndecodableFrame as error:
        return error.reason


class TestUndecodable:
    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (b"", Reason.EMPTY_VALUE),
            (bytes(MAX_VALUE_BYTES + 1), Reason.TOO_LARGE),
            (b"\x00", Reason.PROTOBUF_ERROR),
            (b"hello", Reason.PROTOBUF_ERROR),
            (JS_CONTENT[:-1], Reason.PROTOBUF_ERROR),
            (field(2, b"\xff") + field(3, "ch"), Reason.PROTOBUF_ERROR),
            (field(2, "m") + field(3, b"\xff"), Reason.PROTOBUF_ERROR),
            (field(1, b"\xff") + field(2, 7), Reason.PROTOBUF_ERROR),
            (field(2, "") + field(3, "ch") + field(10, 7), Reason.NO_MESSAGE_ID),
            (field(1, "") + field(2, 7) + field(4, "ch"), Reason.NO_MESSAGE_ID),
            (field(2, 7) + field(4, "ch"), Reason.NO_MESSAGE_ID),
            (field(1, "m") + field(2, 7), Reason.NO_CHANNEL),
            (field(1, "m") + field(2, 7) + field(4, ""), Reason.NO_CHANNEL),
            (field(2, "m") + field(10, 7), Reason.NO_CHANNEL),
            (field(2, "m") + field(3, "") + field(10, 7), Reason.NO_CHANNEL),
            (field(2, "m"), Reason.NEITHER_LAMPORT_NOR_CONTENT),
        ],
    )
    def test_reason_is_that_of_the_first_check_to_fail(
        self, value: bytes, reason: Reason
    ) -> None:
        """The checks come in the order of the contract."""
        assert reason_of(value) is reason

    def test_longest_value_is_still_looked_into(self) -> None:
        """The limit itself is allowed, one byte more is not."""
        # Two bytes of tag and four of length stand before the content.
        padding = MAX_VALUE_BYTES - len(JS_SYNC) - 6
        longest = JS_SYNC + field(20, bytes(padding))
        assert len(longest) == MAX_VALUE_BYTES
        assert decode(longest).content == bytes(padding)
        with pytest.raises(ValueTooLarge) as caught:
            decode(longest + b"\x00")
        assert caught.value.actual_bytes == MAX_VALUE_BYTES + 1
        assert caught.value.limit_bytes == MAX_VALUE_BYTES

    @pytest.mark.parametrize("value", CANONICAL.values(), ids=CANONICAL)
    def test_cut_anywhere_is_a_shorter_frame_or_undecodable(self, value: bytes) -> None:
        """No prefix gives anything but a frame, or the reason why there is none."""
        outcomes = [frame_or_reason(value[:end]) for end in range(len(value))]
        assert outcomes[0] is Reason.EMPTY_VALUE
        # The tag of field 1, without a length.
        assert outcomes[1] is Reason.PROTOBUF_ERROR
        whole = decode(value)
        for outcome in outcomes:
            if isinstance(outcome, Frame):
                assert outcome.message_id == whole.message_id

    @pytest.mark.parametrize("value", CANONICAL.values(), ids=CANONICAL)
    def test_any_byte_changed_is_another_frame_or_undecodable(
        self, value: bytes
    ) -> None:
        """No single wrong byte gives an error that is not ours."""
        for position, byte in itertools.product(range(len(value)), range(256)):
            changed = bytearray(value)
            changed[position] = byte
            outcome = frame_or_reason(bytes(changed))
            assert isinstance(outcome, Frame | Reason)

    @pytest.mark.parametrize(
        "value",
        [
            pytest.param(b"\x0b" * 5000, id="groups nested deep"),
            pytest.param(b"\x0a" + b"\xff" * 9 + b"\x01", id="endless field 1"),
            pytest.param(b"\xff" * 11, id="tag without end"),
            pytest.param(b"\x12" + b"\x80" * 10 + b"\x01", id="length too long"),
            pytest.param(b"\x14", id="end of a group never begun"),
        ],
    )
    def test_broken_wire_is_a_protobuf_error(self, value: bytes) -> None:
        """What protobuf itself forbids is refused at once."""
        assert reason_of(value) is Reason.PROTOBUF_ERROR

    @given(st.binary(max_size=200))
    def test_any_bytes_are_a_frame_or_undecodable(self, value: bytes) -> None:
        """Noise never raises anything but our own error."""
        assert isinstance(frame_or_reason(value), Frame | Reason)

    @given(st.lists(st.tuples(st.integers(1, 21), st.binary() | lamports), max_size=8))
    def test_any_fields_are_a_frame_or_undecodable(
        self, fields: list[tuple[int, bytes | int]]
    ) -> None:
        """Nor does well-formed protobuf that was never meant for us."""
        value = b"".join(field(number, content) for number, content in fields)
        outcome = frame_or_reason(value)
        if isinstance(outcome, Frame):
            assert outcome.message_id
            assert outcome.channel_id
            assert outcome.lamport is not None or outcome.content
