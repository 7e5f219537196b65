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

from sds_core.reason import Reason
from sds_core.wire.errors import UndecodableFrame


class NotAPayload(UndecodableFrame):
    """The bytes are not a payload of MVDS."""

    reason = Reason.MVDS_ERROR


class MalformedPayload(NotAPayload):
    """The bytes are not protobuf, or not that of a payload."""

    text = "{actual_bytes} bytes are no MVDS payload: {detail}"

    def __init__(self, detail: str, actual_bytes: int) -> None:
        super().__init__(detail, actual_bytes)
        self.detail = detail
        self.actual_bytes = actual_bytes


class NoRecord(NotAPayload):
    """There are bytes, but no field of a payload among them."""

    text = "{actual_bytes} bytes have no field of an MVDS payload"

    def __init__(self, actual_bytes: int) -> None:
        super().__init__(actual_bytes)
        self.actual_bytes = actual_bytes


class WrongIdLength(NotAPayload):
    """A message id is not as long as a SHA-256 hash."""

    text = "{field} has an id of {actual_bytes} bytes, an id has {expected_bytes}"

    def __init__(self, field: str, actual_bytes: int, expected_bytes: int) -> None:
        super().__init__(field, actual_bytes, expected_bytes)
        self.field = field
        self.actual_bytes = actual_bytes
        self.expected_bytes = expected_bytes


class TooManyRecords(NotAPayload):
    """The payload has more records than are read."""

    text = "the payload has {actual} records and parents, at most {limit} are read"

    def __init__(self, actual: int, limit: int) -> None:
        super().__init__(actual, limit)
        self.actual = actual
        self.limit = limit
