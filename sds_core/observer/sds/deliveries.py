"""Tracks the delivery of each message to each participant (docs/figures.md, 5).

A bloom filter has no false negatives. If a frame's filter does not hold a message that
could have reached the frame's sender before the frame, the sender lacks the message.
Whether a participant has a message is judged only when the participant sends a frame,
and only by the history and the filter of this frame.
"""

from __future__ import annotations

import msgspec

from sds_core.native import native
from sds_core.observer.incidents import Incidents
from sds_core.observer.journal import Journal
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.filters import Filters
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.health import Health
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.messages import Message, MessageTable
from sds_core.observer.sds.missing_deliveries import MissingDeliveries
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.receivers import WATCHED, PackedReceiver, Receiver
from sds_core.observer.sds.seen_frames import Named, SeenFrame
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.wire import FrameKind

_NEVER = -(1 << 62)

_LOSSES_PER_FRAME = 25
"""Maximum number of losses that one frame's filter can add or retract."""


class DeliveriesState(msgspec.Struct, array_like=True):
    """Encoded form of `Deliveries`.

    Attributes:
        receivers: Receivers by participant index.
        undelivered: For each message that ever counted as lost to any participant: the
            event time of the first frame that showed the lack, and the channel's clock
            when the first loss was found. The key is the message's order.
    """

    receivers: dict[int, PackedReceiver] = {}
    undelivered: dict[int, tuple[int, int]] = {}


@native
class Deliveries:
    """Tracks which participants received each message.

    Attributes:
        receivers: Receivers by participant index.
    """

    _settings: RuleSettings
    _totals: ChannelTotals
    _participants: Participants
    _filters: Filters
    _health: Health
    _messages: MessageTable
    _oldest: int
    receivers: dict[int, Receiver]
    _awaited: int
    _missing: MissingDeliveries
    _undelivered: dict[int, tuple[int, int]]
    _journal: Journal | None

    def __init__(
        self,
        settings: RuleSettings,
        totals: ChannelTotals,
        participants: Participants,
        filters: Filters,
        health: Health,
        incidents: Incidents,
        messages: MessageTable,
        state: DeliveriesState,
        clock_ms: int,
        journal: Journal | None,
    ) -> None:
        self._settings = settings
        self._totals = totals
        self._participants = participants
        self._filters = filters
        self._health = health
        self._messages = messages
        # Order of the oldest message in the retention window. All messages with higher
        # orders are still remembered.
        self._oldest = totals.messages
        first = messages.first_seen_since(clock_ms - settings.horizon_ms)
        if first is not None:
            self._oldest = first
        self.receivers = {
            by: packed.unpacked() for by, packed in state.receivers.items()
        }
        # Number of messages in `Receiver.waiting`, summed over all receivers.
        self._awaited = 0
        for one in self.receivers.values():
            self._awaited += one.waiting_count
        self._missing = MissingDeliveries(
            participants, incidents, self.receivers, state.undelivered
        )
        self._undelivered = state.undelivered
        self._journal = journal

    def first_copy_by(
        self,
        frame: SeenFrame,
        by: int,
        clock_ms: int,
        is_newest: bool,
        proves_lack: bool,
    ) -> None:
        """Derive from a first copy which messages its sender has or lacks.

        Call this before `Participants.spoke` records the frame as activity of its
        sender. A participant is expected to receive a message only if the participant
        was active before the message was sent.

        Args:
            frame: The first copy.
            by: Participant index or `UNKNOWN`.
            clock_ms: The channel's clock.
            is_newest: Whether the frame's filter is the participant's newest.
            proves_lack: Whether the frame was composed shortly before it was sent. If
                so, the participant now lacks the messages that the frame's filter does
                not hold.
        """
        self.forget_old(clock_ms)
        if by == UNKNOWN:
            return
        receiver: Receiver | None = self.receivers.get(by)
        is_new = receiver is None
        if receiver is None:
            if len(self.receivers) >= self._settings.followed:
                self._totals.leave_out(LeftOut.PARTICIPANT)
                return
            receiver = self.receivers[by] = Receiver(self._totals.messages)
        last_ms = self._participants.last_ms(by)
        if last_ms and frame.time_ms - last_ms > self._settings.delivery_deadline_ms:
            receiver.returns = frame.time_ms, receiver.returns[0]
        if is_new:
            return
        before = self._ended()
        self._await_new(receiver, by)
        if is_newest:
            self._detect_roll_over(receiver, by, frame)
        for message in self._awaited_and_named(receiver, frame):
            self._delivered(receiver, by, message, frame.time_ms, clock_ms)
        if frame.filter is not None:
            self._read_filter(
                receiver, by, frame, frame.filter, clock_ms, is_newest, proves_lack
            )
        self._health.pairs_ended(self._ended() - before, clock_ms)

    def _awaited_and_named(self, receiver: Receiver, frame: SeenFrame) -> list[Message]:
        messages, waiting = self._messages, receiver.waiting
        orders: set[int] = set()
        named: Named
        for named in frame.history:
            order: int = messages.order_of(named.fingerprint)
            # A message that is older than the retention window is not judged. Such a
            # message may still be remembered, because histories name it.
            if order >= self._oldest and order in waiting:
                orders.add(order)
        return messages.by_orders(sorted(orders))

    def _read_filter(
        self,
        receiver: Receiver,
        by: int,
        frame: SeenFrame,
        filter_: Filter,
        clock_ms: int,
        is_newest: bool,
        proves_lack: bool,
    ) -> None:
        """Judge by a frame's filter which messages its sender has or lacks.

        Only messages in `receiver.waiting` are judged. For the arguments, see
        `first_copy_by`.
        """
        for old in [one for one in receiver.waiting if one < self._oldest]:
            self._end(receiver, by, old)
        time_ms: int = frame.time_ms
        proves: bool = proves_lack and frame.kind is not FrameKind.EPHEMERAL
        # A roll-over may have removed earlier messages from the filter, although the
        # participant has them.
        rolled_ms = self._filters.rolled_ms(by)
        since_ms: int = _NEVER if rolled_ms is None else rolled_ms
        grace_ms: int = time_ms - self._settings.delivery_grace_ms
        # If the participant already lacked a message before this time, the message is
        # lost.
        overdue_ms: int = time_ms - self._settings.delivery_deadline_ms
        if receiver.returns[0] >= overdue_ms:
            # If the participant recently returned from a silence, it had no time to
            # catch up. A message then counts as lost only if the participant already
            # lacked the message before its second-latest return.
            overdue_ms = min(overdue_ms, receiver.returns[1])
        missing, lost = receiver.missing, receiver.lost
        # Each loss or retraction records an incident, so their number per filter is
        # limited. The filter of the participant's next frame shows the others.
        left: int = _LOSSES_PER_FRAME
        message: Message
        for message in self._messages.by_orders(sorted(receiver.waiting)):
            # Ids of one dialect cannot be looked up in a filter of the other dialect.
            if message.dialect is not frame.dialect:
                continue
            order: int = message.order
            if filter_.holds(message):
                if order in lost:
                    if not left:
                        continue
                    left -= 1
                if is_newest:
                    receiver.watched[WATCHED - 1 :] = [order]
                self._delivered(receiver, by, message, time_ms, clock_ms)
                continue
            is_missing: bool = order in missing
            if is_missing and (
                not left or order in lost or missing[order] >= overdue_ms
            ):
                continue
            if (
                proves
                and frame.lamport > message.lamport
                and message.t0_ms < grace_ms
                and message.t0_ms >= since_ms
            ):
                if is_missing:
                    left -= 1
                    self._overdue(receiver, by, message, clock_ms)
                else:
                    missing[order] = time_ms
                    self._missing.missing(order, by, time_ms)
                    self._note(message, "missing", time_ms, by)

    def returned_ms(self, by: int) -> int:
        """Event time at which a participant last returned from a long silence.

        Unix ms; 0 if the participant never did.
        """
        receiver = self.receivers.get(by)
        return 0 if receiver is None else receiver.returns[0]

    def lacking(self, message: Message) -> tuple[dict[str, int], int]:
        """See `MissingDeliveries.of`."""
        return self._missing.of(message)

    def orders_of_use(self) -> set[int]:
        """Orders of the messages whose ids may still be looked up in a filter."""
        of_use: set[int] = set()
        for receiver in self.receivers.values():
            of_use.update(receiver.waiting, receiver.watched)
        # Later frames may add messages of this range to a receiver's `waiting`, and
        # then look up their ids.
        of_use.update(range(self._new_from(), self._totals.messages))
        return of_use

    def _new_from(self) -> int:
        """Order of the first message that may yet be added to some `waiting` set."""
        end: int = self._totals.messages
        first: int = end
        receiver: Receiver
        for receiver in self.receivers.values():
            first = min(first, receiver.checked_to)
        first = max(first, self._oldest, end - self._settings.awaited)
        found: int = end
        for by, receiver in self.receivers.items():
            begin: int = max(receiver.checked_to, first)
            if begin >= found:
                continue
            after_ms, until_ms = self._participants.active_span(by)
            new = self._messages.new_to(by, after_ms, until_ms, begin, found)
            if new:
                found = new[0]
        return found

    def forget(self, message: Message) -> None:
        """Stop tracking a message that is dropped, and all messages before it."""
        self._oldest = max(self._oldest, message.order + 1)

    def forget_silent_since(self, clock_ms: int) -> None:
        """Drop silent receivers, and waiting messages that are no longer remembered.

        Args:
            clock_ms: Event time, Unix ms. If a participant's latest first copy is
                before this time, the participant does not count as active for any
                message in the retention window.
        """
        self._missing.forget_before(self._oldest)
        for by, receiver in list(self.receivers.items()):
            is_silent = not self._participants.has_spoken_since(by, clock_ms)
            forgotten = [
                one for one in receiver.waiting if is_silent or one < self._oldest
            ]
            for order in forgotten:
                self._end(receiver, by, order)
            if is_silent:
                del self.receivers[by]

    def state(self) -> DeliveriesState:
        """The encoded form."""
        return DeliveriesState(
            {by: PackedReceiver.of(one) for by, one in self.receivers.items()},
            self._undelivered,
        )

    def _ended(self) -> int:
        totals = self._totals
        return (
            totals.deliveries_first_pass
            + totals.deliveries_recovered
            + totals.deliveries_lost
        )

    def _await_new(self, receiver: Receiver, by: int) -> None:
        totals = self._totals
        limit: int = self._settings.awaited
        unread_from: int = max(receiver.checked_to, self._oldest)
        first: int = max(unread_from, totals.messages - limit)
        after_ms, until_ms = self._participants.active_span(by)
        new = self._messages.new_to(by, after_ms, until_ms, first, totals.messages)
        receiver.checked_to = totals.messages
        room = max(0, self._settings.awaited_by_all - self._awaited)
        taken = new[:room]
        excess: int = max(0, len(receiver.waiting) + len(taken) - limit)
        left_out: int = len(new) - len(taken) + excess
        if first > unread_from:
            older = self._messages.new_to(by, after_ms, until_ms, unread_from, first)
            left_out += len(older)
        if left_out:
            totals.leave_out(LeftOut.DELIVERY, left_out)
        if excess:
            for order in sorted(receiver.waiting)[:excess]:
                self._end(receiver, by, order)
        receiver.waiting.update(taken)
        self._awaited += len(taken)

    def _detect_roll_over(self, receiver: Receiver, by: int, frame: SeenFrame) -> None:
        filter_, holds_all = frame.filter, True
        watched: list[int] = []
        for order in receiver.watched:
            message = self._messages.by_order(order) if order >= self._oldest else None
            if message is not None:
                watched.append(order)
                if filter_ is not None and holds_all:
                    holds_all = filter_.holds(message)
        receiver.watched = watched
        if self._filters.has_rolled:
            receiver.watched = []
        elif not holds_all:
            receiver.watched = []
            self._filters.rolled(by, frame)

    def _delivered(
        self, receiver: Receiver, by: int, message: Message, time_ms: int, clock_ms: int
    ) -> None:
        """Count a delivery; if the message counted as lost, retract the loss."""
        totals, order = self._totals, message.order
        was_lost = order in receiver.lost
        missing_ms = receiver.missing.get(order)
        self._end(receiver, by, order)
        receiver.delivered += 1
        if was_lost:
            # If a release before 0.8 recorded the loss, `failed` does not include it.
            receiver.failed = max(0, receiver.failed - 1)
            totals.deliveries_retracted += 1
            self._note(message, "retracted", time_ms, by)
            self._health.delivered(order, by)
            self._missing.record_incident(message, clock_ms)
        elif missing_ms is None:
            totals.deliveries_first_pass += 1
            self._note(message, "first_pass", time_ms, by)
        else:
            totals.deliveries_recovered += 1
            self._note(message, "recovered", time_ms, by)
            totals.delivery_recovery.observe(max(0, time_ms - missing_ms))
            self._health.recovered(clock_ms, missing_ms)

    def _overdue(
        self, receiver: Receiver, by: int, message: Message, clock_ms: int
    ) -> None:
        order = message.order
        receiver.lost.add(order)
        receiver.failed += 1
        self._totals.deliveries_lost += 1
        self._health.undelivered(order, by, clock_ms, receiver.missing[order])
        self._missing.lost(message, by, clock_ms)
        self._note(message, "undelivered", clock_ms, by)

    def _note(self, message: Message, what: str, time_ms: int, by: int) -> None:
        if self._journal is not None:
            self._journal.note(message.key, what, time_ms, self._participants.name(by))

    def _end(self, receiver: Receiver, by: int, order: int) -> None:
        if order in receiver.waiting:
            receiver.waiting.remove(order)
            self._awaited -= 1
        if receiver.missing.pop(order, None) is not None:
            self._missing.end(order, by)
        receiver.lost.discard(order)

    def forget_old(self, clock_ms: int) -> None:
        """Stop tracking messages that are older than the retention window."""
        since_ms = clock_ms - self._settings.horizon_ms
        end: int = self._totals.messages
        while self._oldest < end:
            if self._messages.seen_of(self._oldest) >= since_ms:
                return
            self._oldest += 1
