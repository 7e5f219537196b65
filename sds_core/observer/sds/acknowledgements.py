"""Tracks the acknowledgement of messages by other participants (docs/figures.md, 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from sds_core.native import native
from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.incidents import Incident, IncidentKind, Incidents
from sds_core.observer.journal import Journal
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.deliveries import Deliveries
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.messages import Message, MessageTable
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.wire import FrameKind

_MANY_WITNESSES = 64
"""Number of witnesses after which a message gets no further weak witness.

A witness is weak if this number of such witnesses is not enough for a probable
acknowledgement: the false-positive rate of its filter is about 0.8 or more. Other
witnesses need no limit, because they soon acknowledge the message. Without the limit,
an untrusted sender could invent any number of witnesses. If the limit applied to all
witnesses, the invented ones could keep out the others.
"""


class DefiniteAcknowledgement(msgspec.Struct, array_like=True, tag=True):
    """One definite acknowledgement; the option ``--report-detail`` reports it."""

    message_id: str
    t0_ms: int
    latency_ms: int


@native
@dataclass(slots=True)
class Acknowledgements:
    """Tracks whether and when each content message is acknowledged."""

    _settings: RuleSettings
    _totals: ChannelTotals
    _deadlines: Deadlines
    _participants: Participants
    _deliveries: Deliveries
    _incidents: Incidents
    _messages: MessageTable
    # The channel's clock when the messages were loaded.
    _loaded_ms: int
    _journal: Journal | None
    _definite: list[DefiniteAcknowledgement] = field(default_factory=list)
    # By fingerprint: senders of the messages in the retention window that are not
    # acknowledged, the newest last. A message without a sender cannot be acknowledged,
    # so it is in neither of these two dictionaries.
    _unacknowledged: dict[int, int] = field(default_factory=dict)
    # Number of messages of each sender in `_unacknowledged`.
    _unacknowledged_of: Counter[int] = field(default_factory=Counter)
    # Fingerprints of the messages whose deadline has not passed and whose
    # `opportunity` is not yet set, the newest last.
    _unjudged: dict[int, None] = field(default_factory=dict)
    # By fingerprint: event times of the unacknowledged messages whose deadline has not
    # passed.
    _in_flight: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Queue the deadlines of the loaded messages."""
        messages, settings = self._messages, self._settings
        since_ms = self._loaded_ms - settings.horizon_ms
        self._unacknowledged = dict(messages.unacknowledged(since_ms))
        self._unacknowledged_of = Counter(self._unacknowledged.values())
        self._unjudged = dict.fromkeys(messages.unjudged())
        self._in_flight = dict(messages.in_flight())
        after_ms = settings.ack_deadline_ms
        awaited = [(seen_ms + after_ms, key) for key, seen_ms in messages.not_overdue()]
        self._deadlines.add_all(Due.ACKNOWLEDGEMENT, awaited)

    def get(self, key: int) -> Message | None:
        """The message with this fingerprint; None if it is not remembered."""
        return self._messages.get(key)

    def is_recent(self, message: Message, clock_ms: int) -> bool:
        """Whether a message is in the retention window.

        Frames do not affect a message outside the window.
        """
        return clock_ms <= message.seen_ms + self._settings.horizon_ms

    def first_copy(self, frame: SeenFrame, clock_ms: int) -> Message:
        """Start to track a message whose first copy is `frame`."""
        sender = self._participants.index(frame.sender)
        others = self._participants.active_others(
            sender, frame.time_ms, self._settings.probable_witnesses
        )
        key = frame.named.fingerprint
        message = Message(
            key,
            self._totals.messages,
            frame.time_ms,
            clock_ms,
            clock_ms,
            sender,
            frame.lamport,
            frame.dialect,
            max(1, others),
        )
        message.message_id = frame.named.message_id
        message.waku_hash = frame.waku_hash_bytes
        self._messages.add(message)
        self._totals.messages += 1
        self._totals.in_flight += 1
        self._deadlines.add(self._deadline_of(message), Due.ACKNOWLEDGEMENT, key)
        if sender != UNKNOWN:
            self._unacknowledged[key] = sender
            self._unacknowledged_of[sender] += 1
            self._unjudged[key] = None
        self._in_flight[key] = message.t0_ms
        return message

    def mentioned(self, message: Message, by: int, time_ms: int, clock_ms: int) -> None:
        """Record that a participant's causal history names the message.

        If this participant is not the sender, the message is definitely acknowledged.
        """
        if message.definite or UNKNOWN in (by, message.sender) or by == message.sender:
            return
        message.definite = True
        latency_ms = max(0, time_ms - message.t0_ms)
        self._totals.acknowledged_definite += 1
        self._totals.definite_latency.observe(latency_ms)
        self._definite.append(
            DefiniteAcknowledgement(message.message_id, message.t0_ms, latency_ms)
        )
        self._note(message, "definite", time_ms, by)
        self._acknowledged(message, clock_ms)

    def read_frame(
        self, frame: SeenFrame, by: int, clock_ms: int, is_first_copy: bool
    ) -> None:
        """Look up unacknowledged messages of other senders in a frame's filter.

        Call `mentioned` for the frame's causal history first. If the filter holds a
        message, the frame's sender becomes a witness of the message. If the filter
        lacks a message that the frame could have acknowledged, `opportunity` is set for
        the message. If the frame's sender has returned from a long silence, its frames
        cannot acknowledge messages from before this return.

        Args:
            frame: The frame.
            by: The frame's sender: participant index or `UNKNOWN`.
            clock_ms: The channel's clock.
            is_first_copy: Whether the frame is a first copy. If not, the frame is a
                rebroadcast, and its filter is as old as its first copy.
        """
        is_opportunity = is_first_copy and frame.kind is not FrameKind.EPHEMERAL
        if by == UNKNOWN or not (is_opportunity or frame.filter is not None):
            return
        self._forget_old(clock_ms)
        searched = self._settings.searched
        filter_, time_ms = frame.filter, frame.time_ms
        # When `by` last returned from a long silence. When an earlier message was sent,
        # `by` may have been offline.
        returned_ms: int = self._deliveries.returned_ms(by)
        # Pairs of a message and whether the filter holds the message.
        found: list[tuple[Message, bool]] = []
        of_others: int = 0
        keys: Iterable[int] = islice(reversed(self._unacknowledged), searched)
        if filter_ is None:
            keys = self._unjudged_among_newest(searched)
        for key in keys:
            is_unjudged: bool = filter_ is None or key in self._unjudged
            sender: int = self._messages.sender_of(key)
            if sender == by:
                continue
            of_others += 1
            message: Message = self._messages[key]
            is_judged: bool = (
                is_opportunity
                and is_unjudged
                and message.dialect is frame.dialect
                and message.lamport < frame.lamport
                and returned_ms <= message.t0_ms < time_ms
            )
            is_held: bool = False
            if filter_ is not None:
                if not is_judged and by in message.witnesses:
                    continue
                is_held = filter_.holds(message)
            if is_held or is_judged:
                found.append((message, is_held))
        if filter_ is not None:
            # A filter cannot acknowledge messages of its own sender.
            own: int = self._unacknowledged_of[by]
            older: int = len(self._unacknowledged) - own - of_others
            self._totals.leave_out(LeftOut.SEARCH, older)
        for message, is_held in reversed(found):
            if not is_held:
                message.opportunity = True
                del self._unjudged[message.key]
            elif filter_ is not None and by not in message.witnesses:
                self._witnessed(message, by, filter_, time_ms, clock_ms)

    def _unjudged_among_newest(self, count: int) -> list[int]:
        first: int = 0
        if len(self._unacknowledged) > count:
            (key,) = islice(reversed(self._unacknowledged), count - 1, count)
            first = self._messages.order_of(key)
        found: list[int] = []
        for key in reversed(self._unjudged):
            if self._messages.order_of(key) < first:
                break
            found.append(key)
        return found

    def deadline_passed(self, key: int, deadline_ms: int) -> bool | None:
        """At a message's deadline, decide whether it counts as unacknowledged.

        The result is None if the deadline is obsolete, for example because the message
        was forgotten.
        """
        message: Message | None = self._messages.get(key)
        if (
            message is None
            or message.overdue
            or self._deadline_of(message) != deadline_ms
        ):
            return None
        message.overdue = True
        self._unjudged.pop(key, None)
        self._in_flight.pop(key, None)
        if message.in_time:
            return False
        self._totals.in_flight -= 1
        outcome = "unacknowledged" if message.opportunity else "unwitnessed"
        self._note(message, outcome, deadline_ms)
        if message.opportunity:
            self._totals.unacknowledged += 1
            self._record_incident(message, None)
        else:
            self._totals.unwitnessed += 1
        return message.opportunity

    def drain_definite(self) -> list[DefiniteAcknowledgement]:
        """Return the definite acknowledgements since the last call."""
        definite, self._definite = self._definite, []
        return definite

    def forget(self, key: int) -> Message:
        """Drop and return a message; if it is in flight, it counts as unwitnessed."""
        message: Message = self._messages[key]
        self._messages.remove(key)
        self._deliveries.forget(message)
        self._in_flight.pop(key, None)
        if not (message.overdue or message.in_time):
            self._totals.in_flight -= 1
            self._totals.unwitnessed += 1
            self._note(message, "unwitnessed", message.latest_ms)
        self._drop(key)
        self._unjudged.pop(key, None)
        return message

    def oldest_in_flight_ms(self) -> int | None:
        """Event time of the oldest message in flight, Unix ms.

        The result is None if no message is in flight.
        """
        return min(self._in_flight.values(), default=None)

    def forget_ids(self, clock_ms: int) -> None:
        """Drop ids, Waku hashes and retrieval hints that no later frame can need."""
        since_ms = clock_ms - self._settings.horizon_ms
        self._messages.keep_ids_of(self._deliveries.orders_of_use(), since_ms)

    def _forget_old(self, clock_ms: int) -> None:
        old = []
        for key in self._unacknowledged:
            message: Message = self._messages[key]
            if self.is_recent(message, clock_ms):
                break
            old.append(key)
        for key in old:
            self._drop(key)

    def _drop(self, key: int) -> None:
        sender: int = self._unacknowledged.pop(key, UNKNOWN)
        if sender != UNKNOWN:
            self._unacknowledged_of[sender] -= 1

    def _deadline_of(self, message: Message) -> int:
        return message.seen_ms + self._settings.ack_deadline_ms

    def _witnessed(
        self, message: Message, by: int, filter_: Filter, time_ms: int, clock_ms: int
    ) -> None:
        rate: float = filter_.false_positive_rate()
        needed: float = self._settings.probable_rate
        if (
            len(message.witnesses) >= _MANY_WITNESSES
            and rate**_MANY_WITNESSES >= needed
        ):
            return
        message.witnesses.append(by)
        message.witness_rate *= rate
        self._note(message, "witnessed", time_ms, by)
        if (
            message.witness_rate >= needed
            or len(message.witnesses) < message.witnesses_needed
        ):
            return
        message.probable = True
        self._note(message, "probable", time_ms, by)
        latency_ms = max(0, time_ms - message.t0_ms)
        self._totals.acknowledged_probable += 1
        self._totals.probable_latency.observe(latency_ms)
        self._acknowledged(message, clock_ms)

    def _acknowledged(self, message: Message, clock_ms: int) -> None:
        self._drop(message.key)
        self._unjudged.pop(message.key, None)
        self._in_flight.pop(message.key, None)
        if message.definite:
            message.witnesses = []
        if message.is_unacknowledged:
            if not (message.definite and message.probable):
                self._record_incident(message, clock_ms)
        elif not (message.overdue or message.in_time):
            message.in_time = True
            self._totals.acknowledged_in_time += 1
            self._note(message, "acknowledged_in_time", clock_ms)
            self._totals.in_flight -= 1

    def _note(
        self, message: Message, what: str, time_ms: int, by: int = UNKNOWN
    ) -> None:
        if self._journal is not None:
            self._journal.note(message.key, what, time_ms, self._participants.name(by))

    def _record_incident(self, message: Message, ended_ms: int | None) -> None:
        lacking, others = self._deliveries.lacking(message)
        self._incidents.record(
            Incident(
                IncidentKind.UNACKNOWLEDGED,
                message.message_id,
                self._participants.name(message.sender),
                since_ms=message.t0_ms,
                found_ms=self._deadline_of(message),
                ended_ms=ended_ms,
                lacking=lacking,
                waku_hash=message.waku_hash,
                hint=message.hint,
                lacking_others=others,
            )
        )
