"""Cuts a dead letter to the size that its topic allows (docs/records.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from kafka.record.default_records import DefaultRecordBatchBuilder

from sds_core.observer.record import RawRecord, header_name_bytes
from sds_core.text import decode_text
from sds_core.wire import MAX_VALUE_BYTES

_OWN_BYTES = 2_048
"""Maximum size of the headers that `DeadLetterWriter` adds to a record, bytes."""

_KEPT_NAME, _KEPT_BYTES = 128, 1_024
"""If headers are cut, at most `_KEPT_NAME` characters of each name and `_KEPT_BYTES`
bytes of each value are kept. If a key is cut, at most `_KEPT_BYTES` bytes are kept."""

WrittenHeaders = list[tuple[str, bytes]]


class CutPart(msgspec.Struct, frozen=True):
    """Size and hash that the key, the value or the headers had before the cut.

    Attributes:
        bytes: The size of the part before the cut.
        sha256: The SHA-256 of the part before the cut, in hexadecimal digits. For
            headers, all names and values are hashed in order, without separators.
    """

    bytes: int
    sha256: str


Cuts = Mapping[str, CutPart]
"""The original size and hash of each cut part. The keys are the names of the parts:
``headers``, ``key`` or ``value``."""

_CUTS = msgspec.json.Decoder(dict[str, CutPart])


class Fitted(NamedTuple):
    """A record after `fit`, and the parts that were cut.

    If `key` is None, `value` is not None, because the client requires a key or a value.
    `headers` does not include the headers that `DeadLetterWriter` adds.
    """

    key: bytes | None
    value: bytes | None
    headers: WrittenHeaders
    cuts: Cuts


def fit(record: RawRecord, limit_bytes: int) -> Fitted:
    """Return a record as a dead letter of at most `limit_bytes`.

    If the value is longer than `MAX_VALUE_BYTES`, it is replaced by an empty value. The
    space for the record is the limit less `_OWN_BYTES`. If the record fits into this
    space, its other parts stay whole. Otherwise the headers and the key get at most a
    quarter of the space each, and a cut key has at most `_KEPT_BYTES` bytes. The
    remaining space is for the start of the value. The limit applies before compression.
    If the limit is below `_OWN_BYTES`, the result may exceed the limit.
    """
    key, value = record.key, record.value
    headers = [
        # The client cannot write a header without a value. Other clients cannot read a
        # name that is not UTF-8.
        (decode_text(header_name_bytes(name)), content or b"")
        for name, content in record.headers
    ]
    cut: list[str] = []
    if value is not None and len(value) > MAX_VALUE_BYTES:
        value = b""
        cut.append("value")
    space = limit_bytes - _OWN_BYTES
    if _size(key, value, headers) > space:
        if _size(None, None, headers) > space // 4:
            headers = _shortened(headers, space // 4)
            cut.append("headers")
        if key is not None and len(key) > space // 4:
            key = key[: min(_KEPT_BYTES, space // 4)]
            cut.append("key")
        left = max(0, space - _size(key, b"", headers))
        if value is not None and len(value) > left:
            value = value[:left]
            cut.append("value")
    if key is None:
        value = value or b""
    return Fitted(key, value, headers, _cuts_of(record, cut))


def decode_cuts(content: bytes | None) -> Cuts:
    """Decode the header ``dead-letter-cut``; empty if it is absent or invalid."""
    try:
        return _CUTS.decode(content) if content else {}
    except msgspec.MsgspecError:
        return {}


def is_whole(record: RawRecord, cuts: Cuts) -> bool:
    """Return whether the record's parts have the sizes and hashes in `cuts`.

    If so, the record can be the whole record that was cut for the dead letter.
    """
    try:
        return _cuts_of(record, cuts) == dict(cuts)
    except KeyError:
        # A later release may cut parts that this release does not know.
        return False


def _cuts_of(record: RawRecord, names: Iterable[str]) -> dict[str, CutPart]:
    parts: dict[str, Sequence[bytes]] = {
        "key": (record.key or b"",),
        "value": (record.value or b"",),
        "headers": [
            part
            for name, content in record.headers
            for part in (header_name_bytes(name), content or b"")
        ],
    }
    return {name: _cut_part(parts[name]) for name in names}


def _cut_part(pieces: Sequence[bytes]) -> CutPart:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return CutPart(sum(map(len, pieces)), digest.hexdigest())


def _shortened(headers: WrittenHeaders, space: int) -> WrittenHeaders:
    empty = _size(None, None, [])
    kept: WrittenHeaders = []
    for name, content in headers:
        short = (name[:_KEPT_NAME], content[:_KEPT_BYTES])
        space -= _size(None, None, [short]) - empty
        if space < empty:
            break
        kept.append(short)
    return kept


def _size(key: bytes | None, value: bytes | None, headers: WrittenHeaders) -> int:
    """Return the maximum size of a batch with only this record, bytes."""
    builder: Any = DefaultRecordBatchBuilder
    return int(builder.estimate_size_in_bytes(key, value, headers))
