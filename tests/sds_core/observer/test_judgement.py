"""What a record is: frame, heartbeat or dead letter, and why."""

from __future__ import annotations

from typing import Any

import pytest

from sds_core.observer.judgement import Dead, FrameRecord, Heartbeat, judge
from sds_core.observer.record import MAX_AHEAD_MS, RawRecord, TapHeaders, header_name
from sds_core.observer.sds.kind import SDS
from sds_core.wire import MAX_VALUE_BYTES, Dialect, Frame, Reason, decode, encode
from tests.support.frames import START_MS, FrameFactory

VALUE = encode(FrameFactory("town").content("m", "alice"))
TAP = (("observer", b"tap"), ("seq", b"4"))
HEARTBEAT = (*TAP, ("kind", b"heartbeat"))
BAD = ("source", b"?")
TOO_LARGE = bytes(MAX_VALUE_BYTES + 1)
FUTURE_MS = START_MS + MAX_AHEAD_MS + 1


def judged(**parts: Any) -> FrameRecord | Heartbeat | Dead:
    """Judge a record that is good but for some parts, at wall time `START_MS`."""
    record = RawRecord(0, 7, START_MS, b"town", VALUE, TAP)
    return judge(record._replace(**parts), START_MS)


def test_good_record_is_a_frame_of_its_protocol() -> None:
    """With what its headers say."""
    found = judged()
    assert isinstance(found, FrameRecord)
    assert found.protocol is SDS
    assert found.frame == decode(VALUE)
    assert found.headers == TapHeaders("tap", 4)
    assert judged(headers=(*TAP, ("protocol", b"sds"))) == found


def test_heartbeat_has_no_frame() -> None:
    """Whatever its value is: nobody reads it."""
    for value in (None, b"", b"\xff"):
        found = judged(value=value, key=None, headers=HEARTBEAT)
        assert isinstance(found, Heartbeat)
        assert (found.headers.observer, found.headers.seq) == ("tap", 4)


FAULTS: list[tuple[dict[str, Any], Reason, str]] = [
    ({"value": TOO_LARGE}, Reason.TOO_LARGE, "the value has 4194305 bytes"),
    ({"headers": (*TAP, BAD)}, Reason.BAD_HEADER, "header source is b'?'"),
    ({"value": b""}, Reason.EMPTY_VALUE, "the value is empty"),
    ({"value": VALUE[:-1]}, Reason.PROTOBUF_ERROR, "are no SDS message"),
    (
        {"key": b"village"},
        Reason.CHANNEL_MISMATCH,
        "the record's key is 'village', but the frame names the channel 'town'",
    ),
    (
        {"timestamp_ms": FUTURE_MS},
        Reason.FUTURE_TIMESTAMP,
        "the record's time is 2025-",
    ),
]
"""Parts of a record that are wrong, in the order of the checks (docs/records.md)."""


@pytest.mark.parametrize(("parts", "reason", "text"), FAULTS)
def test_dead_letter_has_reason_and_explanation(
    parts: dict[str, Any], reason: Reason, text: str
) -> None:
    """The explanation quotes the record's values; the tap is known all the same."""
    found = judged(**parts)
    assert isinstance(found, Dead)
    assert found.reason == reason
    assert text in found.explanation
    assert found.is_future is (reason is Reason.FUTURE_TIMESTAMP)
    assert (found.headers.observer, found.headers.seq) == ("tap", 4)


@pytest.mark.parametrize("first", range(len(FAULTS)))
def test_first_fault_gives_the_reason(first: int) -> None:
    """Of two faults the earlier one in the list counts, and the time is noted."""
    for later, _, _ in FAULTS[first + 1 :]:
        found = judged(**(later | FAULTS[first][0]))
        assert isinstance(found, Dead)
        assert found.reason == FAULTS[first][1]
        assert found.is_future is ("timestamp_ms" in later | FAULTS[first][0])


@pytest.mark.parametrize("letter", ["x", "频"])
@pytest.mark.parametrize(
    "headers",
    [
        (),
        HEARTBEAT[2:],
        (("seq", b"4"), BAD),
        (("seq", b"4"), ("waku-hash", b"0x" + b"5e" * 32)),
    ],
    ids=["none", "heartbeat", "bad", "usual"],
)
def test_tap_has_at_most_512_characters(letter: str, headers: Any) -> None:
    """More are a reason of their own, also for a heartbeat, and name no tap."""
    long, longest = (("observer", (letter * n).encode()) for n in (513, 512))
    found = judged(headers=(long, *headers))
    assert isinstance(found, Dead)
    assert (found.reason, found.headers) == (Reason.NAME_TOO_LONG, TapHeaders())
    assert "header observer has 513 characters" in found.explanation
    assert len(found.explanation) < 200
    assert judged(headers=(longest, *headers)).headers.observer == letter * 512


@pytest.mark.parametrize("part", ["message_id", "sender_id", "channel_id"])
@pytest.mark.parametrize("letter", ["x", "频"])
def test_ids_of_a_frame_have_at_most_512_characters(part: str, letter: str) -> None:
    """Its tap is known all the same."""

    def of(characters: int) -> FrameRecord | Heartbeat | Dead:
        ids = {"message_id": "m", "sender_id": "s", "channel_id": "town"}
        ids[part] = letter * characters
        frame = Frame.build(Dialect.SPEC, lamport=1, content=b"c", **ids)
        return judged(value=encode(frame), key=None)

    found = of(513)
    assert isinstance(found, Dead)
    assert (found.reason, found.headers) == (Reason.NAME_TOO_LONG, TapHeaders("tap", 4))
    assert isinstance(of(512), FrameRecord)


def test_future_heartbeat_is_a_dead_letter() -> None:
    """Its empty value is not the fault."""
    found = judged(value=b"", headers=HEARTBEAT, timestamp_ms=FUTURE_MS)
    assert isinstance(found, Dead)
    assert found.reason == Reason.FUTURE_TIMESTAMP
    assert "the record's time is" in found.explanation


def test_record_with_a_header_name_that_is_not_utf8_is_dead() -> None:
    """It still counts for its tap; a value that is too large is named first."""
    headers = (*TAP, (header_name(b"\xff"), b""))
    found = judged(headers=headers)
    assert isinstance(found, Dead)
    assert (found.reason, found.headers) == (Reason.BAD_HEADER, TapHeaders("tap", 4))
    large = judged(headers=headers, value=TOO_LARGE)
    assert isinstance(large, Dead)
    assert large.reason == Reason.TOO_LARGE


def test_record_of_a_protocol_that_is_not_registered_is_dead() -> None:
    """The registered protocols decide which names are allowed."""
    headers = (*TAP, ("protocol", b"chess"))
    found = judged(headers=headers)
    assert isinstance(found, Dead)
    assert (found.reason, found.explanation) == (
        Reason.BAD_HEADER,
        "header protocol is b'chess'",
    )
    record = RawRecord(0, 7, START_MS, b"town", VALUE, headers)
    allowed = judge(record, START_MS, {"chess": SDS})
    assert isinstance(allowed, FrameRecord)
    assert allowed.headers.protocol == "chess"
