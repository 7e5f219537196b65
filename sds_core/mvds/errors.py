"""Errors of bytes that are not a payload of MVDS.

UndecodableFrame (sds_core/wire/errors.py)
├── ValueTooLarge           too_large
└── NotAPayload             mvds_error
    ├── MalformedPayload
    ├── NoRecord
    ├── WrongIdLength
    └── TooManyRecords
"""

from __future__ import annotations

from dataclasses import dataclass

from sds_core.reason import Reason
from sds_core.wire.errors import UndecodableFrame


class NotAPayload(UndecodableFrame):
    """The bytes are not a payload of MVDS."""

    reason = Reason.MVDS_ERROR


@dataclass(eq=False, repr=False)
class MalformedPayload(NotAPayload):
    """The bytes are not protobuf, or not that of a payload."""

    text = "{actual_bytes} bytes are no MVDS payload: {detail}"

    detail: str
    actual_bytes: int


@dataclass(eq=False, repr=False)
class NoRecord(NotAPayload):
    """There are bytes, but no field of a payload among them."""

    text = "{actual_bytes} bytes have no field of an MVDS payload"

    actual_bytes: int


@dataclass(eq=False, repr=False)
class WrongIdLength(NotAPayload):
    """A message id is not as long as a SHA-256 hash."""

    text = "{field} has an id of {actual_bytes} bytes, an id has {expected_bytes}"

    field: str
    actual_bytes: int
    expected_bytes: int


@dataclass(eq=False, repr=False)
class TooManyRecords(NotAPayload):
    """The payload has more records than are read."""

    text = "the payload has {actual} records and parents, at most {limit} are read"

    actual: int
    limit: int
