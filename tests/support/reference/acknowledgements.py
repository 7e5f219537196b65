"""Acknowledgement of messages (docs/figures.md, 4)."""

from __future__ import annotations

from tests.support.reference.broadcasts import Broadcasts
from tests.support.reference.seen import Seen


class Acknowledgements(Broadcasts):
    """Adds who acknowledged each message, and what became of it."""

    def definite(self, m: Seen) -> Seen | None:
        """The frame that acknowledged a message."""
        for one in self.broadcasts:
            if one.is_by_other_than(m) and m.message_id in one.history():
                return one
        return None

    def probable(self, m: Seen) -> Seen | None:
        """The frame whose filter made a message probably acknowledged."""
        needed = max(1, min(2, len(self.audience(m))))
        definite = self.definite(m)
        witnesses: set[str] = set()
        rate = 1.0
        for one in self.broadcasts:
            if one.place < m.place:
                continue
            if definite is not None and definite.place <= one.place:
                return None
            if (
                one.is_by_other_than(m)
                and one.sender not in witnesses
                and one.holds(m.message_id)
            ):
                filter_ = one.filter()
                assert filter_ is not None
                witnesses.add(one.sender)
                rate *= filter_.false_positive_rate()
                if rate < 1e-6 and len(witnesses) >= needed:
                    return one
        return None

    def acknowledged_at(self, m: Seen) -> int | None:
        """The clock at which a message was first acknowledged."""
        found = [one for one in (self.definite(m), self.probable(m)) if one]
        return min((max(one.clock, m.clock) for one in found), default=None)

    def fate(self, m: Seen) -> str:
        """What became of a message."""
        deadline = m.clock + 120_000
        acknowledged = self.acknowledged_at(m)
        if acknowledged is not None and acknowledged <= deadline:
            return "acknowledged_in_time"
        if self.end <= deadline:
            return "in_flight"
        for one in self.first_copies:
            if (
                not one.is_ephemeral
                and one.is_by_other_than(m)
                and one.dialect is m.dialect
                and one.place > m.place
                and one.lamport > m.lamport
                and one.at > m.at
                and one.clock <= deadline
                and not one.shows(m.message_id)
                and all(at <= m.at for at in self.returns(one)[-1:])
            ):
                return "unacknowledged"
        return "unwitnessed"
