"""SDS-R: when a participant requests a missing message, and who answers.

Sources: the SDS-R implementation guide; js-waku packages/sds message_channel/repair;
nim-sds sds/sds_utils.nim.
"""

from __future__ import annotations

from collections.abc import Iterable

from sds_core import repair_timing
from sds_core.message_channel.deadline import HasDeadline
from sds_core.message_channel.profile import (
    AfterRequest,
    Eviction,
    Profile,
)
from sds_core.repair_timing import RepairHash, hash_of
from sds_core.wire import HistoryEntry

_PARTICIPANTS_PER_GROUP = 128


def request_offset_ms(participant_id: str, message_id: str, profile: Profile) -> int:
    """Return T_req from now, in [T_min, T_max) ms, by a participant's profile."""
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
    """Return T_resp from now, in [0, T_max) ms, by a participant's profile."""
    return repair_timing.response_offset_ms(
        participant_id, sender_id, message_id, profile.t_max_ms, profile.repair_hash
    )


def response_groups(participants: int, profile: Profile) -> int:
    """Return how many groups share the answering, at least 1.

    Args:
        participants: number of participants in the channel, at least 1.
        profile: options, which may fix the number.
    """
    return profile.response_groups or max(1, participants // _PARTICIPANTS_PER_GROUP)


def in_response_group(
    participant_id: str,
    sender_id: str,
    message_id: str,
    groups: int,
    hashed_with: RepairHash,
) -> bool:
    """Return whether a participant may answer for a message (SDS-R guide, 3)."""
    ours = hash_of(participant_id + message_id, hashed_with)
    theirs = hash_of(sender_id + message_id, hashed_with)
    return ours % groups == theirs % groups


class RepairRequests(HasDeadline):
    """The outgoing repair request buffer: missing messages to request."""

    __slots__ = ("_carried", "_entries", "_profile")

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._profile = profile
        self._entries: dict[str, tuple[HistoryEntry, int]] = {}
        # Requests that we or others have already sent, with the time until which they
        # hold.
        self._carried: dict[str, int] = {}

    def __contains__(self, message_id: str) -> bool:
        """Return whether an id is queued or held."""
        return message_id in self._entries

    @property
    def has_waiting(self) -> bool:
        """Whether entries wait to be carried."""
        return len(self._entries) > len(self._carried)

    def add(self, entry: HistoryEntry, t_req_ms: int) -> str | None:
        """Queue an entry; one that is in keeps its T_req. Returns an evicted id."""
        if entry.message_id in self._entries:
            return None
        self._entries[entry.message_id] = (entry, t_req_ms)
        self._stale = True
        if len(self._entries) <= self._profile.repair_buffer_limit:
            return None
        # If possible, drop a request that was already sent.
        among = self._carried or self._entries
        evicted = _evicted({one: self._entries[one][1] for one in among}, self._profile)
        self.remove(evicted)
        return evicted

    def remove(self, message_id: str) -> None:
        """Drop an entry, if it is in."""
        if self._entries.pop(message_id, None) is not None:
            self._carried.pop(message_id, None)
            self._stale = True

    def requested_by_another(self, message_id: str, now_ms: int) -> None:
        """Postpone our request for a message that another has just requested."""
        if message_id not in self._entries:
            return
        if self._profile.after_request is AfterRequest.ASK_AGAIN:
            self._hold(message_id, now_ms + self._profile.t_max_ms)
        else:
            self.remove(message_id)

    def due(self, now_ms: int) -> list[HistoryEntry]:
        """Return the entries that a frame may carry now, the most overdue first."""
        if not self.has_waiting:
            return []
        due = sorted(
            (t_req, message_id)
            for message_id, (_, t_req) in self._entries.items()
            if t_req <= now_ms and message_id not in self._carried
        )[: self._profile.requests_per_message]
        return [self._entries[message_id][0] for _, message_id in due]

    def carried(self, entries: list[HistoryEntry]) -> None:
        """Record that a frame of ours carried these requests."""
        for entry in entries:
            message_id = entry.message_id
            if self._profile.after_request is AfterRequest.FORGET:
                self.remove(message_id)
            else:
                t_req_ms = self._entries[message_id][1]
                self._hold(message_id, t_req_ms + self._profile.t_max_ms)

    def expired(self, now_ms: int) -> list[HistoryEntry]:
        """Remove and return the requests without an answer by T_req + T_max."""
        if now_ms < self.next_ms:
            return []
        gone = [one for one, end_ms in self._ends_ms().items() if end_ms <= now_ms]
        entries = [self._entries[message_id][0] for message_id in gone]
        for message_id in gone:
            self.remove(message_id)
        return entries

    def resume(self, now_ms: int) -> None:
        """Make those due now whose time for an answer ended while we were off.

        Nobody was asked, or the answer went by.
        """
        for message_id, end_ms in self._ends_ms().items():
            if end_ms <= now_ms:
                self._carried.pop(message_id, None)
                self._entries[message_id] = (self._entries[message_id][0], now_ms)
        self._stale = True

    def state(self) -> list[tuple[HistoryEntry, int, int | None]]:
        """Return (entry, T_req, held until) of all, in order, for a snapshot."""
        return [
            (entry, t_req, self._carried.get(message_id))
            for message_id, (entry, t_req) in self._entries.items()
        ]

    def restore(self, state: list[tuple[HistoryEntry, int, int | None]]) -> None:
        """Restore the result of `state`."""
        for entry, t_req, held_until_ms in state:
            self.add(entry, t_req)
            if held_until_ms is not None:
                self._hold(entry.message_id, held_until_ms)

    def _hold(self, message_id: str, until_ms: int) -> None:
        self._carried[message_id] = until_ms
        self._stale = True

    def _times_ms(self) -> Iterable[int]:
        return self._ends_ms().values()

    def _ends_ms(self) -> dict[str, int]:
        """Return when each entry expires; with requests sent once, none does."""
        if self._profile.after_request is AfterRequest.ONCE:
            return {}
        t_max_ms = self._profile.t_max_ms
        return {
            message_id: self._carried.get(message_id, t_req_ms + t_max_ms)
            for message_id, (_, t_req_ms) in self._entries.items()
        }


class RepairResponses(HasDeadline):
    """The incoming repair request buffer: messages that we answer with."""

    __slots__ = ("_due_ms", "_profile")

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._profile = profile
        self._due_ms: dict[str, int] = {}

    def __contains__(self, message_id: str) -> bool:
        """Return whether an answer is queued."""
        return message_id in self._due_ms

    def add(self, message_id: str, t_resp_ms: int) -> str | None:
        """Queue an answer that is not queued yet; returns an evicted id."""
        self._due_ms[message_id] = t_resp_ms
        self._stale = True
        if len(self._due_ms) <= self._profile.repair_buffer_limit:
            return None
        evicted = _evicted(self._due_ms, self._profile)
        del self._due_ms[evicted]
        return evicted

    def remove(self, message_id: str) -> bool:
        """Drop an answer that another has given; returns whether there was one."""
        if self._due_ms.pop(message_id, None) is None:
            return False
        self._stale = True
        return True

    def take_due(self, now_ms: int) -> list[str]:
        """Drop and return the ids to answer now, the most overdue first."""
        due = sorted(
            (t_resp, message_id)
            for message_id, t_resp in self._due_ms.items()
            if t_resp <= now_ms
        )
        for _, message_id in due:
            del self._due_ms[message_id]
        self._stale = True
        return [message_id for _, message_id in due]

    def state(self) -> dict[str, int]:
        """Return T_resp of all, in order, for a snapshot."""
        return dict(self._due_ms)

    def restore(self, state: dict[str, int]) -> None:
        """Restore the result of `state`."""
        self._due_ms = state
        self._stale = True

    def _times_ms(self) -> Iterable[int]:
        return self._due_ms.values()


def _evicted(due_ms: dict[str, int], profile: Profile) -> str:
    if profile.repair_eviction is Eviction.EARLIEST:
        return min(due_ms, key=due_ms.__getitem__)
    return max(due_ms, key=due_ms.__getitem__)
