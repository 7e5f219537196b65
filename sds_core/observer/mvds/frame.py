"""Reads a record's MVDS payload, and the peers that its headers name."""

from __future__ import annotations

from typing import NamedTuple

from sds_core.mvds.payload import Payload, decode_first
from sds_core.native import native
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.mvds.limits import MOST_RECORDS
from sds_core.observer.record import BadHeader, Headers, read_name

_GREATEST_ONE_BYTE_TAG = 0x7F


class PeerPayload(NamedTuple):
    """One payload that one peer sent to another.

    Attributes:
        left_out: Number of records that are omitted, because the payload has more than
            `MOST_RECORDS` records.
        tag_bytes: Length of each Protobuf field's tag in bytes: 3 if the payload uses
            the field numbers of the specification, 1 if it uses the field numbers of
            vacp2p/mvds.
        content: Fingerprint of the encoded payload.
    """

    sender: str
    receiver: str
    payload: Payload
    left_out: int
    length: int
    tag_bytes: int
    content: int


@native
def decode(value: bytes, headers: Headers) -> PeerPayload:
    """Decode a record's payload, and read its peers (docs/records.md).

    Raises:
        BadHeader: A header `peer` or `to` is absent, empty, not UTF-8, or too long
            (`record.LongName`).
        UndecodableFrame: The value is not a payload.
    """
    values = dict(headers)
    sender, receiver = _peer(values, "peer"), _peer(values, "to")
    is_specified = value[:1] > bytes([_GREATEST_ONE_BYTE_TAG])
    payload, left_out = decode_first(value, MOST_RECORDS)
    return PeerPayload(
        sender,
        receiver,
        payload,
        left_out,
        len(value),
        3 if is_specified else 1,
        fingerprint(value),
    )


@native
def pair_name(frame: PeerPayload) -> str:
    """The record key of a payload: the sorted ids of its two peers, joined by ``|``."""
    return "|".join(sorted((frame.sender, frame.receiver)))


@native
def fits_key(key: bytes, frame: PeerPayload) -> bool:
    """Whether `key` is the record key that a payload between these peers must have."""
    return key == pair_name(frame).encode()


@native
def _peer(values: dict[str, bytes | None], name: str) -> str:
    value = values.get(name) or b""
    peer = read_name(name, value)
    if not peer:
        raise BadHeader(name, values.get(name))
    return peer
