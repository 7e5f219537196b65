"""Frames and records built by hand, with times relative to one start."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sds_core.wire import BloomFilter, Dialect, Frame, HistoryEntry, encode

START_MS = 1_750_000_000_000
"""Unix ms of the relative time 0 in all tests of the observer."""

SECOND = 1_000
MINUTE = 60 * SECOND

Entry = str | tuple[str, str]
"""A message id, or one with the sender that the entry names."""


class Record(NamedTuple):
    """One frame as a record of the topic.

    Attributes:
        at: Record time in ms since `START_MS`.
        frame: The frame.
        observer: Tap id; empty if the record names none.
        seq: The tap's number; None if it gave none.
        waku_hash: Fingerprint of the Waku message hash; None if there is none.
    """

    at: int
    frame: Frame
    observer: str = ""
    seq: int | None = None
    waku_hash: int | None = None


def running_clocks(records: Iterable[Record], clock_ms: int = 0) -> Iterator[int]:
    """Return the channel's clock at each record, relative like their times."""
    for record in records:
        clock_ms = max(clock_ms, record.at)
        yield clock_ms


def bloom(
    ids: Iterable[str] = (),
    dialect: Dialect = Dialect.SPEC,
    bits_set: int | None = None,
) -> bytes:
    """Return a filter of default size that contains `ids`, as on the wire.

    Args:
        ids: What it holds.
        dialect: Whose filter.
        bits_set: Set further bits until so many are set.
    """
    filter_ = BloomFilter(dialect)
    for message_id in ids:
        filter_.add(message_id)
    if bits_set is not None:
        missing = bits_set - filter_.bits_set()
        assert missing >= 0, "the ids alone set more bits"
        # Every byte below the last word is in use, in either dialect's order.
        for position, byte in enumerate(filter_.bits):
            if not missing:
                break
            free = [bit for bit in range(8) if not byte >> bit & 1][:missing]
            filter_.bits[position] |= sum(1 << bit for bit in free)
            missing -= len(free)
        assert filter_.bits_set() == bits_set
    return filter_.to_wire()


class FrameFactory:
    """Builds frames of one channel; sync and ephemeral ids are numbered.

    Attributes:
        channel_id: The channel.
        dialect: Of frames for which no other is asked.
    """

    def __init__(
        self, channel_id: str = "channel", dialect: Dialect = Dialect.SPEC
    ) -> None:
        self.channel_id = channel_id
        self.dialect = dialect
        self._numbers = itertools.count(1)

    def content(
        self,
        message_id: str,
        sender: str,
        lamport: int = 1_000,
        *,
        text: bytes = b"text",
        history: Sequence[Entry] = (),
        holds: Iterable[str] | None = None,
        filter_: bytes = b"",
        requests: Sequence[Entry] = (),
        dialect: Dialect | None = None,
    ) -> Frame:
        """Return a content frame.

        Args:
            message_id: Its id.
            sender: Its sender; empty for an unknown one.
            lamport: Its lamport timestamp.
            text: Its content.
            history: What its causal history names.
            holds: Ids in its bloom filter; None for no filter.
            filter_: The filter as on the wire, instead of `holds`.
            requests: What it asks to be repaired.
            dialect: Another one than the factory's.
        """
        dialect = dialect or self.dialect
        if holds is not None:
            filter_ = bloom(holds, dialect)
        return Frame.build(
            dialect,
            message_id=message_id,
            channel_id=self.channel_id,
            sender_id=sender,
            lamport=lamport,
            causal_history=_entries(history),
            bloom_filter=filter_,
            repair_request=_entries(requests),
            content=text,
        )

    def sync(
        self,
        sender: str,
        lamport: int = 1_000,
        *,
        message_id: str = "",
        history: Sequence[Entry] = (),
        holds: Iterable[str] | None = None,
        filter_: bytes = b"",
        requests: Sequence[Entry] = (),
        dialect: Dialect | None = None,
    ) -> Frame:
        """Return a sync frame; see `content`."""
        return self.content(
            message_id or f"sync-{next(self._numbers)}",
            sender,
            lamport,
            text=b"",
            history=history,
            holds=holds,
            filter_=filter_,
            requests=requests,
            dialect=dialect,
        )

    def ephemeral(
        self,
        sender: str,
        *,
        message_id: str = "",
        text: bytes = b"text",
        dialect: Dialect | None = None,
    ) -> Frame:
        """Return an ephemeral frame."""
        return Frame.build(
            dialect or self.dialect,
            message_id=message_id or f"ephemeral-{next(self._numbers)}",
            channel_id=self.channel_id,
            sender_id=sender,
            content=text,
        )


def value_of(frame: Frame) -> bytes:
    """Return the frame as on the wire."""
    return encode(frame)


def _entries(entries: Sequence[Entry]) -> tuple[HistoryEntry, ...]:
    return tuple(
        HistoryEntry(entry)
        if isinstance(entry, str)
        else HistoryEntry(entry[0], b"", entry[1])
        for entry in entries
    )
