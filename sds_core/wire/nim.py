"""The dialect of nim-sds.

Source: nim-sds sds/protobuf.nim.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from google.protobuf.message import DecodeError

from sds_core.wire import frame as frames
from sds_core.wire.errors import MalformedProtobuf
from sds_core.wire.frame import Dialect, Frame, HistoryEntryLike
from sds_core.wire.message import read_message
from sds_core.wire.proto.sds_nim_pb2 import HistoryEntry, OldSdsMessage, SdsMessage

_NIM = Dialect.NIM

_ID_OF = attrgetter("message_id")

_MOST_BARE_IDS = 1_000
"""Maximum number of entries in a valid history of bare message ids.

nim-sds sends ten.
"""

_MESSAGE_ID_TAG = 0x0A
"""Tag of field 1 of a HistoryEntry. The field is length-delimited.

As a character, this byte is a line feed.
"""


def decode(value: bytes) -> Frame:
    """Decode `value` as a message of this dialect.

    The function accepts more messages than nim-sds itself, which requires both the
    lamport timestamp and the content field.

    Raises:
        UndecodableFrame: The bytes are not a message of nim-sds.
    """
    message: SdsMessage | OldSdsMessage
    causal_history: Sequence[HistoryEntryLike]
    try:
        try:
            message = SdsMessage.FromString(value)
            causal_history = message.causal_history
            old = not all(map(_ID_OF, causal_history))
        except DecodeError:
            # Bare ids in the history, as older peers send them, may cause this error.
            old = True
        if old:
            message = OldSdsMessage.FromString(value)
            if len(message.causal_history) > _MOST_BARE_IDS:
                detail = (
                    f"the history has {len(message.causal_history)} bare ids, but at "
                    f"most {_MOST_BARE_IDS} are allowed"
                )
                raise MalformedProtobuf(detail, len(value))
            causal_history = tuple(map(_read_old_entry, message.causal_history))
    except (DecodeError, UnicodeDecodeError) as error:
        raise MalformedProtobuf(str(error), len(value)) from None
    return read_message(_NIM, message, causal_history)


def _read_old_entry(raw: bytes) -> frames.HistoryEntry:
    """Decode an entry of a history: a HistoryEntry, or an older peer's bare message id.

    A HistoryEntry and a bare id are both encoded as length-delimited field 3, so the
    tag does not distinguish them. Bytes count as a HistoryEntry if they parse as a
    HistoryEntry with a message id; unknown fields are skipped. A bare id could be
    mistaken for a HistoryEntry only if the id contained a line feed.
    """
    if _MESSAGE_ID_TAG in raw:
        try:
            entry = HistoryEntry.FromString(raw)
        except DecodeError:
            pass
        else:
            if entry.message_id:
                return frames.HistoryEntry(
                    entry.message_id, entry.retrieval_hint, entry.sender_id
                )
    return frames.HistoryEntry(str(raw, "utf-8"))
