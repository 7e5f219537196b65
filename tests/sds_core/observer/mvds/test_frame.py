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
@pytest.mark.parametrize("value", [b"", b"\xff", b"x" * 513, None])
def test_record_without_a_usable_peer_has_a_bad_header(
    missing: str, value: bytes | None
) -> None:
    """Both headers must be short texts."""
    headers = [(name, value if name == missing else one) for name, one in _PEERS]
    assert _judged(_VALUE, headers) == "bad_header"
    assert _judged(_VALUE, [one for one in headers if one[0] != missing]) == (
        "bad_header"
    )


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
