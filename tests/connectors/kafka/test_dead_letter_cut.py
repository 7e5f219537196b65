"""Dead letters fit into their topic, and say what they lack."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from connectors.kafka.dead_letter_cut import (
    CutPart,
    Fitted,
    decode_cuts,
    fit,
    is_whole,
)
from sds_core.observer.record import RawRecord
from sds_core.wire import MAX_VALUE_BYTES

LIMIT = 1_000_000


def record(
    value: bytes | None = b"value",
    key: bytes | None = None,
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> RawRecord:
    """Return a record."""
    return RawRecord(0, 7, 1_000, key, value, headers)


def written_size(fitted: Fitted) -> int:
    """Size of a dead letter alone in its batch, without its own headers."""
    builder: Any = DefaultRecordBatchBuilder
    size = builder.estimate_size_in_bytes(fitted.key, fitted.value, fitted.headers)
    return int(size)


def part(content: bytes) -> CutPart:
    """Size and hash of a part."""
    return CutPart(len(content), hashlib.sha256(content).hexdigest())


def test_record_that_fits_is_kept_whole() -> None:
    """Only a header without a value gets an empty one."""
    fitted = fit(record(b"v" * 900_000, b"k", (("seq", b"1"), ("meta", None))), LIMIT)
    headers = [("seq", b"1"), ("meta", b"")]
    assert fitted == (b"k", b"v" * 900_000, headers, {})


@pytest.mark.parametrize(
    ("whole", "cut"),
    [
        (record(b"v" * 2_000_000), {"value": part(b"v" * 2_000_000)}),
        (record(key=b"k" * 2_000_000), {"key": part(b"k" * 2_000_000)}),
        (
            record(headers=(("a", b"1"), ("b", b"h" * 2_000_000))),
            {"headers": part(b"a1b" + b"h" * 2_000_000)},
        ),
        (
            record(headers=(("n" * 2_000_000, b""),)),
            {"headers": part(b"n" * 2_000_000)},
        ),
        (record(headers=(("n", b""),) * 400_000), {"headers": part(b"n" * 400_000)}),
    ],
    ids=["value", "key", "header value", "header name", "number of headers"],
)
def test_part_that_is_too_long_is_cut_and_named(whole: RawRecord, cut: object) -> None:
    """With its size and hash; the begin of it stays, and all other parts do."""
    fitted = fit(whole, LIMIT)
    assert fitted.cuts == cut
    assert written_size(fitted) < LIMIT - 2_000
    assert (whole.key or b"").startswith(fitted.key or b"")
    assert (whole.value or b"").startswith(fitted.value or b"")
    assert fitted.headers or not whole.headers
    if "value" not in fitted.cuts:
        assert fitted.value == whole.value
    if "key" not in fitted.cuts:
        assert fitted.key == whole.key


def test_key_that_is_named_as_cut_is_cut() -> None:
    """Under a small limit, a quarter of the space is less than what a cut keeps."""
    fitted = fit(record(b"v" * 5_000, b"k" * 600), 4_096)
    assert fitted.key == b"k" * 512
    assert fitted.cuts.keys() == {"key", "value"}


def test_value_longer_than_a_frame_is_left_out() -> None:
    """Nobody could use it, whatever the topic takes."""
    fitted = fit(record(bytes(MAX_VALUE_BYTES + 1)), 32 * 1024 * 1024)
    assert fitted.value == b""
    assert fitted.cuts == {"value": part(bytes(MAX_VALUE_BYTES + 1))}


def test_name_that_is_not_utf8_is_measured_with_its_escapes() -> None:
    """They take four bytes for one."""
    fitted = fit(record(headers=(("\udcff" * 400_000, b""),)), LIMIT)
    assert fitted.cuts == {"headers": part(b"\xff" * 400_000)}
    assert fitted.headers[0][0].startswith("\\xff")
    assert written_size(fitted) < LIMIT


names = st.text(max_size=400) | st.integers(1, 3_000).map("x".__mul__)
contents = st.none() | st.integers(0, 5_000).map(bytes)


@given(
    st.builds(
        RawRecord,
        partition=st.just(0),
        offset=st.just(1),
        timestamp_ms=st.just(1),
        key=contents,
        value=contents,
        headers=st.lists(st.tuples(names, contents), max_size=30).map(tuple),
    ),
    st.integers(4_096, 20_000),
)
def test_every_record_fits_into_every_limit(whole: RawRecord, limit: int) -> None:
    """What is not cut is as it was, and a cut record is told from the whole one."""
    fitted = fit(whole, limit)
    assert written_size(fitted) + 1_000 <= limit
    assert decode_cuts(msgspec.json.encode(fitted.cuts)) == fitted.cuts
    assert is_whole(whole, fitted.cuts)
    if fitted.cuts:
        other = whole._replace(
            key=b"?", value=b"another", headers=(("another", b"header"),)
        )
        assert not is_whole(other, fitted.cuts)
    else:
        assert (fitted.key, fitted.value or b"") == (whole.key, whole.value or b"")
        assert fitted.headers == [(name, one or b"") for name, one in whole.headers]


@pytest.mark.parametrize("content", [None, b"", b"x", b"[]", b'{"value": 1}'])
def test_header_of_another_form_names_no_cut(content: bytes | None) -> None:
    """Any program may write to the topic."""
    assert decode_cuts(content) == {}


def test_cut_of_an_unknown_part_cannot_be_checked() -> None:
    """A later release may cut other parts."""
    assert not is_whole(record(), {"offset": CutPart(1, "")})
