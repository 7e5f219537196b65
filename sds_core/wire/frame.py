"""Defines `Frame`, the parsed form of one SDS message in either dialect.

The SDS specification calls a frame *message*. In this project, a *frame* is the bytes
on the wire, and a *message* is what a participant sends. One message may appear in many
frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from sds_core.wire.errors import NeitherLamportNorContent


class Dialect(StrEnum):
    """The two incompatible field layouts in use.

    SPEC is the layout of the specification and of js-waku; NIM is the layout of
    nim-sds. Each dialect has its own format of bloom filters and its own unit of
    lamport timestamps: milliseconds in SPEC, seconds in NIM. Timestamps of different
    dialects cannot be compared.
    """

    SPEC = "spec"
    NIM = "nim"


class FrameKind(StrEnum):
    """Kind of a frame (SDS, "Protocol Steps").

    CONTENT carries bytes of the application. SYNC carries only history and filter.
    EPHEMERAL is sent without reliability and has no lamport timestamp.
    """

    CONTENT = "content"
    SYNC = "sync"
    EPHEMERAL = "ephemeral"


# `kind_of` runs for every frame, and these names save time there: the expression
# `FrameKind.CONTENT` is slow, because it calls a descriptor in Python 3.11.
_CONTENT = FrameKind.CONTENT
_SYNC = FrameKind.SYNC
_EPHEMERAL = FrameKind.EPHEMERAL


class HistoryEntryLike(Protocol):
    """Interface that `HistoryEntry` and protobuf's class for history entries share."""

    @property
    def message_id(self) -> str:
        """Id of the message that the entry names; empty if the sender omitted it."""

    @property
    def retrieval_hint(self) -> bytes:
        """Hint to fetch the message from a store; empty if unknown."""

    @property
    def sender_id(self) -> str:
        """Id of the participant that sent the named message; empty if unknown."""


class HistoryEntry(NamedTuple):
    """A reference to a message, in a causal history or a repair request (SDS-R)."""

    message_id: str
    retrieval_hint: bytes = b""
    sender_id: str = ""


class Frame(NamedTuple):
    """One SDS message, immutable.

    The class is a named tuple, because a frame is created for every record, and other
    immutable types take longer to create. `decode` leaves history entries and repair
    requests in protobuf's containers, which cannot be pickled or hashed; `detached`
    copies the containers into tuples.

    Attributes:
        sender_id: Id of the sender; empty if unknown, as in most frames of nim-sds.
        message_id, channel_id: Ids of the message and of its channel; never empty in a
            decoded frame.
        lamport: Lamport timestamp in [0, 2**64), in the dialect's unit; None if absent.
        causal_history: References to the messages on which this message depends, in
            the order in which the sender lists them.
        bloom_filter: The filter in the dialect's wire form; empty if absent. See
            bloom.py.
    """

    dialect: Dialect
    kind: FrameKind
    sender_id: str
    message_id: str
    channel_id: str
    lamport: int | None
    causal_history: Sequence[HistoryEntryLike]
    bloom_filter: bytes
    repair_request: Sequence[HistoryEntryLike]
    content: bytes

    @classmethod
    def build(
        cls,
        dialect: Dialect,
        *,
        message_id: str,
        channel_id: str,
        sender_id: str = "",
        lamport: int | None = None,
        causal_history: Sequence[HistoryEntryLike] = (),
        bloom_filter: bytes = b"",
        repair_request: Sequence[HistoryEntryLike] = (),
        content: bytes = b"",
    ) -> Frame:
        """Return a frame whose kind follows from its lamport timestamp and content.

        Raises:
            NeitherLamportNorContent: `lamport` is None and `content` is empty, so the
                frame has no kind.
        """
        kind = kind_of(lamport, content)
        if kind is None:
            raise NeitherLamportNorContent(dialect, message_id)
        return cls(
            dialect,
            kind,
            sender_id,
            message_id,
            channel_id,
            lamport,
            causal_history,
            bloom_filter,
            repair_request,
            content,
        )

    def detached(self) -> Frame:
        """Return an equal frame with tuples instead of protobuf's containers."""
        return self._replace(
            causal_history=_plain(self.causal_history),
            repair_request=_plain(self.repair_request),
        )

    def __eq__(self, other: object) -> bool:
        """Compare the values of two frames, whatever types their containers have."""
        return isinstance(other, Frame) and tuple(self.detached()) == tuple(
            other.detached()
        )

    def __ne__(self, other: object) -> bool:
        """Negate `==`; the inherited `!=` of tuples would compare the containers."""
        return not self == other

    def __hash__(self) -> int:
        """Hash the values, so that equal frames have equal hashes."""
        return hash(tuple(self.detached()))


def kind_of(lamport: int | None, content: bytes) -> FrameKind | None:
    """Return the kind of a frame; None if it has no kind.

    As in js-waku, a lamport timestamp of 0 counts as present, and empty content counts
    as absent.
    """
    if lamport is not None:
        return _CONTENT if content else _SYNC
    return _EPHEMERAL if content else None


def _plain(entries: Sequence[HistoryEntryLike]) -> tuple[HistoryEntry, ...]:
    return tuple(
        HistoryEntry(entry.message_id, entry.retrieval_hint, entry.sender_id)
        for entry in entries
    )
