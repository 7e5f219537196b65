"""Decides whether a record is a frame, a heartbeat or a dead letter.

docs/records.md lists the checks in order. The first check that fails determines the
reason of the dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sds_core.observer.kinds import AnyProtocol
from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.record import (
    BadHeader,
    RawRecord,
    TapHeaders,
    is_future,
    read_headers,
    read_tap,
)
from sds_core.text import decode_text, iso_time
from sds_core.wire import MAX_VALUE_BYTES, Reason, UndecodableFrame, ValueTooLarge

_BY_NAME = by_name(PROTOCOLS)


class ChannelMismatch(ValueError):
    """The key of a record does not match the frame in the record."""

    reason = Reason.CHANNEL_MISMATCH

    def __init__(self, key: bytes, name: str) -> None:
        self.key = key
        self.name = name
        text = decode_text(key)
        super().__init__(
            f"the record's key is {text!r:.80}, but the frame names the channel "
            f"{name!r:.80}"
        )


class FutureTimestamp(ValueError):
    """A record's time is more than `record.MAX_AHEAD_MS` later than its writing."""

    reason = Reason.FUTURE_TIMESTAMP

    def __init__(self, timestamp_ms: int, written_ms: int) -> None:
        self.timestamp_ms = timestamp_ms
        self.written_ms = written_ms
        super().__init__(
            f"the record's time is {iso_time(timestamp_ms)}, which is in the "
            f"future: the record was written at {iso_time(written_ms)} or earlier"
        )


class FrameRecord(NamedTuple):
    """A record with a valid frame; `frame` is the frame that `protocol` decoded."""

    headers: TapHeaders
    protocol: AnyProtocol
    frame: Any


class Heartbeat(NamedTuple):
    """A record that has no frame, but shows that its tap runs."""

    headers: TapHeaders


class Dead(NamedTuple):
    """A record that the monitor cannot use.

    Attributes:
        headers: The record's headers. If any header is invalid, `headers` contains only
            the tap's id and the sequence number, and these only if both are valid.
        error: The error that the failed check raised.
        is_future: Whether the record's time is too far in the future, even if `error`
            is a different error. If so, the record does not advance the clock, and does
            not count as a record of its tap.
    """

    headers: TapHeaders
    error: BadHeader | UndecodableFrame | ChannelMismatch | FutureTimestamp
    is_future: bool

    @property
    def reason(self) -> str:
        """The dead-letter reason (docs/records.md)."""
        return self.error.reason.value

    @property
    def explanation(self) -> str:
        """Text of the error, with values from the record."""
        return str(self.error)


Judgement = FrameRecord | Heartbeat | Dead


def judge(
    record: RawRecord, written_ms: int, protocols: Mapping[str, AnyProtocol] = _BY_NAME
) -> Judgement:
    """Decide whether a record is a frame, a heartbeat or a dead letter.

    `written_ms`, Unix ms, is the latest time at which the record may have been written;
    see `sds_core.observer.ahead`.
    """
    future = is_future(record.timestamp_ms, written_ms)
    value = record.value or b""
    too_large = None
    if len(value) > MAX_VALUE_BYTES:
        too_large = ValueTooLarge(len(value), MAX_VALUE_BYTES)
    try:
        headers = read_headers(record.headers, protocols)
    except BadHeader as error:
        # `too_large` has precedence, because it is the first check in docs/records.md.
        return Dead(read_tap(record.headers), too_large or error, future)
    if headers.is_heartbeat:
        if future:
            return _future(record, written_ms, headers)
        return Heartbeat(headers)
    if too_large is not None:
        return Dead(headers, too_large, future)
    protocol = protocols[headers.protocol]
    try:
        frame = protocol.decode(value, record.headers)
    except (UndecodableFrame, BadHeader) as error:
        return Dead(headers, error, future)
    if record.key is not None and not protocol.fits_key(record.key, frame):
        mismatch = ChannelMismatch(record.key, protocol.view_name(frame))
        return Dead(headers, mismatch, future)
    if future:
        return _future(record, written_ms, headers)
    return FrameRecord(headers, protocol, frame)


def _future(record: RawRecord, written_ms: int, headers: TapHeaders) -> Dead:
    error = FutureTimestamp(record.timestamp_ms, written_ms)
    return Dead(headers, error, is_future=True)
