"""Delivery of each message to each participant (observer model, section 5).

A bloom filter has no false negatives: a frame that its sender made after it could have
had a message, and whose filter lacks it, shows that the sender lacked it. A pair of
message and participant is judged at the participant's own frames and by no timer, so
nothing is kept for a pair until its participant speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from sds_core.observer.columns import pack_set, unpack_set
from sds_core.observer.incidents import Incident, IncidentKind, Incidents
from sds_core.observer.sds.digest import Filter, SeenFrame
from sds_core.observer.sds.filters import Filters
from sds_core.observer.sds.health import Health
from sds_core.observer.sds.messages import Message
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import FrameKind

_WATCHED = 4
"""Ids by which a roll-over shows that leaves more bits set than there were: the first
three that were in, which go first when a filter drops its oldest, and the newest, which
goes when a participant comes back with an old state."""


class Receiver(msgspec.Struct):
    """What one participant's frames have shown of what it received.

    Messages are named by their order.

    Attributes:
        looked_to: Messages from this one on were not there at its latest first copy.
        waiting: Earlier ones that it has neither shown to have nor lost for good.
        missing: Of those, the ones that it was shown to lack, and since when (event
            time).
        lost: Of those, the ones that count as lost to it.
        watched: Some that were in its newest filter, see `_WATCHED`.
    """

    looked_to: int = 0
    waiting: set[int] = set()
    missing: dict[int, int] = {}
    lost: set[int] = set()
    watched: list[int] = []


class PackedReceiver(msgspec.Struct, array_like=True):
    """Packed form of a `Receiver`.

    Attributes:
        looked_to, missing, lost, watched: As there.
        first: Least order of the messages it waits for.
        waiting: Which it waits for, as a bitmap from `first` on.
    """

    looked_to: int
    first: int
    waiting: bytes
    missing: dict[int, int]
    lost: list[int]
    watched: list[int]

    @classmethod
    def of(cls, receiver: Receiver) -> PackedReceiver:
        """Pack a receiver."""
        return cls(
            receiver.looked_to,
            *pack_set(receiver.waiting),
            receiver.missing,
            sorted(receiver.lost),
            receiver.watched,
        )

    def unpacked(self) -> Receiver:
        """The receiver."""
        waiting = unpack_set(self.first, self.waiting)
        return Receiver(
            self.looked_to, waiting, self.missing, set(self.lost), self.watched
        )


class DeliveriesState(msgspec.Struct, array_like=True):
    """Packed form of `Deliveries`.

    Attributes:
        receivers: By participant index.
        undelivered: Of each message, by its order, that was ever lost to somebody:
            when somebody was first shown to lack it (event time), and the clock when
            it was first found lost.
    """

    receivers: dict[int, PackedReceiver] = {}
    undelivered: dict[int, tuple[int, int]] = {}


class Deliveries:
    """Follows who received what."""

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
        """A message was seen for the first time."""
        self._messages[message.order] = message

    def first_copy_by(
        self,
        frame: SeenFrame,
        by: int,
        clock_ms: int,
        is_newest: bool,
        was_named_before: bool,
    ) -> None:
        """A participant's first copy shows what it has and what it lacks.

        To be called before the participant counts as having spoken with this frame:
        it must have been active before a message to be waited for.

        Args:
            frame: The first copy.
            by: The participant.
            clock_ms: The channel's clock.
            is_newest: Whether its filter is the participant's newest.
            was_named_before: Whether it was named before any tap saw it, and so was
                composed long before: what it lacks may have come since.
        """
        self._forget_old(clock_ms)
        if by == UNKNOWN:
            return
        receiver = self._receivers.get(by)
        if receiver is None:
            self._receivers[by] = Receiver(self._totals.messages)
            return
        self._look_at_new(receiver, by)
        if is_newest:
            self._watch_for_roll_over(receiver, by, frame)
        for one in frame.history:
            message = self._by_key.get(one.fingerprint)
            # Named messages are remembered for longer than they are looked for.
            if (
                message is not None
                and message.order in receiver.waiting
                and message.order in self._messages
            ):
                self._shown(receiver, by, message, frame.time_ms, clock_ms)
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
        for order in sorted(receiver.waiting):
            message = self._messages.get(order)
            if message is None:
                _end(receiver, order)
            elif message.dialect is not frame.dialect:
                # Their filters are noise to each other.
                continue
            elif filter_.contains(message.message_id):
                if is_newest:
                    receiver.watched[_WATCHED - 1 :] = [order]
                self._shown(receiver, by, message, frame.time_ms, clock_ms)
            elif self._could_have(frame, by, message):
                receiver.missing.setdefault(order, frame.time_ms)
                if not was_named_before:
                    self._overdue(receiver, by, message, frame.time_ms, clock_ms)

    def lacking(self, message: Message) -> dict[str, int]:
        """Who was shown to lack a message and not to have it since, and since when."""
        return {
            self._participants.name(by): receiver.missing[message.order]
            for by, receiver in self._receivers.items()
            if message.order in receiver.missing
        }

    def ids_of_use(self) -> set[int]:
        """Orders of the messages whose ids may still be looked for in a filter.

        A message that everybody has shown who was active is not among them.
        """
        of_use: set[int] = set()
        new_from = self._totals.messages
        for by, receiver in self._receivers.items():
            of_use.update(receiver.waiting, receiver.watched)
            # The first that it may be new to; whatever follows is kept with it.
            first = next(self._new_to(by, receiver), None)
            if first is not None:
                new_from = min(new_from, first.order)
        of_use.update(range(new_from, self._totals.messages))
        return of_use

    def forget(self, message: Message) -> None:
        """A message is no longer remembered."""
        self._messages.pop(message.order, None)
        self._undelivered.pop(message.order, None)

    def forget_silent_since(self, clock_ms: int) -> None:
        """Forget whom and what nothing is expected of any more.

        Args:
            clock_ms: Before which the latest word of a participant lies so far back
                that it is not active for any message that is still looked for.
        """
        for by, receiver in list(self._receivers.items()):
            if not self._participants.has_spoken_since(by, clock_ms):
                del self._receivers[by]
            else:
                gone = [one for one in receiver.waiting if one not in self._messages]
                for order in gone:
                    _end(receiver, order)

    def state(self) -> DeliveriesState:
        """Packed form for the blob."""
        return DeliveriesState(
            {by: PackedReceiver.of(one) for by, one in self._receivers.items()},
            self._undelivered,
        )

    def _look_at_new(self, receiver: Receiver, by: int) -> None:
        """Wait for what others have sent since the participant's latest first copy."""
        receiver.waiting.update(one.order for one in self._new_to(by, receiver))
        receiver.looked_to = self._totals.messages

    def _new_to(self, by: int, receiver: Receiver) -> Iterator[Message]:
        """What others have sent since a participant's latest first copy, being active.

        Without activity nothing is expected of it (observer model, section 5).
        """
        after_ms, until_ms = self._participants.active_span(by)
        oldest = next(iter(self._messages), self._totals.messages)
        for order in range(max(receiver.looked_to, oldest), self._totals.messages):
            message = self._messages.get(order)
            if (
                message is not None
                and after_ms < message.t0_ms <= until_ms
                and message.sender != by
                and message.sender != UNKNOWN
            ):
                yield message

    def _watch_for_roll_over(
        self, receiver: Receiver, by: int, frame: SeenFrame
    ) -> None:
        """Whether ids that were in the participant's filter still are."""
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
        """Whether a filter without the message shows that its owner lacked it."""
        rolled_ms = self._filters.rolled_ms(by)
        return (
            frame.kind is not FrameKind.EPHEMERAL
            and frame.lamport > message.lamport
            and frame.time_ms > message.t0_ms + self._settings.delivery_grace_ms
            and (rolled_ms is None or message.t0_ms >= rolled_ms)
        )

    def _shown(
        self, receiver: Receiver, by: int, message: Message, time_ms: int, clock_ms: int
    ) -> None:
        """The participant has the message: the pair ends, unless it was lost."""
        totals, order = self._totals, message.order
        was_lost = order in receiver.lost
        missing_ms = receiver.missing.get(order)
        _end(receiver, order)
        if was_lost:
            totals.deliveries_retracted += 1
            self._health.delivered(order, by)
            self._tell(message, clock_ms)
        elif missing_ms is None:
            totals.deliveries_first_pass += 1
        else:
            totals.deliveries_recovered += 1
            totals.delivery_recovery.observe(max(0, time_ms - missing_ms))
            self._health.recovered(clock_ms)

    def _overdue(
        self, receiver: Receiver, by: int, message: Message, time_ms: int, clock_ms: int
    ) -> None:
        """The participant lacked the message: a loss if that is after its deadline."""
        order = message.order
        deadline_ms = message.t0_ms + self._settings.delivery_deadline_ms
        if time_ms > deadline_ms and order not in receiver.lost:
            receiver.lost.add(order)
            self._totals.deliveries_lost += 1
            self._health.undelivered(order, by, clock_ms)
            since_ms, found_ms = self._undelivered.get(order, (time_ms, clock_ms))
            since_ms = min(since_ms, receiver.missing[order])
            self._undelivered[order] = since_ms, found_ms
            self._tell(message, clock_ms)

    def _tell(self, message: Message, clock_ms: int) -> None:
        """Tell the incident of a message that is lost to somebody, or was."""
        since_ms, found_ms = self._undelivered[message.order]
        lacking = {
            self._participants.name(by): receiver.missing[message.order]
            for by, receiver in self._receivers.items()
            if message.order in receiver.lost
        }
        self._incidents.tell(
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
        """Forget messages that are no longer looked for; they lie in order of age."""
        horizon_ms = self._settings.horizon_ms
        while self._messages:
            order, message = next(iter(self._messages.items()))
            if clock_ms <= message.seen_ms + horizon_ms:
                return
            del self._messages[order]
            self._undelivered.pop(order, None)


def _end(receiver: Receiver, order: int) -> None:
    receiver.waiting.discard(order)
    receiver.missing.pop(order, None)
    receiver.lost.discard(order)
