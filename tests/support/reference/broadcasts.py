"""The broadcasts of a channel (docs/figures.md, 2)."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from sds_core.wire import Dialect
from tests.support.frames import Record, running_clocks
from tests.support.reference.seen import Seen

WINDOWS_MS = {Dialect.SPEC: 135_000, Dialect.NIM: 315_000}
"""How long a request for repair is live."""


class Broadcasts:
    """The broadcasts of one channel up to one moment, and first copies among them.

    Args:
        records: In topic order.
        end: The clock at the end; not before the last record's.
    """

    def __init__(self, records: Sequence[Record], end: int) -> None:
        self.end = end
        self.seen = self._without_duplicates(records)
        self.broadcasts = [one for one in self.seen if not self._is_replica(one)]
        self.first_copies = [
            one for one in self.broadcasts if self.original(one) is one
        ]
        self.messages = [one for one in self.first_copies if one.is_content]
        self.collisions = [
            one
            for one in self.broadcasts
            if one.is_content
            and (one.sender, one.lamport)
            != (self.first(one).sender, self.first(one).lamport)
        ]
        self.rebroadcasts = [
            one
            for one in self.broadcasts
            if one is not self.original(one) and one not in self.collisions
        ]

    def _without_duplicates(self, records: Sequence[Record]) -> list[Seen]:
        clocks = list(running_clocks(records))
        seen, numbers = [], set()
        for place, record in enumerate(records):
            number = (record.observer, record.seq)
            if record.observer and record.seq is not None and number in numbers:
                continue
            numbers.add(number)
            seen.append(Seen(place, clocks[place], record))
        return seen

    def _is_replica(self, one: Seen) -> bool:
        """Broadcast by broadcast, since copies are compared with their first."""
        return self._broadcast_of()[one.place] != one.place

    @functools.cache  # noqa: B019 (a reference lives for one example)
    def _broadcast_of(self) -> dict[int, int]:
        """The place of the broadcast that each record is a copy of."""
        of: dict[int, int] = {}
        latest: dict[bytes, Seen] = {}
        by_hash: dict[int, int] = {}
        for one in self.seen:
            value = one.value()
            other = latest.get(value)
            if one.record.waku_hash:
                of[one.place] = by_hash.setdefault(one.record.waku_hash, one.place)
            elif other is not None and abs(one.at - other.at) <= 2_000:
                of[one.place] = other.place
            else:
                of[one.place] = one.place
            if of[one.place] == one.place:
                latest[value] = one
        return of

    def _first_copy(self, message_id: str) -> Seen | None:
        for one in self.broadcasts:
            if one.is_content and one.message_id == message_id:
                return one
        return None

    def original(self, one: Seen) -> Seen:
        """The first copy of what a broadcast repeats or collides with, or itself."""
        if one.is_content:
            return self.first(one)
        if not one.has_known_id:
            return one
        return self._original_syncs()[one.place]

    @functools.cache  # noqa: B019
    def _original_syncs(self) -> dict[int, Seen]:
        """The first copy of the sync frame of each place: ids may be used again."""
        newest: dict[str, Seen] = {}
        originals: dict[int, Seen] = {}
        for one in self.broadcasts:
            if one.is_content or not one.has_known_id:
                continue
            before = newest.get(one.message_id)
            if before is None or (before.sender, before.lamport) != (
                one.sender,
                one.lamport,
            ):
                newest[one.message_id] = one
            originals[one.place] = newest[one.message_id]
        return originals

    def first_with_id(self, message_id: str) -> Seen | None:
        """The first frame with an id that others may name."""
        for one in self.broadcasts:
            if one.has_known_id and one.message_id == message_id:
                return one
        return None

    def first(self, one: Seen) -> Seen:
        """The first copy of the same message."""
        first = self._first_copy(one.message_id)
        assert first is not None
        return first

    def returns(self, one: Seen) -> list[int]:
        """When the sender of a first copy had returned from silences of over 300 s."""
        before = [
            other
            for other in self.first_copies
            if other.sender == one.sender and other.place <= one.place
        ]
        return [
            other.at
            for place, other in enumerate(before)
            if place
            and other.at > max(earlier.at for earlier in before[:place]) + 300_000
        ]

    def latest_request(self, message_id: str, place: int) -> Seen | None:
        """The latest request for an id before a place in the topic."""
        asking = [
            one
            for one in self.broadcasts
            if one.place < place and message_id in one.requests()
        ]
        return asking[-1] if asking else None

    def is_live(self, message_id: str, at: Seen) -> bool:
        """Whether the latest request before a frame is in its window then."""
        request = self.latest_request(message_id, at.place)
        return (
            request is not None
            and at.clock - request.clock <= WINDOWS_MS[request.dialect]
        )

    def audience(self, m: Seen) -> set[str]:
        """The other participants that were active when a message was first seen."""
        return {
            one.sender
            for one in self.first_copies
            if one.is_by_other_than(m)
            and one.place < m.place
            and m.at - 3_600_000 <= one.at < m.at
        }
