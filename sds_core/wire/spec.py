"""The dialect of the specification and of js-waku.

Source: SDS, "Wire protocol"; js-waku packages/proto/src/lib/sds_message.proto.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from sds_core.wire.errors import MalformedProtobuf
from sds_core.wire.frame import Dialect, Frame
from sds_core.wire.message import read_message, write_message
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
    return read_message(_SPEC, message, message.causal_history)


def encode(frame: Frame) -> bytes:
    """Write `frame` in this dialect, byte for byte as js-waku would.

    Fields stand in the order of their numbers, and nothing empty is written.
    """
    return write_message(SdsMessage, frame)
