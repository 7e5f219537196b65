"""What a passive observer concludes from the payloads of one shard of message ids.

The model follows each payload, and each deadline that the clock passes. It knows
nothing of batches: `ShardView` calls it.
"""

from __future__ import annotations

import heapq

from sds_core.observer.incidents import GroupIncident
from sds_core.observer.mvds.copies import Copies, Copy
from sds_core.observer.mvds.deliveries import Deliveries
from sds_core.observer.mvds.digest import SeenPayload, SeenPeer, SeenRecord
from sds_core.observer.mvds.exchanges import Exchanges
from sds_core.observer.mvds.groups import Groups
from sds_core.observer.mvds.ledger import Ledger
from sds_core.observer.mvds.limits import MOST_LINKS, LeftOut
from sds_core.observer.mvds.messages import (
    NO_DEADLINE,
    Message,
    MessageTable,
    Pair,
)
from sds_core.observer.mvds.peers import Peers
from sds_core.observer.mvds.shard_state import ShardState
from sds_core.observer.mvds.split import RecordType
from sds_core.observer.mvds.totals import UNKNOWN_GROUP
from sds_core.observer.settings import ObserverSettings

_SWEEP_MS = 60_000
"""Time between sweeps: what is old is forgotten up to this much later."""

_NAMES = {type_: type_.name.lower() for type_ in RecordType}
"""Last part of the names of the fields that count records."""


class ShardModel:
    """Messages, deliveries, offers and requests of one shard of ids.

    Args:
        settings: Deadlines and limits.
        groups: The figures.
        state: The model's state, which the model keeps changing; `pack` completes it.
    """

    def __init__(
        self, settings: ObserverSettings, groups: Groups, state: ShardState
    ) -> None:
        self._settings = settings
        self._groups = groups
        self._state = state
        self._messages = messages = MessageTable(state.messages)
        self._links = messages.links()
        # The next deadline of each message that awaits something and was touched, and
        # of others if it is before `_queued_to_ms`: a batch passes few of thousands.
        # What it is for may have happened when it fires. Of several in the heap the
        # earliest counts.
        self._deadlines: list[tuple[int, int]] = []
        self._due: dict[int, int] = {}
        self._queued_to_ms = NO_DEADLINE
        self._copies = Copies(settings, state.copies)
        self._peers = Peers(settings, state.peers)
        self._ledger = Ledger(groups)
        self._deliveries = Deliveries(settings, self._ledger, self._peers, self._await)
        self._exchanges = Exchanges(settings, self._ledger, self._await)

    def pack(self) -> ShardState:
        """The state, with what changed since it was made."""
        state = self._state
        state.copies = self._copies.state()
        state.peers = self._peers.state()
        state.messages = self._messages.packed()
        return state

    def drain(self) -> list[GroupIncident]:
        """Return the incidents that began or changed since the last call."""
        return self._deliveries.drain()

    @property
    def next_deadline_ms(self) -> int | None:
        """The next deadline, Unix ms; None if nothing is awaited."""
        return self._messages.next_deadline_ms()

    def pass_to(self, clock_ms: int) -> None:
        """Move the clock forward; fire each deadline that it passes."""
        state = self._state
        sweep_ms = state.clock_ms - state.clock_ms % _SWEEP_MS + _SWEEP_MS
        last_ms = clock_ms - clock_ms % _SWEEP_MS
        while sweep_ms <= last_ms:
            if not len(self._messages):
                # Only ages count from here on, and the last sweep sees them all.
                sweep_ms = last_ms
            self._fire(sweep_ms)
            self._sweep(sweep_ms)
            sweep_ms += _SWEEP_MS
        self._fire(clock_ms)
        state.clock_ms = clock_ms

    def heard(self, seen: SeenPeer) -> None:
        """Record that a peer sent a payload."""
        self._state.heard_ms = self._state.clock_ms
        self._peers.heard(seen.peer, seen.clock_ms)
        self._count_evicted()

    def apply(self, payload: SeenPayload) -> None:
        """Ignore a duplicate, count a replica, follow the records of another one."""
        clock_ms = self._state.clock_ms
        copy = self._copies.classify(payload, clock_ms)
        if copy is Copy.FIRST:
            self._follow(payload, clock_ms)
        elif copy is Copy.REPLICA:
            self._replica(payload, clock_ms)
        self._count_evicted()

    def _replica(self, payload: SeenPayload, clock_ms: int) -> None:
        """Count a copy by another tap, which shows the same groups."""
        if payload.is_counted:
            self._groups[UNKNOWN_GROUP].replicas += 1
            self._groups.saw_by(UNKNOWN_GROUP, clock_ms, payload.observer)
        for record in payload.records:
            message = self._messages.get(record.key)
            if message is not None and message.group:
                self._groups.saw_by(message.group, clock_ms, payload.observer)

    def _follow(self, payload: SeenPayload, clock_ms: int) -> None:
        """Follow a payload that is no copy."""
        if payload.is_counted:
            self._groups.saw(UNKNOWN_GROUP, payload.time_ms, clock_ms, payload.observer)
            totals = self._groups[UNKNOWN_GROUP]
            totals.payloads += 1
            totals.payloads_empty += payload.is_empty
            totals.bytes_other += payload.other_bytes
            if payload.left_out:
                self._groups.leave_out(LeftOut.RECORD, payload.left_out)
        for record in payload.records:
            self._follow_record(record, payload, clock_ms)
        self._evict(clock_ms)

    def _follow_record(
        self, record: SeenRecord, payload: SeenPayload, clock_ms: int
    ) -> None:
        message = self._messages.get(record.key)
        if message is None:
            message = Message.new(
                record.key, record.message_id, payload.time_ms, clock_ms
            )
            self._messages[record.key] = message
        message.latest_ms = clock_ms
        if record.type is RecordType.MESSAGE:
            self._learn_group(message, record, clock_ms)
        if message.group:
            self._groups.saw(message.group, payload.time_ms, clock_ms, payload.observer)
        name = _NAMES[record.type]
        self._ledger.count(message, f"records_{name}", record.times)
        self._ledger.count(message, f"bytes_{name}", record.size)
        links = message.links
        self._follow_peers(message, record, payload, clock_ms)
        self._links += message.links - links

    def _learn_group(self, message: Message, record: SeenRecord, clock_ms: int) -> None:
        """Take notice of a MESSAGE, which names the group."""
        if not message.group:
            group = self._groups.admit(record.group)
            self._groups.saw(group, message.first_ms, clock_ms, "")
            self._ledger.settle(message, group)
            self._ledger.count(message, "messages")
        self._groups[message.group].window.message_ms = clock_ms

    def _follow_peers(
        self,
        message: Message,
        record: SeenRecord,
        payload: SeenPayload,
        clock_ms: int,
    ) -> None:
        """Follow what a record says of its sender and receiver."""
        sender = message.place(payload.sender)
        receiver = message.place(payload.receiver)
        if sender is None or receiver is None:
            self._groups.leave_out(LeftOut.PEER)
            return
        by, to = message.peers[sender], message.peers[receiver]
        pair = message.pair(sender, receiver)
        if pair is None:
            self._groups.leave_out(LeftOut.PAIR)
        else:
            again = record.times - 1 + _has_sent(pair, record.type)
            name = _NAMES[record.type]
            self._ledger.count(message, f"retransmissions_{name}", again)
        match record.type:
            case RecordType.ACK:
                if pair is not None and not pair.acked:
                    pair.acked = True
                    back = message.known_pair(receiver, sender)
                    self._deliveries.answered(message, back, payload)
                self._deliveries.acknowledged(message, by, payload, clock_ms)
                by.holds = True
            case RecordType.OFFER:
                if to.holds:
                    self._ledger.count(message, "needless_offers", record.times)
                if pair is not None and not pair.offered:
                    pair.offered = True
                    self._exchanges.offered(message, pair, clock_ms)
                by.holds = True
            case RecordType.REQUEST:
                if pair is not None and not pair.requested:
                    pair.requested = True
                    self._exchanges.requested(message, pair, clock_ms)
            case RecordType.MESSAGE:
                if pair is not None and pair.sent_ms is None:
                    pair.sent_ms = payload.time_ms
                names = self._peers
                names.remember_name(payload.sender, payload.sender_name, clock_ms)
                names.remember_name(payload.receiver, payload.receiver_name, clock_ms)
                self._deliveries.sent(message, to, record, payload, clock_ms)
                by.holds = True

    def _await(self, deadline_ms: int, key: int) -> None:
        known_ms = self._due.get(key)
        if known_ms is None or deadline_ms < known_ms:
            self._due[key] = deadline_ms
            heapq.heappush(self._deadlines, (deadline_ms, key))

    def _fire(self, clock_ms: int) -> None:
        """Handle the deadlines before the clock; one at it has not passed."""
        if clock_ms > self._queued_to_ms:
            to_ms = clock_ms + _SWEEP_MS
            for deadline_ms, key in self._messages.deadlines(self._queued_to_ms, to_ms):
                self._await(deadline_ms, key)
            self._queued_to_ms = to_ms
        while self._deadlines and self._deadlines[0][0] < clock_ms:
            deadline_ms, key = heapq.heappop(self._deadlines)
            if self._due.get(key) != deadline_ms:
                continue
            del self._due[key]
            message = self._messages.get(key)
            if message is None:
                continue
            self._deliveries.passed(message, deadline_ms)
            self._exchanges.passed(message, deadline_ms)
            if message.due_ms:
                self._await(message.due_ms, key)

    def _evict(self, clock_ms: int) -> None:
        """Forget the oldest ids beyond the limits, right after the payload."""
        limit = self._settings.remembered
        while len(self._messages) > limit or self._links > MOST_LINKS:
            self._forget(self._messages.first(), clock_ms)
            self._groups[UNKNOWN_GROUP].remembered_evicted += 1

    def _forget(self, key: int, clock_ms: int) -> None:
        message = self._messages.pop(key)
        self._due.pop(key, None)
        if message is not None:
            self._links -= message.links
            self._deliveries.forget(message, clock_ms)
            self._ledger.forget(message, clock_ms)

    def _sweep(self, sweep_ms: int) -> None:
        """Forget what is old; by the clock alone, whatever the batches are."""
        settings = self._settings
        edge_ms = sweep_ms - settings.horizon_ms
        for key in self._messages.silent_since(edge_ms):
            self._forget(key, sweep_ms)
        self._copies.forget_old(sweep_ms)
        self._peers.forget_before(sweep_ms - settings.ack_deadline_ms, edge_ms)

    def _count_evicted(self) -> None:
        evicted = self._copies.evicted + self._peers.evicted
        if evicted:
            self._groups[UNKNOWN_GROUP].remembered_evicted += evicted
            self._copies.evicted = self._peers.evicted = 0


def _has_sent(pair: Pair, type_: RecordType) -> bool:
    """Whether the sender of a pair has sent a record of this type before."""
    match type_:
        case RecordType.ACK:
            return pair.acked
        case RecordType.OFFER:
            return pair.offered
        case RecordType.REQUEST:
            return pair.requested
        case RecordType.MESSAGE:
            return pair.sent_ms is not None
