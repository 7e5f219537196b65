"""Exceptions for bytes that are not a valid SDS message or bloom filter.

    WireError (a ValueError)
    ├── UndecodableFrame        no Frame can be made of the bytes: a dead letter
    │   ├── EmptyValue                  empty_value
    │   ├── ValueTooLarge               too_large
    │   ├── MalformedProtobuf           protobuf_error
    │   ├── NoMessageId                 no_message_id
    │   ├── NeitherLamportNorContent    neither_lamport_nor_content
    │   ├── NoChannel                   no_channel
    │   ├── NameTooLong                 name_too_long
    │   └── NotAPayload                 mvds_error, see sds_core/mvds/payload.py
    └── BloomError              the frame is valid, its filter is not
        ├── BloomWrongLength
        └── BloomBadHeader

An exception stores details, such as a length, as attributes, and the text of the
exception shows these details. The same values are its `args`, so that the exception can
be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from sds_core.reason import Reason


class WireError(ValueError):
    """Base class of all exceptions for bytes that are not valid.

    Attributes:
        text: Template of the exception's text. The text quotes at most 80 characters of
            an id, because untrusted senders choose ids.
    """

    text: ClassVar[str]

    def __str__(self) -> str:
        """Return the exception's text: the template, filled with the attributes."""
        return self.text.format_map(vars(self))


class UndecodableFrame(WireError):
    """The bytes are not a message of the protocol; the dead letter states `reason`."""

    reason: ClassVar[StrEnum]


class EmptyValue(UndecodableFrame):
    """The value is empty."""

    reason = Reason.EMPTY_VALUE
    text = "the value is empty"


@dataclass(eq=False, repr=False)
class ValueTooLarge(UndecodableFrame):
    """The value exceeds the maximum length of a frame, so it was not parsed."""

    reason = Reason.TOO_LARGE
    text = "the value has {actual_bytes} bytes, a frame at most {limit_bytes}"

    actual_bytes: int
    limit_bytes: int


@dataclass(eq=False, repr=False)
class MalformedProtobuf(UndecodableFrame):
    """The bytes are not protobuf, or not the protobuf of an SDS message."""

    reason = Reason.PROTOBUF_ERROR
    text = "{actual_bytes} bytes are no SDS message: {detail}"

    detail: str
    actual_bytes: int


@dataclass(eq=False, repr=False)
class NoMessageId(UndecodableFrame):
    """The message has no id, so other messages cannot refer to it."""

    reason = Reason.NO_MESSAGE_ID
    text = "a message in dialect {dialect} has no message id"

    dialect: str


@dataclass(eq=False, repr=False)
class NeitherLamportNorContent(UndecodableFrame):
    """The message has no kind: it is neither content, sync nor ephemeral."""

    reason = Reason.NEITHER_LAMPORT_NOR_CONTENT
    text = (
        "message {message_id!r:.80} in dialect {dialect} "
        "has neither lamport timestamp nor content"
    )

    dialect: str
    message_id: str


@dataclass(eq=False, repr=False)
class NoChannel(UndecodableFrame):
    """The message does not contain its channel id."""

    reason = Reason.NO_CHANNEL
    text = "message {message_id!r:.80} in dialect {dialect} names no channel"

    dialect: str
    message_id: str


@dataclass(eq=False, repr=False)
class NameTooLong(UndecodableFrame):
    """The message id, the sender id or the channel id is too long."""

    reason = Reason.NAME_TOO_LONG
    text = (
        "a message in dialect {dialect} has an id of {actual_characters} characters, "
        "an id has at most {limit_characters}"
    )

    dialect: str
    actual_characters: int
    limit_characters: int


class BloomError(WireError):
    """The bytes are not a bloom filter."""


@dataclass(eq=False, repr=False)
class BloomWrongLength(BloomError):
    """A SPEC filter, which has no header, is not as long as its parameters require."""

    text = "a bloom filter has {actual_bytes} bytes instead of {expected_bytes}"

    expected_bytes: int
    actual_bytes: int


@dataclass(eq=False, repr=False)
class BloomBadHeader(BloomError):
    """The header of a nim-sds filter is missing, damaged, or has impossible values."""

    text = "the header of a bloom filter of {actual_bytes} bytes is unusable: {detail}"

    detail: str
    actual_bytes: int
