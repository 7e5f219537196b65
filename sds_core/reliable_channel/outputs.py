"""Outputs of a channel: messages to dispatch, queries to a store, and events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sds_core.message_channel import Cause
from sds_core.reliable_channel.events import Event
from sds_core.waku import WakuMessage


class Dispatch(NamedTuple):
    """A message to send.

    After the attempt to send the message, apply the input `Dispatched` or
    `DispatchFailed` to the channel.

    Attributes:
        number: Number of the dispatch; the input must contain this number.
        message_hash: Deterministic Waku hash of the message, 32 bytes.
    """

    number: int
    cause: Cause
    message: WakuMessage
    message_hash: bytes


class StoreRequest(NamedTuple):
    """A query to a store, for one page of messages.

    After the query, apply the input `StoreAnswered` or `StoreFailed` to the channel.

    Attributes:
        hashes: Waku hashes of the messages to find, 32 bytes each; empty in a query by
            time.
        start_ms, end_ms: Earliest and latest time of the messages to find, Unix ms; 0
            in a query by hash. The time of a message is the time that its sender set.
        cursor: Cursor from the previous page; None to query the first page.
    """

    number: int
    hashes: tuple[bytes, ...] = ()
    start_ms: int = 0
    end_ms: int = 0
    cursor: bytes | None = None
    page_size: int = 100


@dataclass(slots=True)
class Output:
    """What a channel returns for one input. Each list is in the order of creation.

    Attributes:
        message_id: If the input sends a message, the id of the message; otherwise
            empty.
        ciphertexts: New ciphertexts; empty bytes for each encryption that failed. A
            journal must store them, because a replay of the input needs them.
    """

    dispatches: list[Dispatch] = field(default_factory=list)
    queries: list[StoreRequest] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    message_id: str = ""
    ciphertexts: list[bytes] = field(default_factory=list)
