"""Tracks messages until their receivers acknowledge them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sds_core.native import native
from sds_core.observer.incidents import (
    MOST_LACKING,
    GroupIncident,
    Incident,
    IncidentKind,
    Incidents,
)
from sds_core.observer.journal import Journal
from sds_core.observer.mvds.awaited import Awaited
from sds_core.observer.mvds.digest import SeenPayload, SeenRecord
from sds_core.observer.mvds.ledger import Ledger
from sds_core.observer.mvds.messages import NO_DEADLINE, Message, Pair, Peer
from sds_core.observer.mvds.peers import Peers
from sds_core.observer.mvds.window import count_in, step_after
from sds_core.observer.rule_settings import RuleSettings


@native
@dataclass(slots=True)
class Deliveries:
    """Tracks MESSAGE and ACK (docs/figures.md, 14)."""

    _settings: RuleSettings
    _ledger: Ledger
    _peers: Peers
    _awaited: Awaited
    _journal: Journal | None
    _incidents: Incidents = field(default_factory=Incidents)
    # Group of each message whose incident began or changed since the last `drain`, by
    # message id.
    _groups: dict[str, str] = field(default_factory=dict)

    def sent(
        self,
        message: Message,
        receiver: Peer,
        record: SeenRecord,
        payload: SeenPayload,
        clock_ms: int,
    ) -> None:
        """Process a MESSAGE to a receiver."""
        if receiver.acked:
            self._ledger.count(message, "duplicates", record.times)
            return
        receiver.sends += 1
        if receiver.sent_clock_ms or record.is_ephemeral:
            return
        receiver.sent_clock_ms, receiver.sent_ms = clock_ms, payload.time_ms
        receiver.due_ms = clock_ms + self._settings.ack_deadline_ms
        self._awaited.add(receiver.due_ms, message.key)
        self._ledger.count(message, "addressed")
        self._ledger.count(message, "in_flight")

    def acknowledged(
        self, message: Message, by: Peer, payload: SeenPayload, clock_ms: int
    ) -> None:
        """Process an ACK that the peer `by` sent to any peer."""
        if by.acked:
            return
        by.acked = True
        ledger = self._ledger
        ledger.count(message, "deliveries")
        ledger.delivered(message, max(0, payload.time_ms - message.first_ms))
        if by.sends:
            ledger.count(message, "sends_messages", by.sends)
            ledger.count(message, "sends_deliveries")
        if by.due_ms:
            self._end(message, by, "acknowledged_in_time", clock_ms)
        elif by.missed_ms:
            ledger.count(message, "resolved")
            self._note(message, by, "resolved", clock_ms)
            missed = ledger.groups[message.group].window.unacknowledged
            missed_ms, by.missed_ms = by.missed_ms, NO_DEADLINE
            if step_after(missed_ms) in missed:
                count_in(missed, missed_ms, -1)
            self._record(message, clock_ms)

    def answered(
        self, message: Message, sent: Pair | None, payload: SeenPayload
    ) -> None:
        """Measure the latency of the first ACK from a receiver to a sender.

        The latency begins at the first MESSAGE from the sender to the receiver; `sent`
        is the pair of sender and receiver.
        """
        if sent is not None and sent.sent_ms is not None:
            latency = self._ledger.groups[message.group].ack_latency
            latency.observe(max(0, payload.time_ms - sent.sent_ms))

    def passed(self, message: Message, deadline_ms: int) -> None:
        """Stop waiting for ACKs that were due at or before `deadline_ms`, Unix ms."""
        grace_ms = self._settings.delivery_grace_ms
        found = False
        for peer in message.peers:
            if not 0 < peer.due_ms <= deadline_ms:
                continue
            due_ms, since_ms = peer.due_ms, peer.sent_clock_ms + grace_ms
            if peer.holds or not self._peers.was_heard_since(peer.print, since_ms):
                self._end(message, peer, "unwitnessed", due_ms)
                continue
            self._end(message, peer, "unacknowledged", due_ms)
            peer.missed_ms = due_ms
            count_in(self._ledger.groups[message.group].window.unacknowledged, due_ms)
            message.found_ms = message.found_ms or due_ms
            found = True
        if found:
            self._record(message, None)

    def forget(self, message: Message, clock_ms: int) -> None:
        """Stop waiting for the ACKs of a message that the view drops."""
        for peer in message.peers:
            if peer.due_ms:
                self._end(message, peer, "unwitnessed", clock_ms)

    def drain(self) -> list[GroupIncident]:
        """Return the incidents that began or changed since the last call."""
        groups, self._groups = self._groups, {}
        return [
            GroupIncident(groups[incident.message_id], incident)
            for incident in self._incidents.drain()
        ]

    def _end(self, message: Message, peer: Peer, field: str, clock_ms: int) -> None:
        peer.due_ms = NO_DEADLINE
        self._ledger.count(message, "in_flight", -1)
        self._ledger.count(message, field)
        self._note(message, peer, field, clock_ms)
        count_in(self._ledger.groups[message.group].window.ended, clock_ms)

    def _note(self, message: Message, peer: Peer, what: str, time_ms: int) -> None:
        if self._journal is not None:
            name = self._peers.name(peer.print)
            self._journal.note(message.key, what, time_ms, name)

    def _record(self, message: Message, ended_ms: int | None) -> None:
        message_id = message.message_id.hex()
        self._groups[message_id] = message.group
        lacking = [peer for peer in message.peers if peer.missed_ms]
        places = {message.place(peer.print) for peer in lacking}
        senders = {
            self._peers.name(message.peers[pair.sender].print)
            for pair in message.pairs()
            if pair.sent_ms is not None and (not lacking or pair.receiver in places)
        }
        # Releases up to 1.0.0 accepted a MESSAGE at time 0. Its `sent_clock_ms` and its
        # `sent_ms` are 0.
        since_ms = min(
            [peer.sent_ms for peer in message.peers if peer.sent_clock_ms], default=0
        )
        self._incidents.record(
            Incident(
                IncidentKind.UNACKNOWLEDGED,
                message_id,
                "",
                since_ms,
                message.found_ms,
                None if lacking else ended_ms,
                {
                    self._peers.name(peer.print): peer.sent_ms
                    for peer in lacking[:MOST_LACKING]
                },
                sorted(senders)[:MOST_LACKING],
                lacking_others=max(0, len(lacking) - MOST_LACKING),
            )
        )
