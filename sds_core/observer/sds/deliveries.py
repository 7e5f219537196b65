"""Delivery of each message to each participant (docs/figures.md, 5).

A bloom filter has no false negatives. If a participant sends a frame after it could
have received a message, and the frame's filter does not hold the message, then the
participant lacks it. Each pair of message and participant is judged only when the
participant sends a frame, so a pair needs no state before that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from sds_core.observer.columns import pack_set, unpack_set
from sds_core.observer.incidents import Incident, IncidentKind, Incidents
from sds_core.observer.sds.filters import Filters
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.health import Health
from sds_core.observer.sds.messages import Message
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import FrameKind

_WATCHED = 4
"""Number of ids by which a roll-over is detected even if the fill increases.

The first three ids that were held, which a filter drops first, and the newest, which is
missing after a participant restarts with an old state."""


class Receiver(msgspec.Struct):
    """What one participant has received, as far as its frames show.

    Messages are given by their order.

    Attributes:
        checked_to: Messages from this one on were sent after its latest first copy.
        waiting: Earlier messages that it is not known to have.
        missing: The waiting messages that it lacked, with the event time of the first
            frame that showed this.
        lost: The waiting messages that count as lost to it.
        watched: Messages that its newest filter held, at most `_WATCHED`.
    """

    checked_to: int = 0
    waiting: set[int] = set()
    missing: dict[int, int] = {}
    lost: set[int] = set()
    watched: list[int] = []


class PackedReceiver(msgspec.Struct, array_like=True):
    """Packed form of a `Receiver`.

    Attributes:
        checked_to, missing, lost, watched: See `Receiver`.
        first: Least order of the waiting messages.
        waiting: Bitmap of the waiting messages, from `first` on.
    """

    checked_to: int
    first: int
    waiting: bytes
    missing: dict[int, int]
    lost: list[int]
    watched: list[int]

    @classmethod
    def of(cls, receiver: Receiver) -> PackedReceiver:
        """The packed form of a receiver."""
        return cls(
            receiver.checked_to,
            *pack_set(receiver.waiting),
            receiver.missing,
            sorted(receiver.lost),
            receiver.watched,
        )

    def unpacked(self) -> Receiver:
        """The receiver."""
        waiting = unpack_set(self.first, self.waiting)
        return Receiver(
            self.checked_to, waiting, self.missing, set(self.lost), self.watched
        )


class DeliveriesState(msgspec.Struct, array_like=True):
    """Packed form of `Deliveries`.

    Attributes:
        receivers: Receivers by participant index.
        undelivered: For each message that was ever lost to a participant, by order:
            the event time of the first frame that showed that a participant lacked
            it, and the clock when it was first found lost.
    """

    receivers: dict[int, PackedReceiver] = {}
    undelivered: dict[int, tuple[int, int]] = {}


class Deliveries:
    """Follows which participant received which message."""

    def __init__(
        self,
        settings: ObserverSettings,
        totals: ChannelTotals,
        participants: Participants,
        filters: Filters,
        health: Health,
        incidents: Incidents,
        messages: Mapping[int, Message],
        state: DeliveriesState,
    ) -> None:
        self._settings = settings
        self._totals = totals
        self._participants = participants
        self._filters = filters
        self._health = health
        self._incidents = incidents
        self._by_key = messages
        self._messages = {message.order: message for message in messages.values()}
        self._receivers = {
            by: packed.unpacked() for by, packed in state.receivers.items()
        }
        self._undelivered = state.undelivered

    def first_copy(self, message: Message) -> None:
        """Begin to follow a message whose first copy was seen."""
        self._messages[message.order] = message

    def first_copy_by(
        self,
        frame: SeenFrame,
        by: int,
        clock_ms: int,
        is_newest: bool,
        was_named_before: bool,
    ) -> None:
        """Judge what a participant has and lacks, by its first copy.

        Call this before `Participants.spoke` for the same frame: only a participant
        that was active before a message is expected to receive it.

        Args:
            frame: The first copy.
            by: Participant index or `UNKNOWN`.
            clock_ms: The channel's clock.
            is_newest: Whether the frame's filter is the participant's newest.
            was_named_before: Whether the frame was named before any tap saw it. It was
                then composed long before, and the participant may have received since
                what it lacks: no delivery becomes lost by it.
        """
        self._forget_old(clock_ms)
        if by == UNKNOWN:
            return
        receiver = self._receivers.get(by)
        if receiver is None:
            self._receivers[by] = Receiver(self._totals.messages)
            return
        self._await_new(receiver, by)
        if is_newest:
            self._detect_roll_over(receiver, by, frame)
        for one in frame.history:
            message = self._by_key.get(one.fingerprint)
            # Messages that are still named are remembered for longer than a horizon.
            if (
                message is not None
                and message.order in receiver.waiting
                and message.order in self._messages
            ):
                self._delivered(receiver, by, message, frame.time_ms, clock_ms)
        if frame.filter is not None:
            self._read_filter(
                receiver, by, frame, frame.filter, clock_ms, is_newest, was_named_before
            )

    def _read_filter(
        self,
        receiver: Receiver,
        by: int,
        frame: SeenFrame,
        filter_: Filter,
        clock_ms: int,
        is_newest: bool,
        was_named_before: bool,
    ) -> None:
        """Judge each waiting message by a filter; see `first_copy_by`."""
        for order in sorted(receiver.waiting):
            message = self._messages.get(order)
            if message is None:
                _end(receiver, order)
            elif message.dialect is not frame.dialect:
                # A filter of one dialect cannot be searched for ids of the other.
                continue
            elif filter_.contains(message.message_id):
                if is_newest:
                    receiver.watched[_WATCHED - 1 :] = [order]
                self._delivered(receiver, by, message, frame.time_ms, clock_ms)
            elif self._could_have(frame, by, message):
                receiver.missing.setdefault(order, frame.time_ms)
                if not was_named_before:
                    self._overdue(receiver, by, message, frame.time_ms, clock_ms)

    def lacking(self, message: Message) -> dict[str, int]:
        """Participants known to lack a message, and not known to have it since.

        Returns the event time of the first frame that showed this, by participant id.
        """
        return {
            self._participants.name(by): receiver.missing[message.order]
            for by, receiver in self._receivers.items()
            if message.order in receiver.missing
        }

    def orders_of_use(self) -> set[int]:
        """Orders of the messages whose ids may still be searched for in a filter.

        Leaves out a message that all active participants are known to have.
        """
        of_use: set[int] = set()
        new_from = self._totals.messages
        for by, receiver in self._receivers.items():
            of_use.update(receiver.waiting, receiver.watched)
            # The first message that is new to it, and all later ones.
            first = next(self._new_to(by, receiver), None)
            if first is not None:
                new_from = min(new_from, first.order)
        of_use.update(range(new_from, self._totals.messages))
        return of_use

    def forget(self, message: Message) -> None:
        """Forget a message."""
        self._messages.pop(message.order, None)
        self._undelivered.pop(message.order, None)

    def forget_silent_since(self, clock_ms: int) -> None:
        """Forget receivers that are silent, and waiting messages that are forgotten.

        Args:
            clock_ms: Event time, Unix ms. A participant whose latest first copy is
                before it is active for no message within the horizon.
        """
        for by, receiver in list(self._receivers.items()):
            if not self._participants.has_spoken_since(by, clock_ms):
                del self._receivers[by]
            else:
                forgotten = [
                    one for one in receiver.waiting if one not in self._messages
                ]
                for order in forgotten:
                    _end(receiver, order)

    def state(self) -> DeliveriesState:
        """The packed form."""
        return DeliveriesState(
            {by: PackedReceiver.of(one) for by, one in self._receivers.items()},
            self._undelivered,
        )

    def _await_new(self, receiver: Receiver, by: int) -> None:
        """Await the messages sent since the participant's latest first copy."""
        receiver.waiting.update(one.order for one in self._new_to(by, receiver))
        receiver.checked_to = self._totals.messages

    def _new_to(self, by: int, receiver: Receiver) -> Iterator[Message]:
        """Messages of others since a participant's latest first copy.

        Only those for which it is active: it is not expected to receive others.
        """
        after_ms, until_ms = self._participants.active_span(by)
        oldest = next(iter(self._messages), self._totals.messages)
        for order in range(max(receiver.checked_to, oldest), self._totals.messages):
            message = self._messages.get(order)
            if (
                message is not None
                and after_ms < message.t0_ms <= until_ms
                and message.sender != by
                and message.sender != UNKNOWN
            ):
                yield message

    def _detect_roll_over(self, receiver: Receiver, by: int, frame: SeenFrame) -> None:
        """Record a roll-over if ids that the participant's filter held are gone."""
        known = [self._messages.get(order) for order in receiver.watched]
        watched = [message for message in known if message is not None]
        receiver.watched = [message.order for message in watched]
        if self._filters.has_rolled(by, frame):
            receiver.watched = []
        elif frame.filter is not None and not all(
            frame.filter.contains(message.message_id) for message in watched
        ):
            receiver.watched = []
            self._filters.rolled(by, frame)

    def _could_have(self, frame: SeenFrame, by: int, message: Message) -> bool:
        """Whether a filter without the message proves that its owner lacked it."""
        rolled_ms = self._filters.rolled_ms(by)
        return (
            frame.kind is not FrameKind.EPHEMERAL
            and frame.lamport > message.lamport
            and frame.time_ms > message.t0_ms + self._settings.delivery_grace_ms
            and (rolled_ms is None or message.t0_ms >= rolled_ms)
        )

    def _delivered(
        self, receiver: Receiver, by: int, message: Message, time_ms: int, clock_ms: int
    ) -> None:
        """Count a delivery: the participant has the message.

        If the delivery counted as lost, the loss is retracted.
        """
        totals, order = self._totals, message.order
        was_lost = order in receiver.lost
        missing_ms = receiver.missing.get(order)
        _end(receiver, order)
        if was_lost:
            totals.deliveries_retracted += 1
            self._health.delivered(order, by)
            self._record_incident(message, clock_ms)
        elif missing_ms is None:
            totals.deliveries_first_pass += 1
        else:
            totals.deliveries_recovered += 1
            totals.delivery_recovery.observe(max(0, time_ms - missing_ms))
            self._health.recovered(clock_ms)

    def _overdue(
        self, receiver: Receiver, by: int, message: Message, time_ms: int, clock_ms: int
    ) -> None:
        """Count a lost delivery if the participant lacked it after its deadline."""
        order = message.order
        deadline_ms = message.t0_ms + self._settings.delivery_deadline_ms
        if time_ms > deadline_ms and order not in receiver.lost:
            receiver.lost.add(order)
            self._totals.deliveries_lost += 1
            self._health.undelivered(order, by, clock_ms)
            since_ms, found_ms = self._undelivered.get(order, (time_ms, clock_ms))
            since_ms = min(since_ms, receiver.missing[order])
            self._undelivered[order] = since_ms, found_ms
            self._record_incident(message, clock_ms)

    def _record_incident(self, message: Message, clock_ms: int) -> None:
        """Record the incident of a message that is, or was, lost to participants."""
        since_ms, found_ms = self._undelivered[message.order]
        lacking = {
            self._participants.name(by): receiver.missing[message.order]
            for by, receiver in self._receivers.items()
            if message.order in receiver.lost
        }
        self._incidents.record(
            Incident(
                IncidentKind.UNDELIVERED,
                message.message_id,
                self._participants.name(message.sender),
                since_ms=since_ms,
                found_ms=found_ms,
                ended_ms=None if lacking else clock_ms,
                lacking=lacking,
                waku_hash=message.waku_hash,
                hint=message.hint,
            )
        )

    def _forget_old(self, clock_ms: int) -> None:
        """Forget messages older than the horizon; they are in order of age."""
        horizon_ms = self._settings.horizon_ms
        while self._messages:
            order, message = next(iter(self._messages.items()))
            if clock_ms <= message.seen_ms + horizon_ms:
                return
            del self._messages[order]
            self._undelivered.pop(order, None)


def _end(receiver: Receiver, order: int) -> None:
    """Stop following the delivery of a message to a receiver."""
    receiver.waiting.discard(order)
    receiver.missing.pop(order, None)
    receiver.lost.discard(order)
