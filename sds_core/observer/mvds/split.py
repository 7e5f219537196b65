"""Divides the records of a payload among views, by message id (docs/figures.md, 14).

Records are not divided by peers: only a MESSAGE names its group, and most offers are
between two peers that never send the MESSAGE to each other. A view gets all records of
its message ids from all peers, so it learns the group of each id from the MESSAGE.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from sds_core.mvds.payload import Message, Payload, message_id
from sds_core.native import Uint64, native
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.mvds.frame import PeerPayload, pair_name

SHARDS = 8
"""Number of views. Never change it, because the states in checkpoints depend on it."""

_NAMES = tuple(str(shard) for shard in range(SHARDS))
_ID_BYTES = 32
_GROUP_BYTES = 8
_OFFERED_IN_GROUP_BYTES = 34
"""Encoded size of an id in a group offer, bytes: 1 for the tag, 1 for the length, and
32 for the id."""
_PARENT_BYTES = 34
_EPHEMERAL_BYTES = 2
_EMPTY_GROUP = "empty"


class RecordType(enum.IntEnum):
    """Type of a record. The records of a payload are read in the order of the types."""

    ACK = 0
    OFFER = 1
    REQUEST = 2
    MESSAGE = 3


@native
@dataclass(slots=True)
class RecordPart:
    """One record of a payload.

    Attributes:
        size: Encoded size of the record in bytes, including tags and lengths. If the
            payload repeats the record, this is the total of all repetitions.
        times: How often the payload contains the record.
        group: Name of the group of a MESSAGE; empty for other types.
        is_ephemeral: Whether the record is a MESSAGE that needs no acknowledgement.
    """

    type: RecordType
    message_id: bytes
    print: int
    size: int
    times: int = 1
    group: str = ""
    is_ephemeral: bool = False


@native
@dataclass(slots=True)
class PayloadPart:
    """The part of a payload that one view receives.

    Attributes:
        sender, receiver: Ids of the peers.
        content: Fingerprint of the encoded payload.
        is_counted: Whether this view counts the payload in its figures; exactly one
            view does.
        left_out: Number of records that a limit dropped; 0 unless `is_counted`.
        other_bytes: Number of bytes of the payload that belong to no record; 0 unless
            `is_counted`.
    """

    sender: str
    receiver: str
    content: int
    records: list[RecordPart]
    is_counted: bool
    is_empty: bool
    left_out: int
    other_bytes: int


@native
def split(frame: PeerPayload) -> list[tuple[str, PayloadPart]]:
    """Return the name of each view, and the part of the payload for this view.

    Even a view without records in the payload gets a part, because the part shows that
    the sender was active.
    """
    found: list[list[RecordPart]] = [[] for _ in _NAMES]
    other_bytes: int = frame.length
    record: RecordPart
    for record in _records(frame.payload, frame.tag_bytes):
        found[record.print % SHARDS].append(record)
        other_bytes -= record.size
    counting: int = fingerprint(pair_name(frame)) % SHARDS
    sender, receiver, content = frame.sender, frame.receiver, frame.content
    is_empty: bool = not frame.length
    parts: list[tuple[str, PayloadPart]] = []
    shard: int
    for shard in range(SHARDS):
        is_counted: bool = shard == counting
        part = PayloadPart(
            sender,
            receiver,
            content,
            found[shard],
            is_counted,
            is_empty,
            frame.left_out if is_counted else 0,
            other_bytes if is_counted else 0,
        )
        parts.append((_NAMES[shard], part))
    return parts


def shard_of(key: int) -> str:
    """Name of the view to which an id belongs; `key` is the id's fingerprint."""
    return _NAMES[key % SHARDS]


def group_name(group_id: bytes) -> str:
    """Name of a group: the first 16 hexadecimal digits of its id.

    If the id is empty, the name is `_EMPTY_GROUP`.
    """
    return group_id[:_GROUP_BYTES].hex() or _EMPTY_GROUP


@native
def _records(payload: Payload, tag_bytes: int) -> list[RecordPart]:
    """Return each distinct record once, in the order of `RecordType`.

    The same record may occur several times in a payload of a deployed node.
    """
    records: list[RecordPart] = []
    size: int = tag_bytes + 1 + _ID_BYTES
    for type_, ids in (
        (RecordType.ACK, payload.acks),
        (RecordType.OFFER, payload.offers),
        (RecordType.REQUEST, payload.requests),
    ):
        sizes = [(one, size) for one in ids]
        if type_ is RecordType.OFFER:
            grouped = [offer.message_ids for offer in payload.group_offers]
            offered = chain.from_iterable(grouped)
            sizes += [(one, _OFFERED_IN_GROUP_BYTES) for one in offered]
        for one, (bytes_, times) in _counted(sizes).items():
            records.append(RecordPart(type_, one, fingerprint(one), bytes_, times))
    if not payload.messages:
        return records
    messages = [(message_id(message), message) for message in payload.messages]
    by_id = dict(messages)
    sizes = [(one, _message_bytes(message, tag_bytes)) for one, message in messages]
    for one, (bytes_, times) in _counted(sizes).items():
        message = by_id[one]
        records.append(
            RecordPart(
                RecordType.MESSAGE,
                one,
                fingerprint(one),
                bytes_,
                times,
                group_name(message.group_id),
                bool(message.metadata and message.metadata.ephemeral),
            )
        )
    return records


def _counted(sizes: Iterable[tuple[bytes, int]]) -> dict[bytes, tuple[int, int]]:
    """Return the total size and the number of occurrences of each id.

    The ids are in order of their first occurrence.
    """
    counted: dict[bytes, tuple[int, int]] = {}
    for one, size in sizes:
        bytes_, times = counted.get(one, (0, 0))
        counted[one] = bytes_ + size, times + 1
    return counted


def _message_bytes(message: Message, tag_bytes: int) -> int:
    length = 0
    for part in (message.group_id, message.body):
        if part:
            length += _field_bytes(len(part), tag_bytes)
    if message.timestamp:
        # Protobuf encodes a negative number as an unsigned number of 64 bits.
        length += tag_bytes + _varint_bytes(message.timestamp % 2**64)
    if message.metadata is not None:
        inside = _PARENT_BYTES * len(message.metadata.parents)
        inside += _EPHEMERAL_BYTES * message.metadata.ephemeral
        length += _field_bytes(inside, tag_bytes)
    return _field_bytes(length, tag_bytes)


def _field_bytes(length: int, tag_bytes: int) -> int:
    return tag_bytes + _varint_bytes(length) + length


def _varint_bytes(number: Uint64) -> int:
    return max(1, -(-number.bit_length() // 7))
