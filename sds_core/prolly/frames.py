"""Frames, which divide a byte stream into messages.

A frame has the message's length (4 bytes, big-endian), the message's kind (1 byte), and
the message. This format is ours, because 75/WAKU2-SYNC does not define frames.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from struct import Struct
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError, Message

from sds_core.prolly.errors import (
    BadFrame,
    LimitExceeded,
    PeerRefused,
    UnexpectedMessage,
)
from sds_core.prolly.proto import batched_sync_pb2 as batched
from sds_core.prolly.proto import waku2_sync_pb2 as document
from sds_core.text import printable, shorten

_HEAD: Final = Struct(">IB")

_LONGEST_REASON: Final = 200
"""`PeerRefused` shows at most this number of characters of the peer's reason."""


class Kind(enum.IntEnum):
    """Kind of the message in a frame.

    Kinds below 16 are messages of 75/WAKU2-SYNC; the others are messages of our
    protocol.
    """

    EXCHANGE_ROOT_REQUEST = 1
    EXCHANGE_ROOT_RESPONSE = 2
    GET_INTERMEDIATE_NODE_REQUEST = 3
    GET_INTERMEDIATE_NODE_RESPONSE = 4
    GET_NON_BOUNDARY_NODES_REQUEST = 5
    GET_NON_BOUNDARY_NODES_RESPONSE = 6
    OPEN = 16
    STEP = 17
    WANT = 18
    ITEMS = 19
    RECORDS_REQUEST = 20
    RECORDS_RESPONSE = 21
    REFUSAL = 22
    CREDENTIAL = 23


_TYPES: Final[dict[Kind, type[Message]]] = {
    kind: getattr(
        document if kind < Kind.OPEN else batched,
        kind.name.title().replace("_", ""),
    )
    for kind in Kind
}
"""For each kind, the protobuf type of its messages."""

_KINDS: Final = {kind: number for number, kind in _TYPES.items()}


class Frame(NamedTuple):
    """One frame of a stream. The body is an encoded protobuf message."""

    kind: Kind
    body: bytes

    def __bytes__(self) -> bytes:
        """Return the encoded frame."""
        return _HEAD.pack(len(self.body), self.kind) + self.body


def frame_of(message: Message) -> Frame:
    """Return the frame that contains a message."""
    return Frame(_KINDS[type(message)], message.SerializeToString())


def message_in(
    frame: Frame,
    max_bytes: int | None = None,
    expected: Collection[Kind] = frozenset(Kind),
) -> Message:
    """Return the message in a frame.

    A message that is a list of many small items takes up to 40 times the memory of its
    frame. If such messages are expected, pass their maximum length as `max_bytes`.
    Otherwise, pass only the kinds of the expected messages as `expected`.

    Raises:
        UnexpectedMessage: The frame's kind is not in `expected`. The message is not
            parsed.
        LimitExceeded: The body has more than `max_bytes` bytes.
        BadFrame: The body is not a message of the frame's kind.
        PeerRefused: The message is a `Refusal`.
    """
    if frame.kind not in expected:
        text = f"{_TYPES[frame.kind].__name__} is not expected at this point"
        raise UnexpectedMessage(text)
    if max_bytes is not None:
        _check_length(len(frame.body), max_bytes)
    message = _TYPES[frame.kind]()
    try:
        message.ParseFromString(frame.body)
    except DecodeError as error:
        text = f"{len(frame.body)} bytes are not a message {frame.kind.name}"
        raise BadFrame(text) from error
    if isinstance(message, batched.Refusal):
        reason = printable(shorten(message.reason, _LONGEST_REASON))
        raise PeerRefused(reason or "the peer refused the request, but gave no reason")
    return message


class FrameReader:
    """Splits a stream into frames.

    Args:
        max_bytes: Maximum length of a message, bytes.
        first_bytes: Maximum length of the first message, bytes. If None, it is
            `max_bytes`.
    """

    def __init__(self, max_bytes: int, first_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes if first_bytes is None else first_bytes
        self._later_bytes = max_bytes
        self._buffer = bytearray()

    @property
    def is_between_frames(self) -> bool:
        """Whether no frame is incomplete, so that the stream may end now."""
        return not self._buffer

    def feed(self, data: bytes) -> list[Frame]:
        """Process the next bytes of the stream; return the frames that they complete.

        Raises:
            LimitExceeded: The length in a frame's header is above the maximum.
            BadFrame: The kind of a frame is unknown.
        """
        self._buffer += data
        frames = []
        while len(self._buffer) >= _HEAD.size:
            length, number = _HEAD.unpack_from(self._buffer)
            _check_length(length, self._max_bytes)
            try:
                kind = Kind(number)
            except ValueError:
                text = f"a frame has the unknown kind {number}"
                raise BadFrame(text) from None
            end = _HEAD.size + length
            if len(self._buffer) < end:
                break
            frames.append(Frame(kind, bytes(self._buffer[_HEAD.size : end])))
            del self._buffer[:end]
            self._max_bytes = self._later_bytes
        return frames


def _check_length(length: int, max_bytes: int) -> None:
    if length > max_bytes:
        text = f"a frame has {length} bytes, but at most {max_bytes} bytes are allowed"
        raise LimitExceeded(text)
