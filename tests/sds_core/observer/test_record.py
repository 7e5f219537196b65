"""The headers of a record (docs/records.md)."""

from __future__ import annotations

import pytest

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.record import (
    MAX_AHEAD_MS,
    NO_HASH,
    NO_HEADERS,
    NO_SEQ,
    SOURCES,
    BadHeader,
    TapHeaders,
    header_name,
    header_name_bytes,
    is_future,
    read_headers,
    read_tap,
)
from sds_core.wire import Reason

HASH = b"0x" + b"0123456789abcdef" * 4


def test_all_documented_headers_are_read() -> None:
    """Headers that the monitor does not use may have any value."""
    headers = read_headers(
        [
            ("observer", b"tap-1"),
            ("seq", b"42"),
            ("source", b"relay"),
            ("waku-hash", HASH),
            ("waku-timestamp", b"1750000000000000000"),
            ("pubsub-topic", b"/waku/2/rs/1/0"),
            ("content-topic", b"/app/1/chat/proto"),
            ("meta", b"\xff\x00"),
            ("ephemeral", b"true"),
            ("protocol", b"sds"),
        ]
    )
    assert headers == TapHeaders(
        "tap-1", 42, fingerprint(HASH), bytes.fromhex("0123456789abcdef" * 4)
    )


def test_record_without_headers_is_valid() -> None:
    """All headers are optional."""
    assert read_headers([]) == NO_HEADERS
    assert TapHeaders("", NO_SEQ, NO_HASH, is_heartbeat=False) == NO_HEADERS


def test_heartbeat_is_distinguished_from_a_frame() -> None:
    """It has a tap and the last number given to a frame."""
    headers = read_headers(
        [("kind", b"heartbeat"), ("observer", b"tap-1"), ("seq", b"7")]
    )
    assert headers == TapHeaders("tap-1", 7, is_heartbeat=True)


def test_last_of_a_repeated_header_counts() -> None:
    """As in Kafka's own clients; the others are not read."""
    headers = [("seq", b"nonsense"), ("seq", b"1"), ("observer", b"a"), ("seq", b"2")]
    assert read_headers(headers) == TapHeaders("a", 2)


def test_unknown_headers_are_ignored() -> None:
    """Other tools may add headers."""
    assert read_headers([("traceparent", b"\xff"), ("", None)]) == NO_HEADERS


@pytest.mark.parametrize("raw", [b"\xff", b"seq\xff", b"\xed\xa0\x80", b"\xc3"])
def test_header_name_that_is_not_utf8_is_an_error(raw: bytes) -> None:
    """The error quotes its bytes, and nothing in it needs an escape."""
    headers = [("observer", b"tap-1"), (header_name(raw), b"1"), ("seq", b"3")]
    with pytest.raises(BadHeader) as caught:
        read_headers(headers)
    assert header_name_bytes(caught.value.name) == raw
    assert caught.value.value == b"1"
    assert caught.value.reason is Reason.BAD_HEADER
    assert str(caught.value) == f"the name of a header is not UTF-8: {raw!r}"
    assert read_tap(headers) == TapHeaders("tap-1", 3)


def test_header_name_in_any_script_is_ignored() -> None:
    """It is UTF-8, but no name that the monitor knows."""
    assert read_headers([("\N{SNOWMAN}", b""), (header_name(b"\xc3\xa9"), None)]) == (
        NO_HEADERS
    )


def test_hash_is_the_same_in_either_case() -> None:
    """Some programs print hex digits in capitals."""
    upper = b"0x" + HASH[2:].upper()
    assert read_headers([("waku-hash", upper)]) == read_headers([("waku-hash", HASH)])


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_documented_sources_are_known(source: bytes) -> None:
    """There are five."""
    assert read_headers([("source", source)]) == NO_HEADERS


@pytest.mark.parametrize(
    ("value", "seq"),
    [(b"0", 0), (b"007", 7), (str(2**63 - 1).encode(), 2**63 - 1)],
)
def test_numbers_up_to_63_bits_are_read(value: bytes, seq: int) -> None:
    """They are stored as signed 64-bit integers."""
    assert read_headers([("seq", value)]).seq == seq


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seq", b""),
        ("seq", None),
        ("seq", b"-1"),
        ("seq", b"+1"),
        ("seq", b" 1"),
        ("seq", b"1.0"),
        ("seq", b"1_000"),
        ("seq", "\N{ARABIC-INDIC DIGIT ONE}".encode()),
        ("seq", str(2**63).encode()),
        ("seq", b"0" * 100_000),
        ("waku-timestamp", b"now"),
        ("waku-timestamp", None),
        ("waku-hash", b""),
        ("waku-hash", None),
        ("waku-hash", HASH[2:]),
        ("waku-hash", HASH[:-1]),
        ("waku-hash", HASH + b"0"),
        ("waku-hash", HASH + b"\n"),
        ("waku-hash", b"0X" + HASH[2:]),
        ("waku-hash", HASH[:-1] + b"g"),
        ("source", b"Relay"),
        ("source", b""),
        ("source", None),
        ("source", b"\xff"),
        ("observer", b"tap\xff"),
        ("observer", b"\xed\xa0\x80"),
        ("ephemeral", b"1"),
        ("protocol", b"mvds"),
        ("protocol", b""),
        ("kind", b"frame"),
        ("kind", b""),
        ("kind", None),
        ("kind", b"\xff"),
    ],
)
def test_invalid_header_is_an_error(name: str, value: bytes | None) -> None:
    """The error names it; `protocol` = `mvds` is not supported yet."""
    with pytest.raises(BadHeader) as caught:
        read_headers([("content-topic", b"/t"), (name, value)])
    assert caught.value.name == name
    assert (caught.value.value or b"") == (value or b"")
    assert caught.value.reason is Reason.BAD_HEADER
    assert name in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("observer", [[], [("observer", b"")], [("observer", None)]])
def test_heartbeat_without_observer_is_an_error(
    observer: list[tuple[str, bytes | None]],
) -> None:
    """The error names `observer`, not `kind`."""
    with pytest.raises(BadHeader) as caught:
        read_headers([("kind", b"heartbeat"), *observer])
    assert caught.value.name == "observer"


def test_tap_and_number_can_be_read_beside_a_bad_header() -> None:
    """The tap has received the record in any case."""
    headers = [("source", b"?"), ("observer", b"tap-1"), ("seq", b"3")]
    assert read_tap(headers) == TapHeaders("tap-1", 3)


@pytest.mark.parametrize("bad", [("seq", b"x"), ("observer", b"\xff")])
def test_tap_and_number_need_each_other(bad: tuple[str, bytes]) -> None:
    """Neither is used if the other is invalid."""
    headers = dict([("observer", b"tap-1"), ("seq", b"3"), bad])
    assert read_tap(list(headers.items())) == NO_HEADERS


def test_future_begins_after_a_minute() -> None:
    """Exactly a minute is allowed."""
    assert not is_future(1_000 + MAX_AHEAD_MS, written_ms=1_000)
    assert is_future(1_001 + MAX_AHEAD_MS, written_ms=1_000)
