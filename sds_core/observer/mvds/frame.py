"""Reads an MVDS payload from a record, and the peers that the record's headers name."""

from __future__ import annotations

from typing import NamedTuple

from sds_core.mvds.payload import Payload, decode_first
from sds_core.native import native
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.mvds.limits import MOST_RECORDS
from sds_core.observer.record import BadHeader, Headers, read_name

_GREATEST_ONE_BYTE_TAG = 0x7F


class PeerPayload(NamedTuple):
    """One payload on its way from one peer to another.

    Attributes:
        left_out: Number of records above the limit `MOST_RECORDS`.
        tag_bytes: Bytes in the tag of each field: 3 if the field numbers are those of
            the specification, 1 if they are those of vacp2p/mvds.
        content: Fingerprint of the value.
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
    """Read a record's payload and peers (docs/records.md).

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
    """The two peers, in alphabetical order: the key of a record."""
    return "|".join(sorted((frame.sender, frame.receiver)))


@native
def fits_key(key: bytes, frame: PeerPayload) -> bool:
    """Whether a record with this key may hold a payload between these peers."""
    return key == pair_name(frame).encode()


@native
def _peer(values: dict[str, bytes | None], name: str) -> str:
    value = values.get(name) or b""
    peer = read_name(name, value)
    if not peer:
        raise BadHeader(name, values.get(name))
    return peer
