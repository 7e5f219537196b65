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
"""Maximum size of the headers that a dead letter adds."""

_KEPT_NAME, _KEPT_BYTES = 128, 1_024
"""A cut keeps this many characters of a header name, and this many bytes of a header's
content or of a key."""

WrittenHeaders = list[tuple[str, bytes]]


class CutPart(msgspec.Struct, frozen=True):
    """Size and hash of a part of a record before the part was cut.

    Attributes:
        bytes: The size of the part.
        sha256: The SHA-256 of the part in hexadecimal digits. The hash of headers
            covers all names and values in order, without separators.
    """

    bytes: int
    sha256: str


Cuts = Mapping[str, CutPart]
"""The parts that are cut, by name: ``headers``, ``key`` or ``value``."""

_CUTS = msgspec.json.Decoder(dict[str, CutPart])


class Fitted(NamedTuple):
    """The record for a dead letter, and the parts that were cut.

    If `key` is None, `value` is not None, because the client requires a key or a value.
    `headers` does not include the headers that a dead letter adds.
    """

    key: bytes | None
    value: bytes | None
    headers: WrittenHeaders
    cuts: Cuts


def fit(record: RawRecord, limit_bytes: int) -> Fitted:
    """Return a record as a dead letter of at most `limit_bytes`.

    If a value is longer than the maximum frame, it is omitted. All other parts stay
    whole if the record is within the limit. If a record is too large, its headers and
    its key get at most a quarter of the space each, and a cut key at most
    `_KEPT_BYTES`. The start of the value gets the rest. The limit applies before
    compression. The result may exceed a limit below `_OWN_BYTES`.
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
    """Return the cut parts in a header; empty if the header is absent or invalid."""
    try:
        return _CUTS.decode(content) if content else {}
    except msgspec.MsgspecError:
        return {}


def is_whole(record: RawRecord, cuts: Cuts) -> bool:
    """Return whether `record` can be the original of a dead letter with these cuts."""
    try:
        return _cuts_of(record, cuts) == dict(cuts)
    except KeyError:
        # A later release may cut other parts.
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
