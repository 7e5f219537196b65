"""Reasons for dead letters.

The reasons have a module of their own, because importing the decoders is slow.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a record is a dead letter. The header `dead-letter-reason` has this value.

    Every dead letter has one of these reasons (docs/records.md). The SDS decoder
    reports the reasons from `EMPTY_VALUE` to `NO_CHANNEL`. `NAME_TOO_LONG` concerns
    names in SDS frames or in headers. The other reasons concern the key, time or
    headers of the Kafka record, or an MVDS payload.
    """

    EMPTY_VALUE = "empty_value"
    TOO_LARGE = "too_large"
    PROTOBUF_ERROR = "protobuf_error"
    NO_MESSAGE_ID = "no_message_id"
    NEITHER_LAMPORT_NOR_CONTENT = "neither_lamport_nor_content"
    NO_CHANNEL = "no_channel"
    CHANNEL_MISMATCH = "channel_mismatch"
    FUTURE_TIMESTAMP = "future_timestamp"
    BAD_HEADER = "bad_header"
    MVDS_ERROR = "mvds_error"
    NAME_TOO_LONG = "name_too_long"
