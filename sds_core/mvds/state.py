"""The state of a node, with methods that change several parts of the state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256

from sds_core.mvds.changes import ChangeLog, Changes
from sds_core.mvds.events import Event, Forgotten, GaveUp
from sds_core.mvds.message_store import MessageStore
from sds_core.mvds.options import Options, Resolution
from sds_core.mvds.packing import Outbox
from sds_core.mvds.parents import parents_of
from sds_core.mvds.records import Record, RecordTable, RecordType
from sds_core.mvds.resolver import Resolver


class Groups:
    """A node's groups and their peers.

    If a group changes, `mark` is called with the id of the group.
    """

    def __init__(self, mark: Callable[[bytes], None]) -> None:
        # Inner dictionaries are used as ordered sets.
        self._peers: dict[bytes, dict[bytes, None]] = {}
        self._shared: Counter[bytes] = Counter()
        self._mark = mark

    def __contains__(self, group_id: bytes) -> bool:
        """Return whether the node is in a group."""
        return group_id in self._peers

    def __iter__(self) -> Iterator[bytes]:
        """Yield the ids of all groups."""
        return iter(self._peers)

    def peers(self, group_id: bytes) -> tuple[bytes, ...]:
        """Return the peers of a group in the order in which they were added."""
        return tuple(self._peers.get(group_id, ()))

    def has_peer(self, peer: bytes) -> bool:
        """Return whether a peer is in any group."""
        return peer in self._shared

    def shares(self, peer: bytes, group_id: bytes) -> bool:
        """Return whether a peer is in a given group of this node."""
        return peer in self._peers.get(group_id, ())

    def add(self, group_id: bytes) -> None:
        """Add a group; no effect if the group is known."""
        if group_id not in self._peers:
            self._peers[group_id] = {}
            self._mark(group_id)

    def add_peer(self, group_id: bytes, peer: bytes) -> None:
        """Add a peer to a known group; no effect if the group has this peer."""
        peers = self._peers[group_id]
        if peer not in peers:
            peers[peer] = None
            self._shared[peer] += 1
            self._mark(group_id)

    def remove_peer(self, group_id: bytes, peer: bytes) -> None:
        """Remove a peer from a group; no effect if the group lacks this peer."""
        peers = self._peers.get(group_id, {})
        if peer in peers:
            del peers[peer]
            self._shared[peer] -= 1
            if not self._shared[peer]:
                del self._shared[peer]
            self._mark(group_id)


class ForeignMessages:
    """Ids of messages that were refused because the sender is not in the group.

    If the sender is added to the group later, the node requests the messages. The ids
    are not part of the stored state. At most `most` ids per peer are kept; the oldest
    id is dropped first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # For each peer, the hash of the group id, by message id. Only the hash is kept,
        # because the id of an unknown group may have any length.
        self._groups: dict[bytes, dict[bytes, bytes]] = {}

    def add(self, peer: bytes, group_id: bytes, message_id: bytes) -> None:
        """Store the id of a refused message that a peer sent."""
        groups = self._groups.setdefault(peer, {})
        groups[message_id] = sha256(group_id).digest()
        if len(groups) > self._most:
            del groups[next(iter(groups))]

    def take(self, peer: bytes, group_id: bytes) -> list[bytes]:
        """Return and drop the ids of a peer's refused messages in one group."""
        groups = self._groups.get(peer, {})
        wanted = sha256(group_id).digest()
        taken = [one for one, group in groups.items() if group == wanted]
        for one in taken:
            del groups[one]
        return taken

    def remove(self, peer: bytes) -> None:
        """Drop all ids of a peer."""
        self._groups.pop(peer, None)


class NodeState:
    """The parts of a node's state, and the node's outbox."""

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
        # For each peer, ids of messages that the node still has to request. The node
        # refused these messages before the peer was added to the messages' group.
        self.late: dict[bytes, list[bytes]] = {}
        # For each peer, parents that the node still has to request, by the id of the
        # stored message that names them.
        self.late_parents: dict[bytes, dict[bytes, list[bytes]]] = {}

    def put(self, peer: bytes, message_id: bytes, kind: RecordType) -> None:
        """Add or replace a peer's record for a message; it is due in the next epoch."""
        self.records.put(Record(peer, message_id, kind, 0, self.epoch + 1))

    def request(
        self, peer: bytes, message_id: bytes, *, is_offered: bool = True
    ) -> bool:
        """Request a message; return False if the peer has too many requests already.

        For `is_offered`, see `Record`.
        """
        record = self.records.get(peer, message_id)
        if record is None:
            if self.records.request_count(peer) >= self.options.max_requests:
                return False
            kind, due = RecordType.REQUEST, self.epoch + 1
            self.records.put(Record(peer, message_id, kind, 0, due, is_offered))
        elif is_offered and not record.is_offered:
            self.records.put(replace(record, is_offered=True))
        return True

    def share(self, group_id: bytes, peer: bytes) -> None:
        """Add a peer to a group.

        The node now requests messages that it refused earlier because the peer was not
        in this group.
        """
        self.groups.add_peer(group_id, peer)
        if taken := self.foreign.take(peer, group_id):
            self.late.setdefault(peer, []).extend(taken)
            self.request_late()

    def request_parents(self, peer: bytes, child: bytes) -> None:
        """Request a message's missing parents from a peer that sent the message.

        Without resolution, parents are not requested. If the peer has too many requests
        already, `request_late` requests the parents later, because the peer does not
        resend an acknowledged message.
        """
        self._add_late_parents(peer, child)
        self.request_late()

    def request_waiting(self) -> None:
        """Request the missing parents of waiting messages.

        They are requested from the peer that sent the message or, if this peer is no
        longer in the group, from all peers of the group.
        """
        for child in self.resolver.waiting():
            stored = self.store.get(child)
            assert stored is not None  # noqa: S101 - waiting messages are stored
            peers = self.groups.peers(stored.group_id)
            sender = [peer for peer in peers if peer == stored.sender]
            for peer in sender or peers:
                self._add_late_parents(peer, child)
        self.request_late()

    def _add_late_parents(self, peer: bytes, child: bytes) -> None:
        message = self.store.message(child)
        if message is not None and self.options.resolution is not Resolution.NONE:
            children = self.late_parents.setdefault(peer, {})
            children[child] = list(parents_of(message))

    def request_late(self) -> None:
        """Request what is in `late` and `late_parents`.

        The number of requests for each peer stays within the limit.
        """
        for peer, waiting in list(self.late.items()):
            if self._request_all(peer, waiting):
                del self.late[peer]
        for peer, children in list(self.late_parents.items()):
            while children:
                child = next(iter(children))
                if not self._request_all(peer, children[child], is_offered=False):
                    break
                del children[child]
            else:
                del self.late_parents[peer]

    def _request_all(
        self, peer: bytes, waiting: list[bytes], *, is_offered: bool = True
    ) -> bool:
        """Request unknown messages up to the limit; return whether none is left."""
        while waiting and (
            waiting[0] in self.store
            or self.request(peer, waiting[0], is_offered=is_offered)
        ):
            del waiting[0]
        return not waiting

    def give_up(self, record: Record, events: list[Event]) -> None:
        """Drop an unanswered record, and add a `GaveUp` event."""
        self.records.remove(record.peer, record.message_id)
        events.append(GaveUp(record.message_id, record.peer, record.type))

    def drop_surplus(self, events: list[Event]) -> None:
        """Drop messages and ids beyond the store's limits.

        The records for a dropped message are dropped too. If too many messages wait for
        their parents, the oldest of these are delivered.
        """
        self.resolver.deliver_surplus(events)
        while (oldest := self.store.surplus()) is not None:
            self.resolver.before_drop(oldest, events)
            for record in self.records.of_message(oldest):
                self.give_up(record, events)
            for children in self.late_parents.values():
                children.pop(oldest, None)
            self.store.drop(oldest)
            events.append(Forgotten(oldest))
        self.store.forget_surplus_ids()

    def snapshot(self) -> Changes:
        """Return the whole state."""
        records = [(record.peer, record.message_id) for record in self.records]
        return self._values(self.groups, records, self.store)

    def take_changes(self) -> Changes | None:
        """Return the changes since the previous call; None if nothing changed."""
        keys = self.log.take()
        return None if keys is None else self._values(*keys)

    def load(self, state: Changes) -> None:
        """Restore a stored state into a new node.

        If the state exceeds limits of the options, the next `drop_surplus` applies
        these limits.
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
        self.request_waiting()

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
