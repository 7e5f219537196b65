"""Kafka records as lines of JSON, one record per line (docs/files.md).

A record that is written as a line and read from the line is unchanged. Keys, header
names and header values are written as text or, if they are not UTF-8, as
``{"hex": "…"}``.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from connectors.files.waku_lines import NotWaku, read_waku
from sds_core.observer.record import RawRecord, header_name, header_name_bytes
from sds_core.text import printable, shorten

NO_OFFSET = -1
"""Offset of a record whose line has no offset. In the recording that is part of the
package, no line has an offset."""
_LONGEST_REASON = 160


class BadLine(ValueError):
    """A line holds no record; the message gives the reason."""


class _Hex(msgspec.Struct, forbid_unknown_fields=True):
    hex: str


_Bytes = str | _Hex | None


class _Line(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    offset: Annotated[int, msgspec.Meta(ge=NO_OFFSET, le=2**63 - 1)] = NO_OFFSET
    timestamp_ms: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    key: _Bytes
    value_hex: str | None
    headers: list[tuple[str | _Hex, _Bytes]] = []


_DECODER = msgspec.json.Decoder(_Line)
_ENCODER = msgspec.json.Encoder()


def parse_line(line: bytes) -> list[RawRecord]:
    """Return the record in a line, or one record for each Waku message in a line.

    Raises:
        BadLine: The line holds neither a record nor usable Waku messages.
    """
    try:
        found = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        try:
            return list(read_waku(line))
        except NotWaku as waku_error:
            message = f"the text is neither a record nor a Waku message: {error}"
            # The message may quote the line, which may come from an untrusted source.
            text = shorten(waku_error.detail or message, _LONGEST_REASON)
            raise BadLine(printable(text)) from error
    try:
        return [_record(found)]
    except ValueError as error:
        message = f"a value does not consist of hexadecimal digits: {error}"
        raise BadLine(message) from error


def format_line(record: RawRecord) -> bytes:
    """Return a record as one line, including the line end."""
    line = _Line(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=None if record.key is None else _to_json(record.key),
        value_hex=None if record.value is None else record.value.hex(),
        headers=[
            (
                _to_json(header_name_bytes(name)),
                None if value is None else _to_json(value),
            )
            for name, value in record.headers
        ],
    )
    return _ENCODER.encode(line) + b"\n"


def _record(line: _Line) -> RawRecord:
    return RawRecord(
        line.partition,
        line.offset,
        line.timestamp_ms,
        _to_bytes(line.key),
        None if line.value_hex is None else bytes.fromhex(line.value_hex),
        tuple((_to_name(name), _to_bytes(value)) for name, value in line.headers),
    )


def _to_bytes(value: _Bytes) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else bytes.fromhex(value.hex)


def _to_name(name: str | _Hex) -> str:
    return name if isinstance(name, str) else header_name(bytes.fromhex(name.hex))


def _to_json(value: bytes) -> str | _Hex:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _Hex(value.hex())
