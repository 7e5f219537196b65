"""Bytes of frames by part (docs/figures.md, 9)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sds_core.wire import Dialect
from sds_core.wire.proto import sds_nim_pb2, sds_spec_pb2

_MESSAGES: dict[
    Dialect, type[sds_spec_pb2.SdsMessage] | type[sds_nim_pb2.SdsMessage]
] = {
    Dialect.SPEC: sds_spec_pb2.SdsMessage,
    Dialect.NIM: sds_nim_pb2.SdsMessage,
}


class Sizes(NamedTuple):
    """The bytes of one frame by part; a part is whole fields: tag, length, payload.

    Attributes:
        content: bytes of the application.
        history: the causal history.
        bloom: the filter.
        repair: the repair requests.
        other: all other fields.
    """

    content: int = 0
    history: int = 0
    bloom: int = 0
    repair: int = 0
    other: int = 0


def sizes_of(dialect: Dialect, value: bytes) -> Sizes:
    """Return the bytes of each part: by how much a frame without it is shorter.

    Args:
        dialect: dialect of the frame.
        value: the frame as our participant wrote it, with each number in the fewest
            bytes.

    Raises:
        google.protobuf.message.DecodeError: The value is not a frame of this dialect.
    """
    message = _MESSAGES[dialect].FromString(value)

    def taken_out(field: str) -> int:
        before: int = message.ByteSize()
        message.ClearField(field)
        after: int = message.ByteSize()
        return before - after

    content = taken_out("content")
    history = taken_out("causal_history")
    bloom = taken_out("bloom_filter")
    repair = taken_out("repair_request")
    other = len(value) - content - history - bloom - repair
    return Sizes(content, history, bloom, repair, other)


def capacity_in(frames: Iterable[Sizes], responses: Iterable[Sizes]) -> dict[str, Any]:
    """Return the figures of a channel.

    Args:
        frames: sizes of every frame that is not a replica.
        responses: sizes of the frames among them that respond to a repair request.
    """
    # Also for a channel without frames.
    parts = Sizes(*map(sum, zip(Sizes(), *frames, strict=True)))
    return {
        "bytes": parts._asdict(),
        "repair_bytes": {"request": parts.repair, "response": sum(map(sum, responses))},
    }
