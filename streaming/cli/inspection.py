"""Decodes one record as the monitor does, and collects its content for display."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from connectors.files.record_lines import NO_OFFSET, format_line
from sds_core.observer.judgement import Dead, FrameRecord, judge
from sds_core.observer.record import RawRecord
from sds_core.text import iso_time
from sds_core.waku import RELIABLE_CHANNEL_META
from sds_core.wire import (
    BloomError,
    BloomFilter,
    Dialect,
    Frame,
    HistoryEntryLike,
    UndecodableFrame,
    decode,
    part_sizes,
)
from sds_core.wire.protobuf_fields import BrokenProtobuf, protobuf_fields
from sds_core.wire.segment_header import read_segment_header

_PREVIEW_CHARACTERS = 200
PREVIEW_BYTES = 64
_HEAD_BYTES = 128

# A Lamport timestamp is shown as a time only if the time is from 2001 to 2099.
_FIRST_TIME_S, _LAST_TIME_S = 1_000_000_000, 4_100_000_000
_UNITS_PER_S = {Dialect.SPEC: 1_000, Dialect.NIM: 1}

Inspection = dict[str, Any]
"""A JSON object; docs/files.md describes its fields."""


def inspect_record(record: RawRecord, wall_ms: int) -> Inspection:
    """Decode a record as far as possible.

    If the record has no offset, key or headers, its bytes do not come from a topic, and
    the field `record` of the result is None.
    """
    value = record.value or b""
    judged = judge(record, wall_ms)
    dead = judged if isinstance(judged, Dead) else None
    inspection: Inspection = {
        "reason": dead and dead.reason,
        "error": None,
        "error_offset": None,
        "bytes": len(value),
        "record": None,
        "heartbeat": False,
        "reliable_channel": False,
        "frame": None,
    }
    if record.offset != NO_OFFSET or record.headers or record.key is not None:
        inspection["record"] = json.loads(format_line(record._replace(value=None)))
        del inspection["record"]["value_hex"]
        headers = dict(record.headers)
        inspection["heartbeat"] = headers.get("kind") == b"heartbeat"
        inspection["reliable_channel"] = headers.get("meta") == RELIABLE_CHANNEL_META
    if dead is not None:
        inspection["error"] = dead.explanation
        inspection["head_hex"] = value[:_HEAD_BYTES].hex()
    if inspection["heartbeat"] and not value:
        return inspection
    if isinstance(judged, FrameRecord):
        frame = judged.frame
        if isinstance(frame, Frame):
            inspection["frame"] = _frame_object(frame, value)
        return inspection
    try:
        frame = decode(value)
    except UndecodableFrame:
        inspection["error_offset"] = _broken_at(value) if value else None
    else:
        inspection["frame"] = _frame_object(frame, value)
    return inspection


def _broken_at(value: bytes) -> int | None:
    """Return the byte offset of the first top-level field that is invalid, if any."""
    try:
        for _ in protobuf_fields(value):
            pass
    except BrokenProtobuf as error:
        return error.offset
    return None


def _frame_object(frame: Frame, value: bytes) -> Inspection:
    return {
        "dialect": frame.dialect.value,
        "kind": frame.kind.value,
        "channel": frame.channel_id,
        "sender": frame.sender_id or None,
        "message_id": frame.message_id,
        "lamport": frame.lamport,
        "lamport_time": _lamport_time(frame),
        "causal_history": _entries(frame.causal_history),
        "repair_request": _entries(frame.repair_request),
        "bloom_filter": _filter_object(frame),
        "sizes": dict(part_sizes(frame.dialect, value)._asdict()),
        "content": _content_object(frame.content),
        "segment": _segment_object(frame.content),
    }


def _lamport_time(frame: Frame) -> str | None:
    """Return the Lamport timestamp as a time; None if the time is not plausible."""
    if frame.lamport is None:
        return None
    units = _UNITS_PER_S[frame.dialect]
    if not _FIRST_TIME_S <= frame.lamport // units < _LAST_TIME_S:
        return None
    return iso_time(frame.lamport * 1_000 // units)


def _entries(entries: Iterable[HistoryEntryLike]) -> list[Inspection]:
    return [
        {
            "message_id": entry.message_id,
            "sender": entry.sender_id or None,
            "retrieval_hint": entry.retrieval_hint.hex() or None,
        }
        for entry in entries
    ]


def _filter_object(frame: Frame) -> Inspection | None:
    raw = frame.bloom_filter
    if not raw:
        return None
    try:
        bloom = BloomFilter.from_wire(frame.dialect, raw)
    except BloomError as error:
        return {"bytes": len(raw), "error": str(error)}
    ids = bloom.estimated_ids()
    return {
        "bytes": len(raw),
        "error": None,
        "m_bits": bloom.m_bits,
        "k": bloom.k,
        "capacity": bloom.capacity,
        "error_rate": bloom.error_rate_millionths / 1_000_000,
        "bits_set": bloom.bits_set(),
        "estimated_ids": None if math.isinf(ids) else round(ids),
        "false_positive_rate": bloom.false_positive_rate(),
    }


def _content_object(content: bytes) -> Inspection:
    try:
        text: str | None = content.decode()
    except UnicodeDecodeError:
        text = None
    return {
        "bytes": len(content),
        "text": None if text is None else text[:_PREVIEW_CHARACTERS],
        "head_hex": content[:PREVIEW_BYTES].hex(),
    }


def _segment_object(content: bytes) -> Inspection | None:
    header = read_segment_header(content)
    if header is None:
        return None
    return {
        "layouts": [layout.value for layout in header.layouts],
        "payload_hash": header.payload_hash.hex(),
        "index": header.index,
        "is_parity": header.is_parity,
        "data_count": header.data_count,
        "parity_count": header.parity_count,
        "whole_bytes": header.whole_bytes,
        "bytes": len(header.payload),
    }
