"""Applies the records of a received payload to a node's state.

Source: 2/MVDS, "Flow". An ACK, OFFER or MESSAGE record from a peer shows that the peer
has the message. The node then stops sending or offering the message to the peer.
"""

from __future__ import annotations

from collections.abc import Callable

from sds_core.mvds.changes import StoredMessage
from sds_core.mvds.events import Acknowledged, Duplicate, Event, Refused, RefusedReason
from sds_core.mvds.options import Options
from sds_core.mvds.parents import parents_of
from sds_core.mvds.payload import Message, Payload, message_id, message_record_bytes
from sds_core.mvds.records import RecordType
from sds_core.mvds.state import NodeState


class Reception:
    """Processes one payload of a known peer."""

    def __init__(self, state: NodeState, sender: bytes, events: list[Event]) -> None:
        self._state = state
        self._sender = sender
        self._events = events

    def take(self, payload: Payload) -> None:
        """Process all records of the payload."""
        for one in payload.acks:
            self._is_held_by_sender(one)
        for one in payload.requests:
            self._take_request(one)
        # Messages are processed before offers. Therefore, if a payload contains a
        # message and also offers it, the node does not request the message.
        for message in payload.messages:
            self._take_message(message)
        for one in payload.offered():
            self._take_offer(one)

    def _take_request(self, one: bytes) -> None:
        """Answer a request: replace the OFFER record by a MESSAGE record.

        A peer may also request messages that the node did not offer, such as parents.
        If a MESSAGE record already exists, it does not change, so repeated requests do
        not cause additional sendings.
        """
        message = self._state.store.message(one)
        if message is None or not self._shares(message.group_id):
            return
        record = self._state.records.get(self._sender, one)
        if record is None or record.type is not RecordType.MESSAGE:
            self._state.put(self._sender, one, RecordType.MESSAGE)

    def _take_offer(self, one: bytes) -> None:
        """Request an offered message, or acknowledge it if it is known.

        2/MVDS does not say how to answer the offer of a known message. Deployed nodes
        do not answer such an offer, so its sender repeats it forever.
        """
        stored = self._state.store.get(one)
        if stored is None:
            if not self._state.request(self._sender, one):
                reason = RefusedReason.TOO_MANY_REQUESTS
                self._events.append(Refused(reason, self._sender, one))
        elif self._shares(stored.group_id):
            self._is_held_by_sender(one)
            self._acknowledge(self._sender, one)

    def _take_message(self, message: Message) -> None:
        """Acknowledge a message; store, forward and deliver it if it is new."""
        one = message_id(message)
        record = self._state.records.get(self._sender, one)
        if record is not None and record.type is RecordType.REQUEST:
            self._state.records.remove(self._sender, one)
        if reason := _refusal(message, self._state.options, self._shares):
            self._refuse(reason, one, message)
            return
        if _is_ephemeral(message):
            resolver = self._state.resolver
            self._events.append(resolver.ephemeral(one, message, self._sender))
            return
        if one in self._state.store:
            self._is_held_by_sender(one)
            self._events.append(Duplicate(one, self._sender))
        else:
            stored = StoredMessage(message.group_id, message, self._sender, False)
            self._state.store.add(one, stored)
            self._pass_on(one, message.group_id)
            self._state.resolver.received(one, self._events)
        self._acknowledge(self._sender, one)
        self._state.request_parents(self._sender, one)
        self._state.drop_surplus(self._events)

    def _refuse(self, reason: RefusedReason, one: bytes, message: Message) -> None:
        """Report a refused message, and acknowledge it unless it is ephemeral.

        2/MVDS requires an acknowledgement of every received MESSAGE. Without an
        acknowledgement, the peer continues to retransmit the message.
        """
        self._events.append(Refused(reason, self._sender, one))
        if _is_ephemeral(message):
            return
        self._acknowledge(self._sender, one)
        if reason is RefusedReason.FOREIGN_GROUP:
            self._state.foreign.add(self._sender, message.group_id, one)

    def _pass_on(self, one: bytes, group_id: bytes) -> None:
        """Acknowledge a new message to peers that offered it; offer it to other peers.

        The node no longer requests the message from any peer.
        """
        # A list keeps the order of the peers. The order of a set would differ between
        # processes.
        offered_by = []
        for record in self._state.records.of_message(one):
            self._state.records.remove(record.peer, one)
            if record.is_offered:
                offered_by.append(record.peer)
                self._acknowledge(record.peer, one)
        if self._state.options.forward:
            for peer in self._state.groups.peers(group_id):
                if peer != self._sender and peer not in offered_by:
                    self._state.put(peer, one, RecordType.OFFER)

    def _is_held_by_sender(self, one: bytes) -> None:
        """Stop sending or offering a message to the peer, which already has it."""
        record = self._state.records.get(self._sender, one)
        if record is not None and record.type is not RecordType.REQUEST:
            self._state.records.remove(self._sender, one)
            self._events.append(Acknowledged(one, self._sender))

    def _acknowledge(self, peer: bytes, one: bytes) -> None:
        if not self._state.outbox.add_ack(peer, one):
            self._events.append(Refused(RefusedReason.TOO_MANY_ACKS, peer, one))

    def _shares(self, group_id: bytes) -> bool:
        return self._state.groups.shares(self._sender, group_id)


def _is_ephemeral(message: Message) -> bool:
    return message.metadata is not None and message.metadata.ephemeral


def _refusal(
    message: Message, options: Options, shares: Callable[[bytes], bool]
) -> RefusedReason | None:
    """Return why a message is refused; None if it is accepted."""
    if not shares(message.group_id):
        return RefusedReason.FOREIGN_GROUP
    if message_record_bytes(message) > options.max_message_bytes:
        return RefusedReason.TOO_LARGE
    if len(parents_of(message)) > options.max_parents:
        return RefusedReason.TOO_MANY_PARENTS
    return None
