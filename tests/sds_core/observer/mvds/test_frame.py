"""Records of MVDS: peers, key and payload."""

from __future__ import annotations

import pytest

from sds_core.mvds.payload import MAX_RECORDS
from sds_core.observer.judgement import Dead, FrameRecord, judge
from sds_core.observer.record import Headers, RawRecord
from tests.support.mvds.traffic import START_MS, sent

_VALUE = sent(0, "b", "a", acks=[1]).value
_PEERS: Headers = [("protocol", b"mvds"), ("peer", b"b"), ("to", b"a")]


def _judged(value: bytes | None, headers: Headers, key: bytes | None = b"a|b") -> str:
    record = RawRecord(0, 0, START_MS, key, value, headers)
    judged = judge(record, START_MS)
    return judged.reason if isinstance(judged, Dead) else type(judged).__name__


@pytest.mark.parametrize("value", [_VALUE, b"", None])
def test_payload_between_two_peers_is_a_frame(value: bytes | None) -> None:
    """An empty payload is one too."""
    assert _judged(value, _PEERS) == FrameRecord.__name__


@pytest.mark.parametrize("missing", ["peer", "to"])
@pytest.mark.parametrize("value", [b"", b"\xff", None])
def test_record_without_a_usable_peer_has_a_bad_header(
    missing: str, value: bytes | None
) -> None:
    """Both headers must be texts."""
    headers = [(name, value if name == missing else one) for name, one in _PEERS]
    assert _judged(_VALUE, headers) == "bad_header"
    assert _judged(_VALUE, [one for one in headers if one[0] != missing]) == (
        "bad_header"
    )


@pytest.mark.parametrize("long", ["peer", "to"])
@pytest.mark.parametrize("letter", ["x", "频"])
def test_peer_has_at_most_512_characters(long: str, letter: str) -> None:
    """More are a reason of their own."""

    def headers(characters: int) -> Headers:
        name = (letter * characters).encode()
        return [(one, name if one == long else id_) for one, id_ in _PEERS]

    assert _judged(_VALUE, headers(513)) == "name_too_long"
    assert _judged(_VALUE, headers(512), key=None) == FrameRecord.__name__


def test_value_that_is_no_payload_is_an_mvds_error() -> None:
    """Arbitrary bytes are not parsed."""
    assert _judged(b"\xff\xff", _PEERS) == "mvds_error"


def test_payload_with_too_many_records_is_an_mvds_error() -> None:
    """A stranger does not choose what a payload costs."""
    offer = sent(0, "b", "a", offers=[1]).value
    assert _judged(offer * MAX_RECORDS, _PEERS) == FrameRecord.__name__
    assert _judged(offer * 100_000, _PEERS) == "mvds_error"


@pytest.mark.parametrize("key", [b"b|a", b"a", b"a|c"])
def test_key_must_be_the_sorted_pair(key: bytes) -> None:
    """Another key is a mismatch; no key is allowed."""
    assert _judged(_VALUE, _PEERS, key) == "channel_mismatch"
    assert _judged(_VALUE, _PEERS, None) == FrameRecord.__name__
