"""Converts between frames and the protobuf messages of both dialects.

The fields of both dialects have the same names.
"""

from __future__ import annotations

from collections.abc import Sequence

from sds_core.wire.errors import (
    NameTooLong,
    NeitherLamportNorContent,
    NoChannel,
    NoMessageId,
)
from sds_core.wire.frame import Dialect, Frame, HistoryEntryLike, kind_of
from sds_core.wire.proto import sds_nim_pb2, sds_spec_pb2

MAX_ID_CHARACTERS = 512
"""Maximum length of the id of a message, participant, channel, peer or tap.

See docs/records.md. Message ids of js-waku have 64 characters, content topics about 50,
and peer ids 53. The length is limited, because ids stay in memory longer than their
frames."""


def read_message(
    dialect: Dialect,
    message: sds_spec_pb2.SdsMessage
    | sds_nim_pb2.SdsMessage
    | sds_nim_pb2.OldSdsMessage,
    causal_history: Sequence[HistoryEntryLike],
) -> Frame:
    """Return a parsed message as a frame.

    Raises:
        NoMessageId: The message id is empty.
        NeitherLamportNorContent: The message has neither lamport timestamp nor content.
        NoChannel: The channel id is empty.
        NameTooLong: The message id, the sender id or the channel id is too long.
    """
    message_id = message.message_id
    if not message_id:
        raise NoMessageId(dialect)
    lamport: int | None = message.lamport_timestamp
    # If the timestamp is 0, the field may be absent. `HasField` is called only in this
    # case, because the call takes as long as reading the field.
    if not lamport and not message.HasField("lamport_timestamp"):
        lamport = None
    content = message.content
    kind = kind_of(lamport, content)
    if kind is None:
        raise NeitherLamportNorContent(dialect, message_id)
    channel_id = message.channel_id
    if not channel_id:
        raise NoChannel(dialect, message_id)
    sender_id = message.sender_id
    longest = max(len(message_id), len(sender_id), len(channel_id))
    if longest > MAX_ID_CHARACTERS:
        raise NameTooLong(dialect, longest, MAX_ID_CHARACTERS)
    return Frame(
        dialect,
        kind,
        sender_id,
        message_id,
        channel_id,
        lamport,
        causal_history,
        message.bloom_filter,
        message.repair_request,
        content,
    )


def write_message(
    kind: type[sds_spec_pb2.SdsMessage] | type[sds_nim_pb2.SdsMessage], frame: Frame
) -> bytes:
    """Encode a frame; `kind` is the protobuf class of the dialect."""
    message = kind(
        message_id=frame.message_id,
        lamport_timestamp=frame.lamport,
        channel_id=frame.channel_id,
        content=frame.content,
        bloom_filter=frame.bloom_filter,
        sender_id=frame.sender_id,
    )
    for entries, written in (
        (frame.causal_history, message.causal_history),
        (frame.repair_request, message.repair_request),
    ):
        for entry in entries:
            written.add(
                message_id=entry.message_id,
                retrieval_hint=entry.retrieval_hint,
                sender_id=entry.sender_id,
            )
    return message.SerializeToString()
