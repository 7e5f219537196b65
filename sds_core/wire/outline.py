"""Splits a frame into fields, without decoding its ids and history entries.

Most ids and entries of a frame have occurred in previous frames. An `Outline` keeps ids
and entries as bytes, so that the caller can look them up and decode only new ids and
entries. A frame has an outline if its encoding is the usual one: the frame is in the
specification's dialect, has no unknown field, encodes each field in the shortest form,
and repeats only fields that are lists. `decode` reads frames without an outline, and
reports errors of invalid frames.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from sds_core.native import native
from sds_core.wire.bloom import DEFAULT_PARAMETERS
from sds_core.wire.frame import HistoryEntry
from sds_core.wire.parts import PartSizes
from sds_core.wire.proto import sds_spec_pb2

_FromString = sds_spec_pb2.Outline.FromString
_read_entry = sds_spec_pb2.HistoryEntry.FromString
_new_tuple = tuple.__new__

_FILTER_BYTES = DEFAULT_PARAMETERS.length_bytes
_FILTER_FIELD = sds_spec_pb2.Outline(
    bloom_filter=bytes(_FILTER_BYTES)
).SerializeToString()[:-_FILTER_BYTES]
"""Tag and length, in wire form, that precede a filter of the default size."""

_ID_TAG, _HINT_TAG, _SENDER_TAG = 0x0A, 0x12, 0x1A
"""Tags of the fields of a history entry."""

_SHORT, _MIDDLE, _LONG = 1 << 7, 1 << 14, 1 << 21
"""Smallest values whose varint has two, three and four bytes."""

MAX_OUTLINED_BYTES = _LONG
"""Maximum length of a frame that can have an outline, bytes."""


class Outline(NamedTuple):
    """Fields of a frame that has a Lamport timestamp; ids and entries are not decoded.

    The caller must add up `entry_bytes` for all entries of the history. If the sum
    differs from `sizes.history`, the frame has fields that the outline lacks, and the
    outline is invalid.

    Attributes:
        sender_id: Id of the sender; empty if unknown. The id may be invalid UTF-8.
        message_id, channel_id: The ids may be invalid UTF-8, and are never empty.
        causal_history: Entries of the history, each in its wire form.
        bloom_filter: The filter in its wire form, possibly a view of the frame's bytes;
            empty if absent.
        sizes: Number of bytes of each part of the frame, as `part_sizes` returns it.
    """

    sender_id: bytes
    message_id: bytes
    channel_id: bytes
    lamport: int
    causal_history: list[bytes]
    bloom_filter: bytes | memoryview
    repair_request: list[bytes]
    content: bytes
    sizes: PartSizes


@native
def outline_of(value: bytes, most_entries: int) -> Outline | None:
    """Return the outline of a frame; None if the frame has no outline.

    Args:
        value: The frame in its wire form.
        most_entries: A frame with more history entries than this has no outline.
    """
    size = len(value)
    if size > MAX_OUTLINED_BYTES:
        return None
    read, bloom_filter = _parsed(value, size)
    if read is None:
        return None
    message_id, channel_id = read.message_id, read.channel_id
    lamport = read.lamport_timestamp
    if not (message_id and channel_id and lamport):
        return None
    entries = read.causal_history
    if len(entries) > most_entries:
        return None
    sender_id = read.sender_id
    # The size of a field includes its tag, its length prefix (which numbers do not
    # have) and its value.
    length: int = len(message_id)
    other: int = length + (2 if length < _SHORT else _overhead(length))
    length = len(channel_id)
    other += length + (2 if length < _SHORT else _overhead(length))
    other += 1 + (lamport.bit_length() + 6) // 7
    if sender_id:
        length = len(sender_id)
        other += length + (2 if length < _SHORT else _overhead(length))
    # The content is field 20, whose tag has two bytes. All other tags have one byte.
    content = read.content
    length = len(content)
    content_size = length and length + 1 + (2 if length < _SHORT else _overhead(length))
    length = len(bloom_filter)
    bloom = length and length + _overhead(length)
    repair_request = list(read.repair_request)
    repair = sum(map(entry_bytes, repair_request)) if repair_request else 0
    history = size - other - content_size - bloom - repair
    sizes = _new_tuple(PartSizes, (content_size, history, bloom, repair, other))
    return _new_tuple(
        Outline,
        (
            sender_id,
            message_id,
            channel_id,
            lamport,
            list(entries),
            bloom_filter,
            repair_request,
            content,
            sizes,
        ),
    )


@native
def _parsed(
    value: bytes, size: int
) -> tuple[sds_spec_pb2.Outline | None, bytes | memoryview]:
    """Return a frame's fields and, if possible without a copy, its filter.

    If protobuf messages are concatenated, the result is a message with the fields of
    all these messages. Therefore, if the bytes before a filter parse as a message, the
    filter is a field of the frame, and not inside another field.
    """
    if size > _FILTER_BYTES:
        begin = value.rfind(_FILTER_FIELD, 0, size - _FILTER_BYTES)
        if begin >= 0:
            bits = begin + len(_FILTER_FIELD)
            try:
                read = _FromString(value[:begin])
                if after := value[bits + _FILTER_BYTES :]:
                    read.MergeFromString(after)
            except DecodeError:
                pass
            else:
                if not read.bloom_filter:
                    return read, memoryview(value)[bits : bits + _FILTER_BYTES]
    try:
        read = _FromString(value)
    except DecodeError:
        return None, b""
    return read, read.bloom_filter


@native
def entry_bytes(entry: bytes) -> int:
    """Return how many bytes an entry takes in a frame, with tag and length prefix."""
    length = len(entry)
    return length + (2 if length < _SHORT else _overhead(length))


@native
def outlined_entry(entry: bytes) -> HistoryEntry | None:
    """Decode an entry of an outline.

    The result is None if the entry does not have the usual encoding. The caller must
    then decode the whole frame with `decode`.
    """
    size: int = len(entry)
    # js-waku and nim-sds write id, hint and sender, each of less than 128 bytes. Such
    # an entry is decoded without the protobuf library.
    id_end: int = _end_of(entry, 0, _ID_TAG)
    hint_end: int = _end_of(entry, id_end, _HINT_TAG)
    if _end_of(entry, hint_end, _SENDER_TAG) == size:
        try:
            message_id = entry[2:id_end].decode()
            sender_id = entry[hint_end + 2 :].decode()
        except UnicodeDecodeError:
            return None
        hint = entry[id_end + 2 : hint_end]
        return _new_tuple(HistoryEntry, (message_id, hint, sender_id))
    try:
        read = _read_entry(entry)
    except DecodeError:
        return None
    parts = read.message_id.encode(), read.retrieval_hint, read.sender_id.encode()
    # If the entry's size differs from the sum of its fields' sizes, the entry has an
    # empty field or an unknown field.
    if size != sum([entry_bytes(part) for part in parts if part]):
        return None
    return HistoryEntry(read.message_id, read.retrieval_hint, read.sender_id)


@native
def _end_of(entry: bytes, at: int, tag: int) -> int:
    """Return where the field that begins at `at` ends.

    If no field with this tag and 1 to 127 bytes begins there, the result is `at`.
    """
    if at + 1 >= len(entry) or entry[at] != tag:
        return at
    length: int = entry[at + 1]
    return at + 2 + length if 0 < length < _SHORT else at


@native
def _overhead(length: int) -> int:
    return 2 if length < _SHORT else 3 if length < _MIDDLE else 4
