"""Encodes and decodes payloads in the wire format of MVDS.

The specification numbers the fields from 5001, but vacp2p/mvds numbers them from 1.
This module decodes both numberings, but always encodes with the numbering of the
specification.

The first byte of a value shows which numbering the value uses. A value begins with the
tag of a field. This tag has three bytes in the numbering of the specification, and one
byte in the numbering of vacp2p/mvds.

Sources: 2/MVDS, "Payloads"; 4/MVDS-META; status-im/mvds for `group_offers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from google.protobuf.message import DecodeError

from sds_core.mvds.proto import mvds_pb2, mvds_vacp2p_pb2
from sds_core.reason import Reason
from sds_core.wire import MAX_VALUE_BYTES, ValueTooLarge
from sds_core.wire.errors import UndecodableFrame


class NotAPayload(UndecodableFrame):
    """The bytes are not a payload of MVDS."""

    reason = Reason.MVDS_ERROR


@dataclass(eq=False, repr=False)
class MalformedPayload(NotAPayload):
    """The bytes are not valid protobuf, or do not have the structure of a payload."""

    text = "{actual_bytes} bytes are no MVDS payload: {detail}"

    detail: str
    actual_bytes: int


@dataclass(eq=False, repr=False)
class NoRecord(NotAPayload):
    """The bytes contain none of the fields of a payload."""

    text = "{actual_bytes} bytes have no field of an MVDS payload"

    actual_bytes: int


@dataclass(eq=False, repr=False)
class WrongIdLength(NotAPayload):
    """A message id does not have the length of a SHA-256 hash."""

    text = "{field} has an id of {actual_bytes} bytes, an id has {expected_bytes}"

    field: str
    actual_bytes: int
    expected_bytes: int


@dataclass(eq=False, repr=False)
class TooManyRecords(NotAPayload):
    """The payload has more records than `MAX_RECORDS`."""

    text = "the payload has {actual} records and parents, but at most {limit} are read"

    actual: int
    limit: int


ID_BYTES = 32
"""Length of a message id, which is a SHA-256 hash."""

ID_RECORD_BYTES = 36
"""Length of an encoded ACK, OFFER or REQUEST, including its tag."""

MAX_RECORDS = 10_000
"""Maximum number of records in one payload.

Parents, group offers and the ids in group offers also count as records. A Waku message
has at most 150 KB, which is enough for about 4,500 ids.
"""

_GREATEST_ONE_BYTE_TAG = 0x7F


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a message (4/MVDS-META); `parents` are message ids."""

    parents: tuple[bytes, ...] = ()
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A record of type MESSAGE.

    Attributes:
        timestamp: Time of the message, a signed integer of 64 bits. The specification
            names no unit; deployed nodes write Unix seconds.
    """

    group_id: bytes
    timestamp: int
    body: bytes
    metadata: Metadata | None = None


@dataclass(frozen=True, slots=True)
class GroupOffer:
    """Offers of several messages of one group, with the group's id (status-im/mvds)."""

    group_id: bytes
    message_ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Payload:
    """The records that one node sends to one peer in one epoch.

    Message ids have 32 bytes, are in the order of the encoded payload, and may occur
    more than once. `group_offers` extends the specification.
    """

    acks: tuple[bytes, ...] = ()
    offers: tuple[bytes, ...] = ()
    requests: tuple[bytes, ...] = ()
    messages: tuple[Message, ...] = ()
    group_offers: tuple[GroupOffer, ...] = ()

    def offered(self) -> Iterable[bytes]:
        """Yield the ids of all offers; the ids of `group_offers` come last."""
        yield from self.offers
        for offer in self.group_offers:
            yield from offer.message_ids


def decode(value: bytes) -> Payload:
    """Decode a payload in either numbering; an empty value is an empty payload.

    Unknown fields are ignored, but at least one field must be known.

    Raises:
        ValueTooLarge: The value has more than MAX_VALUE_BYTES, so it was not parsed.
        NotAPayload: The value is not protobuf, has no known field, has an id that is
            not 32 bytes long, or has more than MAX_RECORDS records.
    """
    payload, _ = decode_first(value, MAX_RECORDS)
    return payload


def decode_first(value: bytes, most: int) -> tuple[Payload, int]:
    """Check all records of a payload, but return only the first `most` records.

    No objects are created for the omitted records, because creating objects takes most
    of the decoding time.

    Args:
        value: The payload; see `decode`.
        most: Maximum number of records to return. Records are counted in the order ACK,
            OFFER, REQUEST, MESSAGE. The ids of group offers follow the other offers.

    Returns:
        The payload with the returned records, and the number of omitted records.

    Raises:
        ValueTooLarge, NotAPayload: See `decode`.
    """
    if not value:
        return Payload(), 0
    if len(value) > MAX_VALUE_BYTES:
        raise ValueTooLarge(len(value), MAX_VALUE_BYTES)
    is_specified = value[0] > _GREATEST_ONE_BYTE_TAG
    schema = mvds_pb2 if is_specified else mvds_vacp2p_pb2
    try:
        parsed = schema.Payload.FromString(value)
    except DecodeError as error:
        raise MalformedPayload(str(error), len(value)) from None
    group_offers = parsed.group_offers if isinstance(parsed, mvds_pb2.Payload) else ()
    records = (
        len(parsed.acks)
        + len(parsed.offers)
        + len(parsed.requests)
        + len(parsed.messages)
        + sum(len(offer.message_ids) for offer in group_offers)
    )
    if not records + len(group_offers):
        raise NoRecord(len(value))
    count = records + len(group_offers)
    if count <= MAX_RECORDS and parsed.messages:
        merged = schema.Parents.FromString(value).messages
        count += len(_ids("metadata.parents", merged.metadata.parents))
    if count > MAX_RECORDS:
        raise TooManyRecords(count, MAX_RECORDS)
    left = most

    def first(field: str, ids: Iterable[bytes]) -> tuple[bytes, ...]:
        nonlocal left
        taken = _ids(field, ids)[:left]
        left -= len(taken)
        return taken

    acks, offers = first("acks", parsed.acks), first("offers", parsed.offers)
    grouped = tuple(
        GroupOffer(offer.group_id, first("group_offers", offer.message_ids))
        for offer in group_offers
    )
    requests = first("requests", parsed.requests)
    messages = tuple(_message(message) for message in parsed.messages[:left])
    left -= len(messages)
    return Payload(acks, offers, requests, messages, grouped), records - (most - left)


def encode(payload: Payload) -> bytes:
    """Encode a payload with the field numbers of the specification.

    Deployed Go nodes encode the same bytes: fields are in the order of their numbers,
    and empty fields are omitted.

    Raises:
        ValueError: A timestamp does not fit into a signed integer of 64 bits.
    """
    return mvds_pb2.Payload(
        acks=payload.acks,
        offers=payload.offers,
        requests=payload.requests,
        messages=[_written(message) for message in payload.messages],
        group_offers=[
            mvds_pb2.GroupOffer(group_id=offer.group_id, message_ids=offer.message_ids)
            for offer in payload.group_offers
        ],
    ).SerializeToString()


def message_record_bytes(message: Message) -> int:
    """Return the length of an encoded MESSAGE, including its tag.

    Raises:
        ValueError: The timestamp does not fit into a signed integer of 64 bits.
    """
    return mvds_pb2.Payload(messages=[_written(message)]).ByteSize()


def _ids(field: str, ids: Iterable[bytes]) -> tuple[bytes, ...]:
    checked = tuple(ids)
    for length in set(map(len, checked)):
        if length != ID_BYTES:
            raise WrongIdLength(field, length, ID_BYTES)
    return checked


def _message(found: mvds_pb2.Message | mvds_vacp2p_pb2.Message) -> Message:
    metadata = None
    if found.HasField("metadata"):
        parents = _ids("metadata.parents", found.metadata.parents)
        metadata = Metadata(parents, found.metadata.ephemeral)
    return Message(found.group_id, found.timestamp, found.body, metadata)


def _written(message: Message) -> mvds_pb2.Message:
    metadata = None
    if message.metadata is not None:
        metadata = mvds_pb2.Metadata(
            parents=message.metadata.parents, ephemeral=message.metadata.ephemeral
        )
    return mvds_pb2.Message(
        group_id=message.group_id,
        timestamp=message.timestamp,
        body=message.body,
        metadata=metadata,
    )


def message_id(message: Message) -> bytes:
    """Return the id of a message, 32 bytes (2/MVDS, "Payloads").

    The id is a hash. 2/MVDS does not define how the timestamp is encoded before it is
    hashed. Deployed nodes use 8 bytes, little-endian (vacp2p/mvds
    protobuf/messageid.go).

    The metadata is not hashed. Group id, timestamp and body are hashed without
    separators, so two different messages can have the same id if their group ids differ
    in length.
    """
    # Negative timestamps are encoded in two's complement, as in Go.
    timestamp = message.timestamp.to_bytes(8, "little", signed=True)
    return sha256(b"MESSAGE_ID" + message.group_id + timestamp + message.body).digest()
