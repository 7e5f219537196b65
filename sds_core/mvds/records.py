"""The records that a node sends to its peers until the peers answer.

Section "State" of 2/MVDS calls these records the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapify, heappop, heappush

_FEW_ENTRIES = 1_000
"""If at most this many entries are outdated, the schedule keeps them until due.

An entry is outdated if its record was removed or replaced.
"""


class RecordType(StrEnum):
    """Type of a record; a node resends records of all types until peers answer."""

    OFFER = "offer"
    REQUEST = "request"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Record:
    """What a node sends to one peer about one message until the peer answers.

    Attributes:
        send_count: How often the record was sent so far.
        send_epoch: Epoch in which the node sends the record next.
        is_offered: For a REQUEST, whether the peer offered the message. If the message
            is a parent that the peer did not offer, the peer may lack it. This
            attribute is not stored; after a restart, it is True.
    """

    peer: bytes
    message_id: bytes
    type: RecordType
    send_count: int
    send_epoch: int
    is_offered: bool = field(default=True, compare=False)


class RecordTable:
    """Holds at most one record for each pair of a peer and a message.

    If a record is added, replaced or removed, the table calls `mark` with the record's
    peer and message id.
    """

    def __init__(self, mark: Callable[[bytes, bytes], None]) -> None:
        self._mark = mark
        self._by_message: dict[bytes, dict[bytes, Record]] = {}
        self._requests: Counter[bytes] = Counter()
        self._count = 0
        # The schedule: a heap of (send epoch, number, record). The number orders the
        # entries of one epoch. If a record is removed or replaced, its entry is
        # outdated, but stays until its epoch, or until most entries are outdated.
        self._due: list[tuple[int, int, Record]] = []
        self._number = 0

    def __iter__(self) -> Iterator[Record]:
        """Yield all records."""
        for records in self._by_message.values():
            yield from records.values()

    def get(self, peer: bytes, message_id: bytes) -> Record | None:
        """Return the record for a peer and a message, or None."""
        return self._by_message.get(message_id, {}).get(peer)

    def of_message(self, message_id: bytes) -> list[Record]:
        """Return the records of all peers for a message."""
        return list(self._by_message.get(message_id, {}).values())

    def request_count(self, peer: bytes) -> int:
        """Return the number of REQUEST records for a peer."""
        return self._requests[peer]

    def put(self, record: Record) -> None:
        """Store a record; it replaces any earlier record for its peer and message."""
        self.remove(record.peer, record.message_id)
        self._by_message.setdefault(record.message_id, {})[record.peer] = record
        if record.type is RecordType.REQUEST:
            self._requests[record.peer] += 1
        self._count += 1
        self.put_back(record)
        self._mark(record.peer, record.message_id)

    def remove(self, peer: bytes, message_id: bytes) -> None:
        """Remove the record for a peer and a message, if one exists."""
        records = self._by_message.get(message_id, {})
        record = records.pop(peer, None)
        if record is None:
            return
        self._count -= 1
        if not records:
            del self._by_message[message_id]
        if record.type is RecordType.REQUEST:
            self._requests[peer] -= 1
            if not self._requests[peer]:
                del self._requests[peer]
        self._mark(peer, message_id)

    def take_due(self, epoch: int) -> dict[bytes, list[Record]]:
        """Return the records that are due at an epoch, by peer.

        The records are removed from the schedule. The records of each peer are in order
        of send epoch. The caller must then call `put`, `put_back` or `remove` for each
        record.
        """
        due: dict[bytes, list[Record]] = {}
        while self._due and self._due[0][0] <= epoch:
            _, _, record = heappop(self._due)
            if self._is_current(record):
                due.setdefault(record.peer, []).append(record)
        return due

    def put_back(self, record: Record) -> None:
        """Put a record from `take_due` back into the schedule at its `send_epoch`."""
        self._number += 1
        heappush(self._due, (record.send_epoch, self._number, record))
        # If outdated entries stayed, a hostile peer could fill the memory with them.
        if len(self._due) > _FEW_ENTRIES + 2 * self._count:
            self._due = [entry for entry in self._due if self._is_current(entry[2])]
            heapify(self._due)

    def _is_current(self, record: Record) -> bool:
        return self.get(record.peer, record.message_id) is record
