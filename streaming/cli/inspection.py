"""What one record says, as the monitor reads it: for a person, and for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from connectors.files.record_lines import NO_OFFSET, format_line
from connectors.web.words import counted
from sds_core.observer.judgement import Dead, FrameRecord, judge
from sds_core.observer.record import RawRecord
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
from streaming.cli.output import plain, shown_time

_PREVIEW_CHARACTERS = 200
_PREVIEW_BYTES = 64
_HEAD_BYTES = 128
_ROW_BYTES = 16

# Lamport timestamps that can be told as a time: 2001 to 2099.
_FIRST_TIME_S, _LAST_TIME_S = 1_000_000_000, 4_100_000_000
_UNITS_PER_S = {Dialect.SPEC: 1_000, Dialect.NIM: 1}
_UNITS = {Dialect.SPEC: "ms", Dialect.NIM: "s"}

Inspection = dict[str, Any]
"""An object of JSON's own values; docs/files.md tells its fields."""


def inspect_record(record: RawRecord, wall_ms: int) -> Inspection:
    """Decode a record as far as it can be.

    Args:
        record: The record; bare bytes are one without key, headers and place.
        wall_ms: Wall time now, Unix ms.
    """
    value = record.value or b""
    judged = judge(record, wall_ms)
    dead = judged if isinstance(judged, Dead) else None
    found: Inspection = {
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
        found["record"] = json.loads(format_line(record._replace(value=None)))
        del found["record"]["value_hex"]
        headers = dict(record.headers)
        found["heartbeat"] = headers.get("kind") == b"heartbeat"
        found["reliable_channel"] = headers.get("meta") == RELIABLE_CHANNEL_META
    if dead is not None:
        found["error"] = dead.explanation
        found["head_hex"] = value[:_HEAD_BYTES].hex()
    if found["heartbeat"] and not value:
        return found
    if isinstance(judged, FrameRecord):
        frame = judged.frame
        if isinstance(frame, Frame):
            found["frame"] = _frame_object(frame, value)
        return found
    try:
        frame = decode(value)
    except UndecodableFrame:
        found["error_offset"] = _broken_at(value) if value else None
    else:
        found["frame"] = _frame_object(frame, value)
    return found


def show_inspection(found: Inspection, as_json: bool) -> None:
    """Print it: one line of JSON, a table on a terminal, plain lines elsewhere."""
    if as_json:
        click.echo(json.dumps(found, sort_keys=True))
    else:
        show_facts(inspection_facts(found))


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print words and values: a table on a terminal, plain lines elsewhere.

    A value without a word goes on with the one before it.
    """
    console = Console()
    if not console.is_terminal:
        for word, value in facts:
            click.echo(f"{word}: {value}" if word else f"  {value}")
        return
    table = Table.grid(padding=(0, 2))
    for word, value in facts:
        style = "bold red" if word in ("undecodable", "error") else ""
        # Ids are to be copied from here: folded, not cut off.
        table.add_row(Text(word, "dim"), Text(value, style, overflow="fold"))
    console.print(table)


def _broken_at(value: bytes) -> int | None:
    """Offset of the field that breaks the protobuf; None if it lies deeper."""
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
    """The Lamport timestamp as a time, where it is one."""
    if frame.lamport is None:
        return None
    units = _UNITS_PER_S[frame.dialect]
    if not _FIRST_TIME_S <= frame.lamport // units < _LAST_TIME_S:
        return None
    return shown_time(frame.lamport * 1_000 // units)


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
        "head_hex": content[:_PREVIEW_BYTES].hex(),
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


def inspection_facts(found: Inspection) -> Iterator[tuple[str, str]]:
    """What `inspect_record` found, as words and values for `show_facts`."""
    if found["reason"]:
        yield "undecodable", found["reason"]
        yield "error", plain(found["error"])
        if found["error_offset"] is not None:
            yield "breaks at", f"byte {found['error_offset']:,}"
    if found["record"]:
        yield from _record_rows(found["record"])
    if found["heartbeat"]:
        yield "heartbeat", "of a tap: no frame"
    if found["reliable_channel"]:
        yield "marker", "sent through the Reliable Channel API"
    yield "bytes", f"{found['bytes']:,}"
    if found["frame"]:
        yield from _frame_rows(found["frame"])
    elif found["reason"]:
        yield from _dump(bytes.fromhex(found["head_hex"]))


def _record_rows(record: Inspection) -> Iterator[tuple[str, str]]:
    place = f"partition {record['partition']}"
    if record["offset"] != NO_OFFSET:
        place += f", offset {record['offset']}"
    yield "record", f"{place}, {shown_time(record['timestamp_ms'])}"
    if record["key"] is not None:
        yield "key", _value_of(record["key"])
    for name, value in record["headers"]:
        yield "header", f"{plain(name)} = {_value_of(value)}"


def _value_of(value: str | dict[str, str] | None) -> str:
    """A key or a header's value as a line of records.jsonl has it."""
    if value is None:
        return "absent"
    return plain(value) if isinstance(value, str) else f"0x{value['hex']}"


def _frame_rows(frame: Inspection) -> Iterator[tuple[str, str]]:
    yield "dialect", frame["dialect"]
    yield "kind", frame["kind"]
    yield "channel", plain(frame["channel"])
    yield "sender", plain(frame["sender"] or "not told")
    yield "message", plain(frame["message_id"])
    if frame["lamport"] is not None:
        at = f", {frame['lamport_time']}" if frame["lamport_time"] else ""
        unit = _UNITS[Dialect(frame["dialect"])]
        yield "Lamport timestamp", f"{frame['lamport']} {unit}{at}"
    yield from _entry_rows("causal history", frame["causal_history"])
    yield from _entry_rows("repair request", frame["repair_request"])
    yield "bloom filter", _filter_text(frame["bloom_filter"], frame["dialect"])
    yield (
        "bytes by part",
        ", ".join(f"{part} {size:,}" for part, size in frame["sizes"].items()),
    )
    content = frame["content"]
    yield "content", _content_text(content)
    if frame["segment"]:
        yield "segment", _segment_text(frame["segment"])


def _entry_rows(word: str, entries: Sequence[Inspection]) -> Iterator[tuple[str, str]]:
    yield word, counted(len(entries), "message") if entries else "none"
    for entry in entries:
        facts = [plain(entry["message_id"])]
        if entry["sender"]:
            facts.append(f"of {plain(entry['sender'])}")
        if entry["retrieval_hint"]:
            facts.append(f"hint 0x{entry['retrieval_hint']}")
        yield "", ", ".join(facts)


def _filter_text(bloom: Inspection | None, dialect: str) -> str:
    if bloom is None:
        return "none"
    if bloom["error"]:
        return f"unreadable: {bloom['error']}"
    ids = bloom["estimated_ids"]
    assumed = " as configured by default" if dialect == Dialect.SPEC else ""
    return (
        f"{bloom['bits_set']:,} of {bloom['m_bits']:,} bits set, k {bloom['k']}, "
        f"for {bloom['capacity']:,} ids at {bloom['error_rate']:g}{assumed}; "
        + ("full" if ids is None else f"about {ids:,} ids")
        + f", false-positive rate {bloom['false_positive_rate']:.2g}"
    )


def _content_text(content: Inspection) -> str:
    if not content["bytes"]:
        return "none"
    size = f"{content['bytes']:,} bytes: "
    if content["text"] is None:
        cut = "…" if content["bytes"] > _PREVIEW_BYTES else ""
        return f"{size}0x{content['head_hex']}{cut}"
    cut = "…" if len(content["text"].encode()) < content["bytes"] else ""
    return f"{size}{plain(content['text'])}{cut}"


def _segment_text(segment: Inspection) -> str:
    kind = "parity" if segment["is_parity"] else "data"
    count = segment["parity_count" if segment["is_parity"] else "data_count"]
    whole = segment["whole_bytes"]
    return (
        f"{kind} segment {segment['index']} of {count} (counted from 0), "
        f"{segment['bytes']:,} bytes"
        + (f" of {whole:,}" if whole is not None else "")
        + f", whole 0x{segment['payload_hash']}, "
        + "layout "
        + " or ".join(segment["layouts"])
    )


def _dump(head: bytes) -> Iterator[tuple[str, str]]:
    """The first bytes, in hexadecimal digits and, where they are, ASCII."""
    word = "begins with"
    for start in range(0, len(head), _ROW_BYTES):
        row = head[start : start + _ROW_BYTES]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield word, f"{start:04x}  {row.hex(' '):<{3 * _ROW_BYTES}} {text}"
        word = ""
