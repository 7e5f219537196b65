"""Decides when a participant requests missing messages and answers requests (SDS-R).

Sources: the SDS-R implementation guide; js-waku packages/sds message_channel/repair;
nim-sds sds/sds_utils.nim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Generic, TypeVar

from sds_core import repair_timing
from sds_core.message_channel.profile import AfterRequest, Eviction, Profile
from sds_core.repair_timing import RepairHash, hash_of
from sds_core.wire import HistoryEntry, HistoryEntryLike

Priority = TypeVar("Priority", int, tuple[bool, int])

_MOST_OUTDATED = 64
"""Maximum number by which a heap's outdated pairs may exceed the queue's ids."""


class PriorityQueue(Generic[Priority]):
    """Message ids in ascending order of priority, then of id.

    Source: SDS-R guide, "Performance Recommendations". The queue uses a heap of pairs
    (priority, id). If an id is removed or gets another priority, its outdated pair
    stays in the heap until the pair reaches the top. If the heap has far more outdated
    pairs than the queue has ids, the heap is rebuilt.
    """

    __slots__ = ("_heap", "_priorities")

    def __init__(self) -> None:
        self._priorities: dict[str, Priority] = {}
        self._heap: list[tuple[Priority, str]] = []

    def __contains__(self, message_id: str) -> bool:
        """Return whether an id is in the queue."""
        return message_id in self._priorities

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._priorities)

    def get(self, message_id: str) -> Priority | None:
        """Return the priority of an id; None if the id is not in the queue."""
        return self._priorities.get(message_id)

    def put(self, message_id: str, priority: Priority) -> None:
        """Add an id, or change its priority."""
        self._priorities[message_id] = priority
        heappush(self._heap, (priority, message_id))
        if len(self._heap) > 2 * len(self._priorities) + _MOST_OUTDATED:
            self._heap = [(one, name) for name, one in self._priorities.items()]
            heapify(self._heap)

    def remove(self, message_id: str) -> bool:
        """Remove an id; return whether the queue held the id."""
        return self._priorities.pop(message_id, None) is not None

    def first(self) -> tuple[Priority, str] | None:
        """Return the lowest priority and its id; None if the queue is empty."""
        heap = self._heap
        while heap:
            priority, message_id = heap[0]
            if self._priorities.get(message_id) == priority:
                return heap[0]
            heappop(heap)
        return None

    def pop(self) -> str:
        """Remove and return the id of lowest priority; the queue must not be empty."""
        while True:
            priority, message_id = heappop(self._heap)
            if self._priorities.get(message_id) == priority:
                del self._priorities[message_id]
                return message_id

    def pop_up_to(self, last: Priority) -> Iterator[str]:
        """Remove and yield the ids of priority `last` or lower, the lowest first."""
        while (first := self.first()) is not None and first[0] <= last:
            del self._priorities[first[1]]
            yield first[1]

    def smallest_up_to(self, last: Priority, count: int) -> list[str]:
        """Return up to `count` ids of priority `last` or lower, the lowest first."""
        found: list[tuple[Priority, str]] = []
        while len(found) < count:
            first = self.first()
            if first is None or first[0] > last:
                break
            found.append(heappop(self._heap))
            # If an id was removed and added again with the same priority, the heap may
            # contain its pair twice.
            while self._heap and self._heap[0] == first:
                heappop(self._heap)
        for pair in found:
            heappush(self._heap, pair)
        return [message_id for _, message_id in found]

    def items(self) -> dict[str, Priority]:
        """Return the priority of each id, in the order in which ids were added."""
        return dict(self._priorities)


_PARTICIPANTS_PER_GROUP = 128


def request_offset_ms(participant_id: str, message_id: str, profile: Profile) -> int:
    """Return the offset of T_req from the start of the wait, in [T_min, T_max) ms."""
    return repair_timing.request_offset_ms(
        participant_id,
        message_id,
        profile.t_min_ms,
        profile.t_max_ms,
        profile.repair_hash,
    )


def response_offset_ms(
    participant_id: str, sender_id: str, message_id: str, profile: Profile
) -> int:
    """Return the offset of T_resp from the receipt of the request, in [0, T_max) ms."""
    return repair_timing.response_offset_ms(
        participant_id, sender_id, message_id, profile.t_max_ms, profile.repair_hash
    )


def response_groups(participants: int, profile: Profile) -> int:
    """Return the number of response groups, at least 1."""
    return profile.response_groups or max(1, participants // _PARTICIPANTS_PER_GROUP)


def in_response_group(
    participant_id: str,
    sender_id: str,
    message_id: str,
    groups: int,
    hashed_with: RepairHash,
) -> bool:
    """Return whether a participant may answer a repair request (SDS-R guide, 3)."""
    ours = hash_of(participant_id + message_id, hashed_with)
    theirs = hash_of(sender_id + message_id, hashed_with)
    return ours % groups == theirs % groups


class RepairRequests:
    """The outgoing repair request buffer: our requests for missing messages."""

    __slots__ = ("_entries", "_evictable", "_held", "_profile", "_waiting")

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        # History entry and T_req of each request, by message id. Snapshots need the
        # order of insertion.
        self._entries: dict[str, tuple[HistoryEntry, int]] = {}
        # Requests that wait to be sent in a frame of ours; the priority is T_req.
        self._waiting: PriorityQueue[int] = PriorityQueue()
        # Requests that we or others have sent; the priority is the time from which we
        # may repeat them.
        self._held: PriorityQueue[int] = PriorityQueue()
        # All requests, in the order in which a full buffer drops them: requests that we
        # or others have sent come first.
        self._evictable: PriorityQueue[tuple[bool, int]] = PriorityQueue()

    def __contains__(self, message_id: str) -> bool:
        """Return whether the buffer has a request for a message."""
        return message_id in self._entries

    @property
    def has_waiting(self) -> bool:
        """Whether requests wait to be sent in a frame of ours."""
        return bool(self._entries) and len(self._waiting) > 0

    @property
    def due_ms(self) -> float:
        """Earliest T_req of the requests that wait to be sent, Unix ms; inf if none."""
        first = self._waiting.first()
        return inf if first is None else first[0]

    @property
    def next_ms(self) -> float:
        """When the next request expires, Unix ms; inf if no request will expire."""
        # With `AfterRequest.ONCE`, requests do not expire.
        if not self._entries or self._profile.after_request is AfterRequest.ONCE:
            return inf
        waiting, held = self._waiting.first(), self._held.first()
        return min(
            inf if waiting is None else waiting[0] + self._profile.t_max_ms,
            inf if held is None else held[0],
        )

    def add(self, entry: HistoryEntry, t_req_ms: int) -> str | None:
        """Queue a request; if the buffer was full, drop one and return its id.

        If the buffer already has a request for the message, the call has no effect.
        """
        message_id = entry.message_id
        if message_id in self._entries:
            return None
        self._entries[message_id] = (entry, t_req_ms)
        self._waiting.put(message_id, t_req_ms)
        self._rank(message_id, is_held=False)
        if len(self._entries) <= self._profile.repair_buffer_limit:
            return None
        evicted = self._evictable.pop()
        self.remove(evicted)
        return evicted

    def learn(self, entry: HistoryEntry) -> None:
        """Replace the entry of a request by a more complete entry."""
        found = self._entries.get(entry.message_id)
        if found is not None:
            self._entries[entry.message_id] = (entry, found[1])

    def remove(self, message_id: str) -> None:
        """Drop the request for a message, if the buffer has one."""
        if self._entries.pop(message_id, None) is not None:
            self._waiting.remove(message_id)
            self._held.remove(message_id)
            self._evictable.remove(message_id)

    def requested_by_another(self, message_id: str, now_ms: int) -> None:
        """Postpone or drop our request, because another participant sent one."""
        if message_id not in self._entries:
            return
        if self._profile.after_request is AfterRequest.ASK_AGAIN:
            self._hold(message_id, now_ms + self._profile.t_max_ms)
        else:
            self.remove(message_id)

    def due(self, now_ms: int) -> list[HistoryEntry]:
        """Return the requests that our next frame may carry, earliest T_req first."""
        due = self._waiting.smallest_up_to(now_ms, self._profile.requests_per_message)
        return [self._entries[message_id][0] for message_id in due]

    def carried(self, entries: Iterable[HistoryEntryLike]) -> None:
        """Record that a frame of ours carried these requests."""
        for entry in entries:
            message_id = entry.message_id
            if self._profile.after_request is AfterRequest.FORGET:
                self.remove(message_id)
            else:
                t_req_ms = self._entries[message_id][1]
                self._hold(message_id, t_req_ms + self._profile.t_max_ms)

    def expired(self, now_ms: int) -> list[HistoryEntry]:
        """Remove and return the requests that were not answered in time."""
        gone = self._take_ended(now_ms)
        entries = [self._entries[message_id][0] for message_id in gone]
        for message_id in gone:
            self.remove(message_id)
        return entries

    def resume(self, now_ms: int) -> None:
        """If requests expired while the process was off, make them due now."""
        for message_id in self._take_ended(now_ms):
            self._entries[message_id] = (self._entries[message_id][0], now_ms)
            self._waiting.put(message_id, now_ms)
            self._rank(message_id, is_held=False)

    def state(self) -> list[tuple[HistoryEntry, int, int | None]]:
        """Return each request's history entry, T_req and repeat time, for a snapshot.

        The times are in Unix ms. The repeat time is None if the request waits to be
        sent.
        """
        return [
            (entry, t_req, self._held.get(message_id))
            for message_id, (entry, t_req) in self._entries.items()
        ]

    def restore(self, state: list[tuple[HistoryEntry, int, int | None]]) -> None:
        """Restore the requests that `state` returned."""
        for entry, t_req, held_until_ms in state:
            self.add(entry, t_req)
            if held_until_ms is not None:
                self._hold(entry.message_id, held_until_ms)

    def _take_ended(self, now_ms: int) -> list[str]:
        if now_ms < self.next_ms:
            return []
        return [
            *self._waiting.pop_up_to(now_ms - self._profile.t_max_ms),
            *self._held.pop_up_to(now_ms),
        ]

    def _hold(self, message_id: str, until_ms: int) -> None:
        self._waiting.remove(message_id)
        self._held.put(message_id, until_ms)
        self._rank(message_id, is_held=True)

    def _rank(self, message_id: str, *, is_held: bool) -> None:
        t_req_ms = self._entries[message_id][1]
        rank = _eviction_rank(t_req_ms, self._profile)
        self._evictable.put(message_id, (not is_held, rank))


class RepairResponses:
    """The incoming repair request buffer: our queued answers to received requests."""

    __slots__ = ("_due_ms", "_evictable", "_profile")

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._due_ms: PriorityQueue[int] = PriorityQueue()
        self._evictable: PriorityQueue[int] = PriorityQueue()

    def __contains__(self, message_id: str) -> bool:
        """Return whether an answer with this message is queued."""
        return message_id in self._due_ms

    @property
    def next_ms(self) -> float:
        """When the next answer is due, Unix ms; inf if no answer is queued."""
        first = self._due_ms.first()
        return inf if first is None else first[0]

    def add(self, message_id: str, t_resp_ms: int) -> str | None:
        """Queue a new answer; if the buffer was full, drop one and return its id."""
        self._due_ms.put(message_id, t_resp_ms)
        self._evictable.put(message_id, _eviction_rank(t_resp_ms, self._profile))
        if len(self._due_ms) <= self._profile.repair_buffer_limit:
            return None
        evicted = self._evictable.pop()
        self.remove(evicted)
        return evicted

    def remove(self, message_id: str) -> bool:
        """Drop an answer; return whether it was queued."""
        self._evictable.remove(message_id)
        return self._due_ms.remove(message_id)

    def take_due(self, now_ms: int) -> Iterator[str]:
        """Remove the answers that are due; yield their ids, earliest T_resp first."""
        for message_id in self._due_ms.pop_up_to(now_ms):
            self._evictable.remove(message_id)
            yield message_id

    def state(self) -> dict[str, int]:
        """Return T_resp by message id, in order of insertion, for a snapshot."""
        return self._due_ms.items()

    def restore(self, state: dict[str, int]) -> None:
        """Restore the answers that `state` returned."""
        for message_id, t_resp_ms in state.items():
            self.add(message_id, t_resp_ms)


def _eviction_rank(due_ms: int, profile: Profile) -> int:
    return due_ms if profile.repair_eviction is Eviction.EARLIEST else -due_ms
