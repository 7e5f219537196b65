"""All that a node knows, and how the parts change together."""

from __future__ import annotations

from collections.abc import Iterable

from sds_core.mvds.changes import ChangeLog, Changes
from sds_core.mvds.events import Event, Forgotten, GaveUp
from sds_core.mvds.foreign import ForeignMessages
from sds_core.mvds.groups import Groups
from sds_core.mvds.message_store import MessageStore
from sds_core.mvds.options import Options
from sds_core.mvds.outbox import Outbox
from sds_core.mvds.records import Record, RecordTable, RecordType
from sds_core.mvds.resolver import Resolver


class NodeState:
    """The parts of a node.

    Args:
        options: Options of the node.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.epoch = 0
        self.log = ChangeLog()
        self.groups = Groups(self.log.mark_group)
        self.records = RecordTable(self.log.mark_record)
        self.store = MessageStore(options, self.log.mark_message)
        self.resolver = Resolver(options, self.store)
        self.outbox = Outbox(options)
        self.foreign = ForeignMessages(options.max_requests)
        # Refused messages whose group is shared now, to be requested, by peer.
        self.late: dict[bytes, list[bytes]] = {}

    def put(self, peer: bytes, message_id: bytes, kind: RecordType) -> None:
        """Send a record to a peer from the next epoch on, in place of any other."""
        self.records.put(Record(peer, message_id, kind, 0, self.epoch + 1))

    def request(self, peer: bytes, message_id: bytes) -> bool:
        """Have a message requested; returns False if too many are requested already."""
        if self.records.get(peer, message_id) is not None:
            return True
        if self.records.request_count(peer) >= self.options.max_requests:
            return False
        self.put(peer, message_id, RecordType.REQUEST)
        return True

    def share(self, group_id: bytes, peer: bytes) -> None:
        """Add a peer to a group, and request what was refused before."""
        self.groups.add_peer(group_id, peer)
        if taken := self.foreign.take(peer, group_id):
            self.late.setdefault(peer, []).extend(taken)
            self.request_late()

    def request_late(self) -> None:
        """Request what was refused before, as far as a peer may have more requests."""
        for peer, waiting in list(self.late.items()):
            while waiting and (
                waiting[0] in self.store or self.request(peer, waiting[0])
            ):
                del waiting[0]
            if not waiting:
                del self.late[peer]

    def give_up(self, record: Record, events: list[Event]) -> None:
        """Send a record no more."""
        self.records.remove(record.peer, record.message_id)
        events.append(GaveUp(record.message_id, record.peer, record.type))

    def drop_surplus(self, events: list[Event]) -> None:
        """Drop messages and ids beyond the limits, with their records."""
        while (oldest := self.store.surplus()) is not None:
            self.resolver.before_drop(oldest, events)
            for record in self.records.of_message(oldest):
                self.give_up(record, events)
            self.store.drop(oldest)
            events.append(Forgotten(oldest))
        self.store.forget_surplus_ids()

    def snapshot(self) -> Changes:
        """Return everything that is stored."""
        records = [(record.peer, record.message_id) for record in self.records]
        return self._values(self.groups, records, self.store)

    def take_changes(self) -> Changes | None:
        """Return what changed since the last call; None if nothing did."""
        keys = self.log.take()
        return None if keys is None else self._values(*keys)

    def load(self, state: Changes) -> None:
        """Fill a new node with what was stored.

        Limits that are lower than before are kept by the next `drop_surplus`.
        """
        self.epoch = state.epoch
        for group_id, peers in state.groups.items():
            self.groups.add(group_id)
            for peer in peers or ():
                self.groups.add_peer(group_id, peer)
        for message_id, stored in state.messages.items():
            if stored is not None:
                self.store.add(message_id, stored)
        self.resolver.restore()
        for record in state.records.values():
            if record is not None:
                self.records.put(record)

    def _values(
        self,
        groups: Iterable[bytes],
        records: Iterable[tuple[bytes, bytes]],
        messages: Iterable[bytes],
    ) -> Changes:
        return Changes(
            self.epoch,
            {group_id: self.groups.peers(group_id) for group_id in groups},
            {key: self.records.get(*key) for key in records},
            {message_id: self.store.get(message_id) for message_id in messages},
        )
