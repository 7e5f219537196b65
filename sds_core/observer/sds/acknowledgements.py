"""Messages and their acknowledgement by others (observer model, section 4)."""

from __future__ import annotations

import msgspec

from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.incidents import Incident, IncidentKind, Incidents
from sds_core.observer.sds.deliveries import Deliveries
from sds_core.observer.sds.digest import Filter, SeenFrame
from sds_core.observer.sds.messages import Message
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings


class DefiniteAcknowledgement(msgspec.Struct, array_like=True, tag=True):
    """One definite acknowledgement, as detail for the report."""

    message_id: str
    t0_ms: int
    latency_ms: int


class Acknowledgements:
    """Follows each content message to its acknowledgement or its deadline."""

    def __init__(
        self,
        settings: ObserverSettings,
        totals: ChannelTotals,
        deadlines: Deadlines,
        participants: Participants,
        deliveries: Deliveries,
        incidents: Incidents,
        messages: dict[int, Message],
    ) -> None:
        self._settings = settings
        self._totals = totals
        self._deadlines = deadlines
        self._participants = participants
        self._deliveries = deliveries
        self._incidents = incidents
        self._messages = messages
        self._unacknowledged: dict[int, Message] = {}
        self._without_opportunity: dict[int, Message] = {}
        self._definite: list[DefiniteAcknowledgement] = []
        for key, message in messages.items():
            self._follow(key, message)

    def get(self, key: int) -> Message | None:
        """The message with this fingerprint, if it was seen."""
        return self._messages.get(key)

    def is_recent(self, message: Message, clock_ms: int) -> bool:
        """Whether the message is still looked for (the horizon)."""
        return clock_ms <= message.seen_ms + self._settings.horizon_ms

    def first_copy(self, frame: SeenFrame, clock_ms: int) -> Message:
        """A message was seen for the first time."""
        sender = self._participants.index(frame.sender)
        others = self._participants.active_others(
            sender, frame.time_ms, enough=self._settings.probable_witnesses
        )
        key = frame.named.fingerprint
        message = Message(
            key=key,
            order=self._totals.messages,
            t0_ms=frame.time_ms,
            seen_ms=clock_ms,
            kept_ms=clock_ms,
            sender=sender,
            lamport=frame.lamport,
            dialect=frame.dialect,
            witnesses_needed=max(1, others),
            message_id=frame.named.message_id,
            waku_hash=frame.waku_hash_bytes,
        )
        self._messages[key] = message
        self._totals.messages += 1
        self._totals.in_flight += 1
        self._follow(key, message)
        self._deliveries.first_copy(message)
        return message

    def mentioned(self, message: Message, by: int, time_ms: int, clock_ms: int) -> None:
        """A participant's causal history names the message."""
        if message.definite or UNKNOWN in (by, message.sender) or by == message.sender:
            return
        message.definite = True
        latency_ms = max(0, time_ms - message.t0_ms)
        self._totals.acknowledged_definite += 1
        self._totals.definite_latency.observe(latency_ms)
        self._definite.append(
            DefiniteAcknowledgement(message.message_id, message.t0_ms, latency_ms)
        )
        self._acknowledged(message, clock_ms)

    def first_copy_by(self, frame: SeenFrame, by: int) -> None:
        """A first copy is an opportunity for messages of others before it."""
        if by == UNKNOWN:
            return
        taken = [
            key
            for key, message in self._without_opportunity.items()
            if message.sender != by
            and message.dialect is frame.dialect
            and message.lamport < frame.lamport
            and message.t0_ms < frame.time_ms
        ]
        for key in taken:
            self._without_opportunity.pop(key).opportunity = True

    def search_filter(
        self, filter_: Filter, by: int, time_ms: int, clock_ms: int
    ) -> None:
        """Look for unacknowledged messages of others in a participant's filter."""
        if by == UNKNOWN:
            return
        given_up = []
        for key, message in list(self._unacknowledged.items()):
            if not self.is_recent(message, clock_ms):
                given_up.append(key)
            elif (
                message.sender not in (by, UNKNOWN)
                and by not in message.witnesses
                and filter_.contains(message.message_id)
            ):
                self._witnessed(message, by, filter_, time_ms, clock_ms)
        for key in given_up:
            del self._unacknowledged[key]

    def deadline_passed(self, key: int, deadline_ms: int) -> bool | None:
        """A message's deadline has passed.

        Returns:
            Whether it counts as unacknowledged; None if the message it was about
            has been forgotten.
        """
        message = self._messages.get(key)
        if (
            message is None
            or message.overdue
            or self._deadline_of(message) != deadline_ms
        ):
            return None
        message.overdue = True
        self._without_opportunity.pop(key, None)
        if message.in_time:
            return False
        self._totals.in_flight -= 1
        if message.opportunity:
            self._totals.unacknowledged += 1
            self._tell(message, ended_ms=None)
        else:
            self._totals.unwitnessed += 1
        return message.opportunity

    def take_definite(self) -> list[DefiniteAcknowledgement]:
        """Definite acknowledgements since the last call."""
        taken, self._definite = self._definite, []
        return taken

    def forget(self, key: int) -> None:
        """Forget a message; one still in flight ends as unwitnessed, no fault."""
        message = self._messages.pop(key)
        self._deliveries.forget(message)
        if not (message.overdue or message.in_time):
            self._totals.in_flight -= 1
            self._totals.unwitnessed += 1
        self._unacknowledged.pop(key, None)
        self._without_opportunity.pop(key, None)

    def oldest_in_flight_ms(self) -> int | None:
        """Event time of the oldest message in flight."""
        return min(
            (m.t0_ms for m in self._unacknowledged.values() if not m.overdue),
            default=None,
        )

    def _follow(self, key: int, message: Message) -> None:
        if not message.overdue:
            self._deadlines.add(self._deadline_of(message), Due.ACKNOWLEDGEMENT, key)
            # Nobody can be told apart from an unknown sender.
            if not (
                message.opportunity or message.in_time or message.sender == UNKNOWN
            ):
                self._without_opportunity[key] = message
        if not (message.definite or message.probable):
            self._unacknowledged[key] = message

    def _deadline_of(self, message: Message) -> int:
        return message.seen_ms + self._settings.ack_deadline_ms

    def _witnessed(
        self, message: Message, by: int, filter_: Filter, time_ms: int, clock_ms: int
    ) -> None:
        message.witnesses.append(by)
        message.witness_rate *= filter_.false_positive_rate()
        if (
            message.witness_rate >= self._settings.probable_rate
            or len(message.witnesses) < message.witnesses_needed
        ):
            return
        message.probable = True
        latency_ms = max(0, time_ms - message.t0_ms)
        self._totals.acknowledged_probable += 1
        self._totals.probable_latency.observe(latency_ms)
        self._acknowledged(message, clock_ms)

    def _acknowledged(self, message: Message, clock_ms: int) -> None:
        self._unacknowledged.pop(message.key, None)
        self._without_opportunity.pop(message.key, None)
        if message.definite:
            message.witnesses = []
        if message.is_unacknowledged:
            if not (message.definite and message.probable):
                self._tell(message, ended_ms=clock_ms)
        elif not (message.overdue or message.in_time):
            message.in_time = True
            self._totals.acknowledged_in_time += 1
            self._totals.in_flight -= 1

    def _tell(self, message: Message, ended_ms: int | None) -> None:
        """Tell the incident of an unacknowledged message."""
        self._incidents.tell(
            Incident(
                IncidentKind.UNACKNOWLEDGED,
                message.message_id,
                self._participants.name(message.sender),
                since_ms=message.t0_ms,
                found_ms=self._deadline_of(message),
                ended_ms=ended_ms,
                lacking=self._deliveries.lacking(message),
                waku_hash=message.waku_hash,
                hint=message.hint,
            )
        )
