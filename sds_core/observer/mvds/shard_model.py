"""Concludes from observed payloads what happened to the messages of one shard of ids.

`ShardView` passes each payload to the model, and sets the model's clock. The result
does not depend on how payloads are divided into batches.
"""

from __future__ import annotations

from sds_core.native import native
from sds_core.observer.incidents import GroupIncident
from sds_core.observer.journal import Journal
from sds_core.observer.mvds import limits
from sds_core.observer.mvds.awaited import Awaited
from sds_core.observer.mvds.copies import Copies, Copy
from sds_core.observer.mvds.deliveries import Deliveries
from sds_core.observer.mvds.digest import SeenPayload, SeenPeer, SeenRecord
from sds_core.observer.mvds.exchanges import Exchanges
from sds_core.observer.mvds.groups import Groups
from sds_core.observer.mvds.ledger import Ledger
from sds_core.observer.mvds.limits import LeftOut
from sds_core.observer.mvds.messages import (
    NO_DEADLINE,
    NO_PLACE,
    Message,
    MessageTable,
    Pair,
)
from sds_core.observer.mvds.peers import Peers
from sds_core.observer.mvds.shard_state import ShardState
from sds_core.observer.mvds.split import RecordType
from sds_core.observer.mvds.totals import UNKNOWN_GROUP
from sds_core.observer.rule_settings import RuleSettings, rule_settings
from sds_core.observer.settings import ObserverSettings

_SWEEP_MS = 60_000
"""Time between two sweeps, ms. A sweep drops old messages, copies and peers."""

_RECORDS, _BYTES, _RETRANSMISSIONS = (
    tuple(f"{counted}_{type_.name.lower()}" for type_ in RecordType)
    for counted in ("records", "bytes", "retransmissions")
)


@native
class ShardModel:
    """Tracks messages, deliveries, offers and requests of one shard of ids."""

    _settings: RuleSettings
    _groups: Groups
    _state: ShardState
    _messages: MessageTable
    # Total number of peers and pairs of all messages.
    _links: int
    # Queue of deadlines. The model queues each new deadline immediately. It queues a
    # deadline of the loaded state only if the deadline is before `_queued_to_ms`,
    # because only a few of these deadlines pass in a batch.
    _awaited: Awaited
    _queued_to_ms: int
    _copies: Copies
    _peers: Peers
    _ledger: Ledger
    _deliveries: Deliveries
    _exchanges: Exchanges
    _journal: Journal | None

    def __init__(
        self,
        settings: ObserverSettings,
        groups: Groups,
        state: ShardState,
        journal: Journal | None,
    ) -> None:
        rule = rule_settings(settings)
        awaited = Awaited()
        self._settings = rule
        self._groups = groups
        self._state = state
        self._journal = journal
        self._messages = MessageTable(state.messages)
        self._links = self._messages.links()
        self._awaited = awaited
        self._queued_to_ms = NO_DEADLINE
        self._copies = Copies(rule, state.copies)
        self._peers = Peers(rule, state.peers)
        self._ledger = Ledger(groups)
        self._deliveries = Deliveries(rule, self._ledger, self._peers, awaited, journal)
        self._exchanges = Exchanges(rule, self._ledger, awaited, journal)

    def pack(self) -> ShardState:
        """Return the state with all changes since it was loaded."""
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
        """Earliest deadline of all messages, Unix ms; None if no deadline exists."""
        return self._messages.next_deadline_ms()

    def pass_to(self, clock_ms: int) -> None:
        """Process deadlines and sweeps up to a later time, and set the clock to it."""
        state = self._state
        before_ms: int = state.clock_ms
        sweep_ms: int = before_ms - before_ms % _SWEEP_MS + _SWEEP_MS
        last_ms: int = clock_ms - clock_ms % _SWEEP_MS
        while sweep_ms <= last_ms:
            if not len(self._messages):
                # If no message is remembered, a sweep only drops old copies and peers.
                # The last sweep drops all that the skipped sweeps would drop.
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
        """Process a payload: a duplicate is ignored, and a replica is only counted."""
        clock_ms = self._state.clock_ms
        copy: Copy = self._copies.classify(payload, clock_ms)
        if self._journal is not None:
            self._journal.copy = copy
        if copy is Copy.FIRST:
            self._follow(payload, clock_ms)
        elif copy is Copy.REPLICA:
            self._replica(payload, clock_ms)
        self._count_evicted()

    def _replica(self, payload: SeenPayload, clock_ms: int) -> None:
        if payload.is_counted:
            self._groups[UNKNOWN_GROUP].replicas += 1
            self._groups.saw_by(UNKNOWN_GROUP, clock_ms, payload.observer)
        record: SeenRecord
        for record in payload.records:
            message: Message | None = self._messages.get(record.key)
            if message is not None and message.group:
                self._groups.saw_by(message.group, clock_ms, payload.observer)

    def _follow(self, payload: SeenPayload, clock_ms: int) -> None:
        if payload.is_counted:
            self._groups.saw(UNKNOWN_GROUP, payload.time_ms, clock_ms, payload.observer)
            totals = self._groups[UNKNOWN_GROUP]
            totals.payloads += 1
            totals.payloads_empty += int(payload.is_empty)
            totals.bytes_other += payload.other_bytes
            if payload.left_out:
                self._groups.leave_out(LeftOut.RECORD, payload.left_out)
        # What was said earlier about the ids of an old payload may be forgotten, so the
        # payload shows neither what a peer lacks nor whether a message is new.
        is_old: bool = payload.time_ms < clock_ms - self._settings.horizon_ms
        if self._journal is not None:
            self._journal.is_old = is_old
        record: SeenRecord
        for record in payload.records:
            if is_old:
                self._count_old(record, payload, clock_ms)
            else:
                self._follow_record(record, payload, clock_ms)
        self._evict(clock_ms)

    def _count_old(
        self, record: SeenRecord, payload: SeenPayload, clock_ms: int
    ) -> None:
        message: Message | None = self._messages.get(record.key)
        if message is None:
            # This message is not remembered. It only carries the counts to the group.
            message = Message.new(
                record.key, record.message_id, payload.time_ms, clock_ms
            )
            is_message: bool = record.type is RecordType.MESSAGE
            message.group = (
                self._groups.admit(record.group) if is_message else UNKNOWN_GROUP
            )
        if message.group:
            self._groups.saw(message.group, payload.time_ms, clock_ms, payload.observer)
        self._count_record(message, record)

    def _follow_record(
        self, record: SeenRecord, payload: SeenPayload, clock_ms: int
    ) -> None:
        message: Message | None = self._messages.get(record.key)
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
        self._count_record(message, record)
        links: int = message.links()
        self._follow_peers(message, record, payload, clock_ms)
        self._links += message.links() - links

    def _count_record(self, message: Message, record: SeenRecord) -> None:
        self._ledger.count(message, _RECORDS[record.type], record.times)
        self._ledger.count(message, _BYTES[record.type], record.size)

    def _learn_group(self, message: Message, record: SeenRecord, clock_ms: int) -> None:
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
        sender = message.place(payload.sender)
        receiver = message.place(payload.receiver)
        if NO_PLACE in (sender, receiver):
            self._groups.leave_out(LeftOut.PEER)
            return
        by, to = message.peers[sender], message.peers[receiver]
        pair = message.pair(sender, receiver)
        if pair is None:
            self._groups.leave_out(LeftOut.PAIR)
        else:
            again: int = record.times - 1 + _has_sent(pair, record.type)
            self._ledger.count(message, _RETRANSMISSIONS[record.type], again)
        if record.type is RecordType.ACK:
            if pair is not None and not pair.acked:
                pair.acked = True
                back = message.known_pair(receiver, sender)
                self._deliveries.answered(message, back, payload)
            self._deliveries.acknowledged(message, by, payload, clock_ms)
            by.holds = True
        elif record.type is RecordType.OFFER:
            if to.holds:
                self._ledger.count(message, "needless_offers", record.times)
            if pair is not None and not pair.offered:
                pair.offered = True
                self._exchanges.offered(message, pair, clock_ms)
            by.holds = True
        elif record.type is RecordType.REQUEST:
            if pair is not None and not pair.requested:
                pair.requested = True
                self._exchanges.requested(message, pair, clock_ms)
        elif record.type is RecordType.MESSAGE:
            if pair is not None and pair.sent_ms is None:
                pair.sent_ms = payload.time_ms
            names = self._peers
            names.remember_name(payload.sender, payload.sender_name, clock_ms)
            names.remember_name(payload.receiver, payload.receiver_name, clock_ms)
            self._deliveries.sent(message, to, record, payload, clock_ms)
            by.holds = True

    def _fire(self, clock_ms: int) -> None:
        if clock_ms > self._queued_to_ms:
            to_ms: int = clock_ms + _SWEEP_MS
            for deadline_ms, key in self._messages.deadlines(self._queued_to_ms, to_ms):
                self._awaited.add(deadline_ms, key)
            self._queued_to_ms = to_ms
        while (passed := self._awaited.take(clock_ms)) is not None:
            deadline_ms, key = passed
            message: Message | None = self._messages.get(key)
            if message is None:
                continue
            self._deliveries.passed(message, deadline_ms)
            self._exchanges.passed(message, deadline_ms)
            due_ms: int = message.due_ms()
            if due_ms:
                self._awaited.add(due_ms, key)

    def _evict(self, clock_ms: int) -> None:
        limit = self._settings.remembered
        while len(self._messages) > limit or self._links > limits.MOST_LINKS:
            self._forget(self._messages.first(), clock_ms)
            self._groups[UNKNOWN_GROUP].remembered_evicted += 1

    def _forget(self, key: int, clock_ms: int) -> None:
        message: Message | None = self._messages.pop(key)
        self._awaited.forget(key)
        if message is not None:
            self._links -= message.links()
            self._deliveries.forget(message, clock_ms)
            self._ledger.forget(message, clock_ms)

    def _sweep(self, sweep_ms: int) -> None:
        settings = self._settings
        edge_ms: int = sweep_ms - settings.horizon_ms
        for key in self._messages.silent_since(edge_ms):
            self._forget(key, sweep_ms)
        self._copies.forget_old(sweep_ms)
        self._peers.forget_before(sweep_ms - settings.ack_deadline_ms, edge_ms)

    def _count_evicted(self) -> None:
        evicted = self._copies.evicted + self._peers.evicted
        if evicted:
            self._groups[UNKNOWN_GROUP].remembered_evicted += evicted
            self._copies.evicted = self._peers.evicted = 0


@native
def _has_sent(pair: Pair, type_: RecordType) -> bool:
    if type_ is RecordType.ACK:
        return pair.acked
    if type_ is RecordType.OFFER:
        return pair.offered
    if type_ is RecordType.REQUEST:
        return pair.requested
    return pair.sent_ms is not None
