"""One record, and what its frame and its filter show."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from sds_core.wire import BloomError, BloomFilter, Dialect, FrameKind, encode
from tests.support.frames import Record

Moment = tuple[int, int]
"""Clock and place: what the clock alone brings about comes before any frame."""


@functools.lru_cache(maxsize=1024)
def _filter(dialect: Dialect, raw: bytes) -> BloomFilter | None:
    try:
        return BloomFilter.from_wire(dialect, raw) if raw else None
    except BloomError:
        return None


@functools.lru_cache(maxsize=100_000)
def _holds(dialect: Dialect, raw: bytes, message_id: str) -> bool:
    filter_ = _filter(dialect, raw)
    return filter_ is not None and filter_.contains(message_id)


@functools.lru_cache(maxsize=1024)
def bits_set(dialect: Dialect, raw: bytes) -> int:
    """Ones among the bits in use of a filter that can be read."""
    filter_ = _filter(dialect, raw)
    assert filter_ is not None
    return filter_.bits_set()


@dataclass(frozen=True)
class Seen:
    """One record that is no duplicate, with the channel's clock at it."""

    place: int
    clock: int
    record: Record

    @property
    def at(self) -> int:
        """Event time."""
        return self.record.at

    @property
    def sender(self) -> str:
        """Empty if unknown."""
        return self.record.frame.sender_id

    @property
    def message_id(self) -> str:
        """The frame's own id."""
        return self.record.frame.message_id

    @property
    def moment(self) -> Moment:
        """When its figures change."""
        return self.clock, self.place

    @property
    def is_content(self) -> bool:
        """Whether it carries a message."""
        return self.record.frame.kind is FrameKind.CONTENT

    @property
    def is_ephemeral(self) -> bool:
        """Whether it has no place in the channel's order."""
        return self.record.frame.kind is FrameKind.EPHEMERAL

    @property
    def has_known_id(self) -> bool:
        """Whether others may name it: content, and sync frames of nim-sds."""
        is_nim = self.dialect is Dialect.NIM
        return self.is_content or (is_nim and not self.is_ephemeral)

    @property
    def lamport(self) -> int:
        """0 where the kind has none."""
        return self.record.frame.lamport or 0

    @property
    def dialect(self) -> Dialect:
        """Of the frame."""
        return self.record.frame.dialect

    def history(self) -> list[str]:
        """Ids named, in order."""
        return [entry.message_id for entry in self.record.frame.causal_history]

    def sender_named(self, message_id: str) -> str:
        """The sender that its history gives for an id."""
        for entry in self.record.frame.causal_history:
            if entry.message_id == message_id and entry.sender_id:
                return entry.sender_id
        return ""

    def requests(self) -> set[str]:
        """Ids asked for."""
        return {entry.message_id for entry in self.record.frame.repair_request}

    def filter(self) -> BloomFilter | None:
        """Its filter, if it can be read."""
        return _filter(self.dialect, self.record.frame.bloom_filter)

    def holds(self, message_id: str) -> bool:
        """Whether its filter has an id."""
        return _holds(self.dialect, self.record.frame.bloom_filter, message_id)

    def bits_set(self) -> int:
        """Ones in its filter, which can be read."""
        return bits_set(self.dialect, self.record.frame.bloom_filter)

    def value(self) -> bytes:
        """The frame as on the wire."""
        return encode(self.record.frame)

    def shows(self, message_id: str) -> bool:
        """Whether its sender has the message, by its history or its filter."""
        return message_id in self.history() or self.holds(message_id)

    def is_by_other_than(self, other: Seen) -> bool:
        """Whether both senders are known and differ."""
        return bool(self.sender and other.sender) and self.sender != other.sender
