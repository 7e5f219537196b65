"""Protobuf written by hand, so that no test depends on the library under test."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """Return `value` in groups of seven bits, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | bytes | str) -> bytes:
    """Return one field: an integer as varint, anything else length-delimited."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def entry(message_id: str, hint: bytes = b"", sender_id: str = "") -> bytes:
    """Return a HistoryEntry, empty fields left out."""
    out = field(1, message_id)
    if hint:
        out += field(2, hint)
    if sender_id:
        out += field(3, sender_id)
    return out
