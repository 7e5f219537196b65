"""The requests and answers of one participant (SDS-R)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import NamedTuple

from sds_core.message_channel.events import (
    Broadcast,
    Buffer,
    Cause,
    Event,
    Evicted,
    RepairAnswered,
    RepairRequestReceived,
    Step,
)
from sds_core.message_channel.profile import AfterRequest, Profile
from sds_core.message_channel.repair import (
    RepairRequests,
    RepairResponses,
    in_response_group,
    request_offset_ms,
    response_groups,
    response_offset_ms,
)
from sds_core.message_channel.retained import RetainedMessages
from sds_core.wire import Frame, HistoryEntry


class AnswersGiven(NamedTuple):
    """Number and bytes of the answers in one sweep period."""

    period: int
    answers: int
    size_bytes: int


class AnswerBudget:
    """Limits the answers that are sent in a sweep period (`Profile.repair_sweep_ms`).

    The SDS-R guide has no such limits. Without limits, one short frame could request
    all stored messages, and we would broadcast them all.
    """

    __slots__ = ("_profile", "_started_ms", "given")

    def __init__(self, profile: Profile, started_ms: int) -> None:
        self._profile = profile
        self._started_ms = started_ms
        self.given = AnswersGiven(0, 0, 0)

    def allows(self, now_ms: int) -> bool:
        """Return whether the limits allow an answer now."""
        period = (now_ms - self._started_ms) // self._profile.repair_sweep_ms
        if period > self.given.period:
            self.given = AnswersGiven(period, 0, 0)
        return not self._is_spent()

    def spend(self, size_bytes: int) -> None:
        """Record an answer.

        The limits are checked before each answer, regardless of the answer's size. So
        the last answer of a period may exceed the byte limit.
        """
        period, answers, so_far = self.given
        self.given = AnswersGiven(period, answers + 1, so_far + size_bytes)

    def next_ms(self, due_ms: float) -> int:
        """Return the start of the first sweep period in which an answer may be sent.

        Args:
            due_ms: When the answer is due, Unix ms.
        """
        period_ms = self._profile.repair_sweep_ms
        periods = max(0, int(-((self._started_ms - due_ms) // period_ms)))
        if self._is_spent():
            periods = max(periods, self.given.period + 1)
        return self._started_ms + periods * period_ms

    def _is_spent(self) -> bool:
        return (
            self.given.answers >= self._profile.answers_per_sweep
            or self.given.size_bytes >= self._profile.answer_bytes_per_sweep
        )


class Participants:
    """Other participants that sent a frame recently.

    The number of these participants determines the number of response groups. A
    participant that is silent for too long is dropped. If the number of participants
    exceeds the limit, the participant with the oldest last frame is dropped.
    """

    __slots__ = ("_forgotten_after_ms", "_last_frame_ms", "_limit")

    def __init__(self, profile: Profile) -> None:
        self._forgotten_after_ms = profile.participant_forgotten_after_ms
        self._limit = profile.participants_limit
        # Time of each participant's last frame, oldest first. An OrderedDict finds the
        # oldest in constant time.
        self._last_frame_ms: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of other participants."""
        return len(self._last_frame_ms)

    def record_frame(self, name: str, now_ms: int) -> None:
        """Record that a participant sent a frame."""
        last_frame_ms = self._last_frame_ms
        last_frame_ms[name] = now_ms
        last_frame_ms.move_to_end(name)
        oldest = next(iter(last_frame_ms))
        while (
            len(last_frame_ms) > self._limit
            or last_frame_ms[oldest] < now_ms - self._forgotten_after_ms
        ):
            del last_frame_ms[oldest]
            oldest = next(iter(last_frame_ms))

    def state(self) -> dict[str, int]:
        """Return when each participant last sent a frame, Unix ms."""
        return dict(self._last_frame_ms)

    def restore(self, state: dict[str, int]) -> None:
        """Restore the participants that `state` returned."""
        self._last_frame_ms = OrderedDict(state)


class Repairer:
    """Requests missing messages, and answers requests from other participants.

    Args:
        started_ms: Start of the first sweep period, Unix ms.

    Attributes:
        requests: Our requests for missing messages.
        responses: Our queued answers to requests from others.
        retained: Whole messages that we store for later answers.
    """

    def __init__(self, participant_id: str, profile: Profile, started_ms: int) -> None:
        self._participant_id = participant_id
        self._profile = profile
        self.requests = RepairRequests(profile)
        self.responses = RepairResponses(profile)
        self.budget = AnswerBudget(profile, started_ms)
        self.retained = RetainedMessages(profile)
        self.participants = Participants(profile)

    def named(self, entry: HistoryEntry, since_ms: int, now_ms: int) -> Iterator[Event]:
        """Queue a request for a missing message that a received history names.

        The wait until T_req starts at `now_ms`. With `AfterRequest.ASK_AGAIN`, it
        starts at `since_ms`, when the message was first noticed as missing, or at
        `now_ms` minus T_max, whichever is later. If the wait started at `now_ms`, each
        new request for a message would restart it, and a full buffer could drop each
        request before its T_req.
        """
        if self._profile.after_request is AfterRequest.ASK_AGAIN:
            return self.ask_for(entry, max(since_ms, now_ms - self._profile.t_max_ms))
        return self.ask_for(entry, now_ms)

    def ask_for(self, entry: HistoryEntry, from_ms: int) -> Iterator[Event]:
        """Queue a repair request, if the missing message's sender is known."""
        if not (self._profile.repair and entry.sender_id):
            return
        if entry.message_id in self.requests:
            return
        t_req_ms = from_ms + request_offset_ms(
            self._participant_id, entry.message_id, self._profile
        )
        evicted = self.requests.add(entry, t_req_ms)
        if evicted is not None:
            yield Evicted(Buffer.REPAIR_REQUESTS, evicted)

    def take_requests(self, frame: Frame, now_ms: int) -> list[Event]:
        """Queue our answers to a frame's requests (SDS-R guide, "When RECEIVING").

        Only the first `Profile.requests_taken_per_message` requests are read.
        """
        events: list[Event] = []
        ours: list[str] = []
        limit = self._profile.requests_taken_per_message
        for entry in islice(frame.repair_request, limit):
            message_id = entry.message_id
            self.requests.requested_by_another(message_id, now_ms)
            stored = self.retained.get(message_id, now_ms)
            if (
                not entry.sender_id
                or stored is None
                or message_id in self.responses
                or not self._answers_for(message_id, stored.sender_id)
            ):
                continue
            t_resp_ms = now_ms + response_offset_ms(
                self._participant_id, stored.sender_id, message_id, self._profile
            )
            ours.append(message_id)
            evicted = self.responses.add(message_id, t_resp_ms)
            if evicted is not None:
                events.append(Evicted(Buffer.REPAIR_RESPONSES, evicted))
        return [RepairRequestReceived(tuple(ours), frame.sender_id), *events]

    def retain(
        self, message_id: str, value: bytes, sender_id: str, now_ms: int
    ) -> None:
        """Store a whole message for later answers, if we are in its response group."""
        if self._profile.repair and self._answers_for(message_id, sender_id):
            self.retained.add(message_id, value, sender_id, now_ms)

    def withdraw(self, message_id: str) -> None:
        """Stop sending a message as an answer."""
        self.responses.remove(message_id)
        self.retained.remove(message_id)

    def answer(self, now_ms: int) -> Step:
        """Broadcast the answers that are due, if their messages are still stored.

        Answers beyond the profile's limits stay queued for a later sweep. A queued
        answer is dropped if another participant sends the message first.
        """
        broadcasts: list[Broadcast] = []
        events: list[Event] = []
        due = self.responses.take_due(now_ms)
        while self.budget.allows(now_ms) and (message_id := next(due, None)):
            stored = self.retained.get(message_id, now_ms)
            if stored is not None:
                self.budget.spend(len(stored.value))
                broadcasts.append(Broadcast(Cause.REPAIR, message_id, stored.value))
                events.append(RepairAnswered(message_id))
        return Step(broadcasts, events)

    def next_answer_ms(self) -> float:
        """Return when the next answer may be sent, Unix ms; inf if none is queued."""
        due_ms = self.responses.next_ms
        return inf if due_ms == inf else self.budget.next_ms(due_ms)

    def _answers_for(self, message_id: str, sender_id: str) -> bool:
        """Return whether we are in the response group of a message."""
        groups = response_groups(1 + len(self.participants), self._profile)
        return groups == 1 or in_response_group(
            self._participant_id,
            sender_id,
            message_id,
            groups,
            self._profile.repair_hash,
        )
