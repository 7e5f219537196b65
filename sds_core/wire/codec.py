"""Converts between bytes and `Frame`; module `nim` decodes the dialect of nim-sds.

Sources of the specification's dialect: SDS, "Wire protocol"; js-waku
packages/proto/src/lib/sds_message.proto.

A message does not name its dialect. Field 2 distinguishes the dialects: in the
specification, field 2 is the message id (length-delimited); in nim-sds, it is the
lamport timestamp (a varint).
"""

from __future__ import annotations

from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError

from sds_core.wire import nim
from sds_core.wire.errors import EmptyValue, MalformedProtobuf, ValueTooLarge
from sds_core.wire.frame import Dialect, Frame
from sds_core.wire.message import read_message, write_message
from sds_core.wire.proto import sds_nim_pb2, sds_spec_pb2

if api_implementation.Type() != "upb":
    # Protobuf's pure Python implementation is 18 times slower than upb.
    _message = (
        "sds_core.wire needs protobuf's upb implementation, but found "
        f"'{api_implementation.Type()}': install protobuf from a wheel and unset "
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"
    )
    raise ImportError(_message)

MAX_VALUE_BYTES = 4 * 1024 * 1024
"""Maximum length of a value that `decode` accepts, bytes (docs/records.md).

Relays carry at most 150 KB (64/WAKU2-NETWORK), so real frames are far shorter. A single
value above this maximum could cost as much memory and time as thousands of frames.
"""

# Tags, (field number << 3 | wire type), of the first fields of a message.
_FIELD_1_LENGTH_DELIMITED = 0x0A
_FIELD_2_VARINT = 0x10
_FIELD_2_LENGTH_DELIMITED = 0x12

_SPEC = Dialect.SPEC
_NIM = Dialect.NIM


def decode(value: bytes) -> Frame:
    """Decode one SDS message.

    The checks run in the order of the exception classes in errors.py. The first check
    that fails determines the exception.

    Raises:
        UndecodableFrame: The bytes are not an SDS message; `reason` says why.
    """
    if not value:
        raise EmptyValue
    if len(value) > MAX_VALUE_BYTES:
        raise ValueTooLarge(len(value), MAX_VALUE_BYTES)
    if dialect_of(value) is _NIM:
        return nim.decode(value)
    try:
        message = sds_spec_pb2.SdsMessage.FromString(value)
    except DecodeError as error:
        raise MalformedProtobuf(str(error), len(value)) from None
    return read_message(_SPEC, message, message.causal_history)


def encode(frame: Frame) -> bytes:
    """Encode `frame` in its dialect, byte for byte as the dialect's own library does.

    `decode` converts the result to an equal frame if all these conditions are met:

    - The frame has an id and a channel. No id is longer than MAX_ID_CHARACTERS.
    - The frame's kind matches its fields, as `Frame.build` ensures.
    - In NIM, each entry of the causal history has a message id.
    - The encoding has at most MAX_VALUE_BYTES.

    Fields are in the order of their numbers. In SPEC, empty fields are omitted. In NIM,
    content and filter are written even if they are empty. The causal history is always
    written as entries; only older peers write it as bare ids.

    Raises:
        ValueError: A lamport timestamp is not in [0, 2**64), or UTF-8 cannot represent
            a text.
    """
    schema = sds_nim_pb2 if frame.dialect is _NIM else sds_spec_pb2
    return write_message(schema.SdsMessage, frame)


def dialect_of(value: bytes) -> Dialect:
    """Return the dialect of a message.

    Both libraries write fields in order, so field 2 is first or follows field 1.
    Protobuf also allows any other order. For a message with another order, this
    function searches for field 2 with the protobuf library, which parses the message at
    most twice. If field 2 is absent, as in an ephemeral message of nim-sds, fields 4 to
    7 show the dialect, because only nim-sds has these fields.

    No library writes field 2 in the wire types of both dialects. If a message
    nevertheless has two such fields, the one that is first or follows field 1 decides.
    If both are elsewhere, the dialect is SPEC.

    Raises:
        MalformedProtobuf: The bytes are not protobuf.
    """
    tag = value[0]
    # This condition covers a field 1 of at most 127 bytes: one byte encodes its length.
    if tag == _FIELD_1_LENGTH_DELIMITED and len(value) > 1 and value[1] < 0x80:
        after_field_1 = 2 + value[1]
        if after_field_1 < len(value):
            tag = value[after_field_1]
    if tag == _FIELD_2_LENGTH_DELIMITED:
        return _SPEC
    if tag == _FIELD_2_VARINT:
        return _NIM
    return _dialect_by_search(value)


def _dialect_by_search(value: bytes) -> Dialect:
    try:
        if sds_spec_pb2.DialectMark.FromString(value).HasField("message_id"):
            return _SPEC
        mark = sds_nim_pb2.DialectMark.FromString(value)
    except DecodeError as error:
        raise MalformedProtobuf(str(error), len(value)) from None
    return _NIM if mark.ListFields() else _SPEC
