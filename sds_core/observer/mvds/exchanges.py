"""Tracks whether each OFFER gets a REQUEST, and each REQUEST gets a MESSAGE."""

from __future__ import annotations

from dataclasses import dataclass

from sds_core.native import native
from sds_core.observer.journal import Journal
from sds_core.observer.mvds.awaited import Awaited
from sds_core.observer.mvds.ledger import Ledger
from sds_core.observer.mvds.messages import NO_DEADLINE, Message, Pair
from sds_core.observer.mvds.window import count_in
from sds_core.observer.rule_settings import RuleSettings


@native
@dataclass(slots=True)
class Exchanges:
    """Tracks OFFER and REQUEST (docs/figures.md, 14)."""

    _settings: RuleSettings
    _ledger: Ledger
    _awaited: Awaited
    _journal: Journal | None

    def offered(self, message: Message, pair: Pair, clock_ms: int) -> None:
        """Process a sender's first OFFER of a message to a receiver."""
        if not self._offer_is_settled(message, pair):
            pair.offer_due_ms = clock_ms + self._settings.ack_deadline_ms
            self._awaited.add(pair.offer_due_ms, message.key)

    def requested(self, message: Message, pair: Pair, clock_ms: int) -> None:
        """Process a sender's first REQUEST for a message to a receiver."""
        if not self._request_is_settled(message, pair):
            pair.request_due_ms = clock_ms + self._settings.ack_deadline_ms
            self._awaited.add(pair.request_due_ms, message.key)

    def passed(self, message: Message, deadline_ms: int) -> None:
        """Count each offer and request that has no answer when its deadline passes."""
        for pair in message.pairs():
            if 0 < pair.offer_due_ms <= deadline_ms:
                offer_due_ms, pair.offer_due_ms = pair.offer_due_ms, NO_DEADLINE
                if not self._offer_is_settled(message, pair):
                    self._ledger.count(message, "unrequested_offers")
                    self._note(message, "unrequested_offer", offer_due_ms)
            if 0 < pair.request_due_ms <= deadline_ms:
                due_ms, pair.request_due_ms = pair.request_due_ms, NO_DEADLINE
                if not self._request_is_settled(message, pair):
                    self._ledger.count(message, "unanswered_requests")
                    self._note(message, "unanswered_request", due_ms)
                    if message.group:
                        window = self._ledger.groups[message.group].window
                        count_in(window.unanswered, due_ms)

    def _note(self, message: Message, what: str, time_ms: int) -> None:
        if self._journal is not None:
            self._journal.note(message.key, what, time_ms)

    def _offer_is_settled(self, message: Message, pair: Pair) -> bool:
        back = message.known_pair(pair.receiver, pair.sender)
        requested = back is not None and back.requested
        return requested or message.peers[pair.receiver].holds

    def _request_is_settled(self, message: Message, pair: Pair) -> bool:
        back = message.known_pair(pair.receiver, pair.sender)
        answered = back is not None and back.sent_ms is not None
        return answered or message.peers[pair.sender].holds
