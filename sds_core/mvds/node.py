"""A node of MVDS: in each epoch, it returns events and the payloads to send.

The node does no I/O and reads no clock. The application calls `tick` once in each
epoch, sends the returned payloads, and passes received payloads to `receive`.

The node does not retransmit acknowledgements, because a peer does not confirm them.
Instead, the node acknowledges every copy of a MESSAGE that arrives.

Sources: 2/MVDS; 4/MVDS-META.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Self

from sds_core.mvds.changes import Changes, StoredMessage
from sds_core.mvds.events import Event, Refused, RefusedReason, Step
from sds_core.mvds.node_errors import (
    BadGroupId,
    BadPeerId,
    MessageExists,
    MessageTooLarge,
    UnknownGroup,
)
from sds_core.mvds.options import Mode, Options
from sds_core.mvds.packing import Packer
from sds_core.mvds.payload import (
    Message,
    Metadata,
    Payload,
    message_id,
    message_record_bytes,
)
from sds_core.mvds.reception import Reception
from sds_core.mvds.records import Record, RecordType
from sds_core.mvds.state import NodeState


def payloads_of_epoch(state: NodeState, events: list[Event]) -> dict[bytes, Payload]:
    """Return the payloads of the current epoch, by peer.

    A payload contains the queued acknowledgements and ephemeral messages for one peer,
    and the due records for this peer. The send count of each record in the payload
    increases. If a record does not fit into the payload, it is due again in the next
    epoch (2/MVDS, "Retransmission").
    """
    payloads = {}
    due = state.records.take_due(state.epoch)
    for peer in dict.fromkeys([*state.outbox.peers(), *due]):
        packer = Packer(state.options.max_payload_bytes)
        state.outbox.pack(peer, packer)
        for record in due.get(peer, ()):
            _send(state, record, packer, events)
        payload = packer.payload()
        if payload != Payload():
            payloads[peer] = payload
    return payloads


def _send(
    state: NodeState, record: Record, packer: Packer, events: list[Event]
) -> None:
    limit = state.options.max_sends
    if limit is not None and record.send_count >= limit:
        state.give_up(record, events)
        return
    if not _pack(state, record, packer):
        if _is_too_long(state, record):
            state.give_up(record, events)
        else:
            state.records.put_back(record)
        return
    count = record.send_count + 1
    epoch = max(state.epoch + 1, state.options.backoff(count, state.epoch))
    state.records.put(replace(record, send_count=count, send_epoch=epoch))


def _pack(state: NodeState, record: Record, packer: Packer) -> bool:
    if record.type is RecordType.OFFER:
        return packer.offer(record.message_id)
    if record.type is RecordType.REQUEST:
        return packer.request(record.message_id)
    message = state.store.message(record.message_id)
    assert message is not None  # noqa: S101 - dropped together with its records
    return packer.message(message)


def _is_too_long(state: NodeState, record: Record) -> bool:
    """Return whether no payload can hold the record.

    This is possible only for a MESSAGE, after a restart with a lower maximum.
    """
    message = state.store.message(record.message_id)
    return (
        record.type is RecordType.MESSAGE
        and message is not None
        and message_record_bytes(message) > state.options.max_payload_bytes
    )


class Node:
    """One node, with its groups and peers."""

    def __init__(self, peer_id: bytes, options: Options | None = None) -> None:
        self.peer_id = peer_id
        self._state = NodeState(options or Options())

    @property
    def options(self) -> Options:
        """The options."""
        return self._state.options

    @property
    def epoch(self) -> int:
        """Number of ticks so far, including ticks before a restart."""
        return self._state.epoch

    @property
    def records(self) -> tuple[Record, ...]:
        """The OFFER, REQUEST and MESSAGE records of all peers."""
        return tuple(self._state.records)

    @property
    def pending_acks(self) -> dict[bytes, tuple[bytes, ...]]:
        """Ids of the messages that the node still has to acknowledge, by peer."""
        return self._state.outbox.acks()

    def message(self, message_id: bytes) -> Message | None:
        """Return a message; None if it is unknown or was dropped."""
        return self._state.store.message(message_id)

    def is_delivered(self, message_id: bytes) -> bool:
        """Return whether a message was delivered; own messages count as delivered."""
        return self._state.store.is_delivered(message_id)

    def add_group(self, group_id: bytes, peers: Iterable[bytes] = ()) -> None:
        """Add peers to a group. If the node is not in the group, join it first.

        The node sends later messages of the group to the added peers; it sends earlier
        messages only if these peers request them. If the node refused messages of these
        peers because the peers were not in the group, it now requests the messages.

        Raises:
            BadGroupId: The id does not have the length `Options.group_id_bytes`.
            BadPeerId: A peer has the id of the node itself.
        """
        expected_bytes = self.options.group_id_bytes
        if expected_bytes is not None and len(group_id) != expected_bytes:
            raise BadGroupId(group_id, expected_bytes)
        peers = tuple(peers)
        if self.peer_id in peers:
            raise BadPeerId(self.peer_id)
        self._state.groups.add(group_id)
        for peer in peers:
            self._state.share(group_id, peer)
        self._state.request_waiting()

    def remove_peer(self, group_id: bytes, peer: bytes) -> None:
        """Remove a peer from a group.

        The node drops the peer's records for known messages of the group, and the
        group's ephemeral messages that wait for the peer. If the peer is in no other
        group of the node, the node drops everything that waits for the peer. If a
        message of the peer waits for parents, the node requests the parents from the
        other peers of the group.
        """
        state = self._state
        state.groups.remove_peer(group_id, peer)
        state.outbox.remove_ephemeral(peer, group_id)
        is_known = state.groups.has_peer(peer)
        for record in self.records:
            if record.peer == peer:
                stored = state.store.get(record.message_id)
                if not is_known or (stored and stored.group_id == group_id):
                    state.records.remove(peer, record.message_id)
        if not is_known:
            state.outbox.remove(peer)
            state.foreign.remove(peer)
            state.late.pop(peer, None)
            state.late_parents.pop(peer, None)
        state.request_waiting()

    def append(
        self,
        group_id: bytes,
        body: bytes,
        timestamp: int,
        *,
        mode: Mode | None = None,
        ephemeral: bool = False,
    ) -> bytes:
        """Queue a message for all peers of a group; return the message's id.

        Later calls of `tick` return the payloads with the message or its OFFER.
        Deployed nodes use Unix seconds as the timestamp. An ephemeral message is sent
        once, without an OFFER, and is not acknowledged.

        If the store is now too full, the next `tick` drops the oldest messages.

        Raises:
            UnknownGroup: The node is not in the group.
            MessageExists: The group already has a message with this timestamp and body.
            MessageTooLarge: The message is longer than `Options.max_message_bytes`.
            ValueError: The timestamp does not fit into a signed number of 64 bits.
        """
        state = self._state
        if group_id not in state.groups:
            raise UnknownGroup(group_id)
        metadata = None
        if ephemeral or self.options.write_parents:
            metadata = Metadata(state.resolver.parents(group_id), ephemeral)
        message = Message(group_id, timestamp, body, metadata)
        size_bytes = message_record_bytes(message)
        if size_bytes > self.options.max_message_bytes:
            raise MessageTooLarge(size_bytes, self.options.max_message_bytes)
        new_id = message_id(message)
        if new_id in state.store:
            raise MessageExists(new_id)
        peers = state.groups.peers(group_id)
        if ephemeral:
            state.outbox.add_ephemeral(peers, message)
            return new_id
        state.store.add(new_id, StoredMessage(group_id, message, None, True))
        state.resolver.appended(new_id, message)
        is_batch = (mode or self.options.mode) is Mode.BATCH
        for peer in peers:
            state.put(
                peer, new_id, RecordType.MESSAGE if is_batch else RecordType.OFFER
            )
        return new_id

    def peer_online(self, peer: bytes) -> None:
        """Make all records for a peer due in the next epoch, regardless of the backoff.

        The application calls this method when the peer becomes reachable.
        """
        next_epoch = self.epoch + 1
        for record in self.records:
            if record.peer == peer and record.send_epoch > next_epoch:
                self._state.records.put(replace(record, send_epoch=next_epoch))

    def tick(self) -> Step:
        """Begin the next epoch; return the payloads to send, and events."""
        self._state.epoch += 1
        self._state.log.mark_epoch()
        self._state.request_late()
        events: list[Event] = []
        # `append` and `restore` leave dropping and delivery to `tick`, because they
        # return no events. Otherwise, a change could be stored, but its event could be
        # lost when the process ends.
        self._state.drop_surplus(events)
        return Step(payloads_of_epoch(self._state, events), events)

    def receive(self, sender: bytes, payload: Payload) -> list[Event]:
        """Process a payload from a peer, and return events.

        The next payload to this peer contains the answers. If the peer is in none of
        the node's groups, the payload is refused.
        """
        events: list[Event] = []
        if self._state.groups.has_peer(sender):
            Reception(self._state, sender, events).take(payload)
        else:
            events.append(Refused(RefusedReason.UNKNOWN_PEER, sender))
        return events

    def record_changes(self) -> None:
        """Start to collect changes for `take_changes`."""
        self._state.log.is_on = True

    def take_changes(self) -> Changes | None:
        """Return the changes since the last `take_changes`; None if nothing changed."""
        return self._state.take_changes()

    def snapshot(self) -> Changes:
        """Return the whole state, in the form of changes to an empty node."""
        return self._state.snapshot()

    @classmethod
    def restore(
        cls, peer_id: bytes, state: Changes, options: Options | None = None
    ) -> Self:
        """Return a node that resumes from a stored state.

        The options may differ from those of the node that stored the state. The next
        `tick` drops messages that exceed a limit of the new options, and delivers
        messages that no longer have to wait for their parents.
        """
        node = cls(peer_id, options)
        node._state.load(state)
        return node
