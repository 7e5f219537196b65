"""The dialect of the specification and of js-waku.

Source: SDS, "Wire protocol"; js-waku packages/proto/src/lib/sds_message.proto.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from sds_core.wire.errors import (
    MalformedProtobuf,
    NeitherLamportNorContent,
    NoChannel,
    NoMessageId,
)
from sds_core.wire.frame import Dialect, Frame, kind_of
from sds_core.wire.proto.sds_spec_pb2 import SdsMessage

_SPEC = Dialect.SPEC


def decode(value: bytes) -> Frame:
    """Read `value` as a message of this dialect.

    Raises:
        UndecodableFrame: The bytes are not a message of this dialect.
    """
    try:
        message = SdsMessage.FromString(value)
    except DecodeError as error:
        raise MalformedProtobuf(str(error), len(value)) from None
    message_id = message.message_id
    if not message_id:
        raise NoMessageId(_SPEC)
    lamport: int | None = message.lamport_timestamp
    # Asking for presence costs as much as the access: only 0 can mean absent.
    if not lamport and not message.HasField("lamport_timestamp"):
        lamport = None
    content = message.content
    kind = kind_of(lamport, content)
    if kind is None:
        raise NeitherLamportNorContent(_SPEC, message_id)
    channel_id = message.channel_id
    if not channel_id:
        raise NoChannel(_SPEC, message_id)
    return Frame(
        _SPEC,
        kind,
        message.sender_id,
        message_id,
        channel_id,
        lamport,
        message.causal_history,
        message.bloom_filter,
        message.repair_request,
        content,
    )


def encode(frame: Frame) -> bytes:
    """Write `frame` in this dialect, byte for byte as js-waku would.

    Fields stand in the order of their numbers, and nothing empty is written.
    """
    message = SdsMessage(
        sender_id=frame.sender_id,
        message_id=frame.message_id,
        channel_id=frame.channel_id,
        lamport_timestamp=frame.lamport,
        bloom_filter=frame.bloom_filter,
        content=frame.content,
    )
    for entry in frame.causal_history:
        message.causal_history.add(
            message_id=entry.message_id,
            retrieval_hint=entry.retrieval_hint,
            sender_id=entry.sender_id,
        )
    for entry in frame.repair_request:
        message.repair_request.add(
            message_id=entry.message_id,
            retrieval_hint=entry.retrieval_hint,
            sender_id=entry.sender_id,
        )
    return message.SerializeToString()
