"""Prints the content of a record that `streaming.cli.inspection` has collected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from connectors.files.record_lines import NO_OFFSET
from sds_core.text import counted, iso_time, printable
from sds_core.wire import Dialect
from streaming.cli.inspection import PREVIEW_BYTES, Inspection

_ROW_BYTES = 16
_UNITS = {Dialect.SPEC: "ms", Dialect.NIM: "s"}


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print facts, each a word and a value: on a terminal as a table, else as lines.

    A fact with an empty word continues the value of the previous fact.
    """
    console = Console()
    if not console.is_terminal:
        for word, value in facts:
            click.echo(f"{word}: {value}" if word else f"  {value}")
        return
    table = Table.grid(padding=(0, 2))
    for word, value in facts:
        style = "bold red" if word in ("undecodable", "error") else ""
        # The table wraps a long value instead of cutting it, so that people can copy
        # whole ids.
        table.add_row(Text(word, "dim"), Text(value, style, overflow="fold"))
    console.print(table)


def inspection_facts(inspection: Inspection) -> Iterator[tuple[str, str]]:
    """Yield words and values for `print_facts`, from the result of `inspect_record`."""
    if inspection["reason"]:
        yield "undecodable", inspection["reason"]
        yield "error", printable(inspection["error"])
        if inspection["error_offset"] is not None:
            yield "breaks at", f"byte {inspection['error_offset']:,}"
    if inspection["record"]:
        yield from _record_rows(inspection["record"])
    if inspection["heartbeat"]:
        yield "heartbeat", "of a tap: no frame"
    if inspection["reliable_channel"]:
        yield "marker", "sent through the Reliable Channel API"
    yield "bytes", f"{inspection['bytes']:,}"
    if inspection["frame"]:
        yield from _frame_rows(inspection["frame"])
    elif inspection["reason"]:
        yield from _dump(bytes.fromhex(inspection["head_hex"]))


def _record_rows(record: Inspection) -> Iterator[tuple[str, str]]:
    place = f"partition {record['partition']}"
    if record["offset"] != NO_OFFSET:
        place += f", offset {record['offset']}"
    yield "record", f"{place}, {iso_time(record['timestamp_ms'])}"
    if record["key"] is not None:
        yield "key", _value_of(record["key"])
    for name, value in record["headers"]:
        yield "header", f"{_value_of(name)} = {_value_of(value)}"


def _value_of(value: str | dict[str, str] | None) -> str:
    """Return a key, or a header's name or value, as one line; if not text, as hex."""
    if value is None:
        return "absent"
    return printable(value) if isinstance(value, str) else f"0x{value['hex']}"


def _frame_rows(frame: Inspection) -> Iterator[tuple[str, str]]:
    yield "dialect", frame["dialect"]
    yield "kind", frame["kind"]
    yield "channel", printable(frame["channel"])
    yield "sender", printable(frame["sender"] or "unknown")
    yield "message", printable(frame["message_id"])
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
        facts = [printable(entry["message_id"])]
        if entry["sender"]:
            facts.append(f"of {printable(entry['sender'])}")
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
        cut = "…" if content["bytes"] > PREVIEW_BYTES else ""
        return f"{size}0x{content['head_hex']}{cut}"
    cut = "…" if len(content["text"].encode()) < content["bytes"] else ""
    return f"{size}{printable(content['text'])}{cut}"


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
    word = "begins with"
    for start in range(0, len(head), _ROW_BYTES):
        row = head[start : start + _ROW_BYTES]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield word, f"{start:04x}  {row.hex(' '):<{3 * _ROW_BYTES}} {text}"
        word = ""
