"""Inputs of a channel: calls by the application, and reports from node and store.

An input is a plain value, so a journal can store it. If the same inputs are applied to
the same state at the same times, the results are the same.
"""

from __future__ import annotations

import msgspec

from sds_core.reliable_channel.events import SendError
from sds_core.reliable_channel.options import ReliableChannelOptions
from sds_core.waku import WakuMessage


class _Input(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Base class of all inputs. In a journal, a tag identifies each input's type."""


class Start(_Input, frozen=True):
    """The application starts the channel. A started channel ignores this input."""


class Stop(_Input, frozen=True):
    """The application stops the channel. A stopped channel ignores this input."""


class Send(_Input, frozen=True):
    """The application sends a message.

    Attributes:
        message_id: Id that is unique among this sender's messages, for example from
            `ReliableChannelCore.new_message_id`. If it is empty, the channel makes an
            id.
    """

    payload: bytes
    message_id: str = ""


class SendEphemeral(_Input, frozen=True):
    """The application sends an ephemeral message, which is not resent if it is lost.

    Attributes:
        message_id: See `Send`.
    """

    payload: bytes
    message_id: str = ""


class Arrived(_Input, frozen=True):
    """The node received a message on the content topic.

    Attributes:
        message_hash: Deterministic hash of the message, 32 bytes; empty if unknown.
    """

    message: WakuMessage
    message_hash: bytes = b""


class Dispatched(_Input, frozen=True):
    """The network accepted a dispatched message."""

    number: int


class DispatchFailed(_Input, frozen=True):
    """The network did not accept a dispatched message.

    Attributes:
        error: Why every retry would fail too; None if a retry may succeed.
        detail: Text for a log line.
    """

    number: int
    error: SendError | None = None
    detail: str = ""


class StoreAnswered(_Input, frozen=True):
    """A store answered a query with one page.

    Attributes:
        cursor: Cursor for the next page; None on the last page.
    """

    number: int
    messages: list[Arrived]
    cursor: bytes | None = None


class StoreFailed(_Input, frozen=True):
    """A store did not answer a query."""

    number: int


class ConnectionChanged(_Input, frozen=True):
    """The node's connections changed.

    Attributes:
        is_online: Whether messages can be sent and received.
        has_store: Whether a store can be queried.
    """

    is_online: bool
    has_store: bool


class Advance(_Input, frozen=True):
    """Time has passed, so the channel does everything that is due."""


class Restarted(_Input, frozen=True):
    """The process ended without `Stop`. A new process resumes the stored channel.

    If the time of this input is before the previous input's, the clock was ahead before
    the restart, and all stored times move back.

    Attributes:
        options: Options that apply from this input on. If None, the options that were
            given to `ReliableChannelCore.restore` apply. A replay of later inputs needs
            the options.
    """

    options: ReliableChannelOptions | None = None


Input = (
    Start
    | Stop
    | Send
    | SendEphemeral
    | Arrived
    | Dispatched
    | DispatchFailed
    | StoreAnswered
    | StoreFailed
    | ConnectionChanged
    | Advance
    | Restarted
)
