"""Missing dependencies (docs/figures.md, 6)."""

from __future__ import annotations

from sds_core.wire import Dialect
from tests.support.reference.broadcasts import Broadcasts
from tests.support.reference.seen import Seen


class Gaps(Broadcasts):
    """Adds which ids were gaps, and what became of each."""

    def warm_up_end(self) -> int:
        """The last moment of the channel's first 30 s."""
        return self.seen[0].clock + 30_000

    def l0(self, dialect: Dialect) -> int:
        """The highest lamport of the warm-up."""
        return max(
            (
                one.lamport
                for one in self.broadcasts
                if one.clock <= self.warm_up_end() and one.dialect is dialect
            ),
            default=0,
        )

    def is_seen(self, message_id: str, at: Seen) -> bool:
        """Whether a tap had shown an id by the time of a frame, or the frame does."""
        first = self._first_copy(message_id)
        return message_id == at.message_id or (
            first is not None and first.place <= at.place
        )

    def namings(self, message_id: str) -> list[Seen]:
        """Frames that name an id while it is unseen."""
        return [
            one
            for one in self.broadcasts
            if message_id in one.history() and not self.is_seen(message_id, one)
        ]

    def opening(self, message_id: str) -> Seen | None:
        """The naming that makes an id a gap, if one does."""
        after = [
            one for one in self.namings(message_id) if one.clock > self.warm_up_end()
        ]
        if not after:
            return None
        naming = after[0]
        before = naming.history()[: naming.history().index(message_id)]
        for earlier in before:
            first = self._first_copy(earlier)
            if (
                first is not None
                and first.place <= naming.place
                and first.lamport > self.l0(first.dialect)
            ):
                return naming
        return None

    def gap(self, message_id: str) -> tuple[str, int | None] | None:
        """Outcome of an id's gap, and its duration; None if it never opened."""
        opening = self.opening(message_id)
        if opening is None:
            return None
        first = self._first_copy(message_id)
        until = self.end if first is None else first.clock
        if until <= opening.clock + 2_000:
            return None
        deadline = opening.clock + 300_000
        if first is not None and first.clock <= deadline:
            duration = max(0, first.at - opening.at)
            if self.latest_request(message_id, first.place) is None:
                return "late", duration
            if self.is_live(message_id, first):
                return "repaired", duration
            return "recovered_late", duration
        if self.end <= deadline:
            return "open", None
        if self._network_had(message_id, opening, deadline):
            return "tap_gap", None
        return "lost", None

    def _network_had(self, message_id: str, opening: Seen, deadline: int) -> bool:
        namings = [one for one in self.namings(message_id) if one.clock <= deadline]
        named = [one.sender_named(message_id) for one in namings]
        sender = next((name for name in named if name), "")
        shown = {one.sender for one in namings}
        for one in self.broadcasts:
            in_time = opening.place <= one.place and one.clock <= deadline
            if in_time and one.holds(message_id):
                shown.add(one.sender)
        shown -= {"", sender}
        return len(shown) >= (1 if sender else 2)
