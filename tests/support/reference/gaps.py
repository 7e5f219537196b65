"""Missing dependencies (docs/figures.md, 6)."""

from __future__ import annotations

import functools

from sds_core.wire import Dialect
from tests.support.reference.deliveries import Deliveries
from tests.support.reference.seen import Seen


class Gaps(Deliveries):
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
        first = self.first_with_id(message_id)
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

    def naming(self, message_id: str) -> Seen | None:
        """The first frame after the warm-up that names an id while it is unseen."""
        for one in self.namings(message_id):
            if one.clock > self.warm_up_end():
                return one
        return None

    @functools.cache  # noqa: B019 (a reference lives for one example)
    def opening(self, message_id: str) -> Seen | None:
        """The naming that makes an id a gap, if one does."""
        naming = self.naming(message_id)
        if naming is None:
            return None
        if naming.dialect is Dialect.NIM and self._was_held(message_id):
            return None
        history = naming.history()
        place = history.index(message_id)
        if any(self.is_after_start(one, naming.place) for one in history[:place]):
            return naming
        earlier = self.history_before(naming)
        is_certain = earlier and place >= len(history) - len(earlier)
        if is_certain and self.is_after_start(earlier[0], naming.place, named=False):
            return naming
        return None

    def _was_held(self, message_id: str) -> bool:
        """Whether a filter of nim-sds held an id in the warm-up."""
        return any(
            one.holds(message_id)
            for one in self.broadcasts
            if one.clock <= self.warm_up_end() and one.dialect is Dialect.NIM
        )

    def is_after_start(self, message_id: str, place: int, named: bool = True) -> bool:
        """Whether an id is known at a place to have been sent after the warm-up.

        Args:
            message_id: The id.
            place: In the topic.
            named: Whether the frame there counts if it names the unseen id first.
        """
        first = self.first_with_id(message_id)
        if first is not None and first.place <= place:
            return first.lamport > self.l0(first.dialect)
        naming = self.naming(message_id)
        if naming is None or naming.place >= place + named:
            return False
        return self.opening(message_id) is not None

    def history_before(self, one: Seen) -> list[str]:
        """The history of the sender's newest earlier first copy, if one follows it.

        Empty if the sender began anew since, or a history or a Lamport timestamp is
        not at least as great.
        """
        newest: Seen | None = None
        for other in self.first_copies:
            if other.sender != one.sender or not other.sender or other.is_ephemeral:
                continue
            if (
                newest is not None
                and other.dialect is newest.dialect
                and other.lamport <= newest.lamport
            ):
                if other is one:
                    return []
                continue
            if other is one:
                break
            newest = other
        else:
            return []
        if newest is None or newest.dialect is not one.dialect:
            return []
        if one in self.roll_overs(one.sender):
            return []
        earlier = newest.history()
        return earlier if len(earlier) <= len(one.history()) else []

    def gap(self, message_id: str) -> tuple[str, int | None] | None:
        """Outcome of an id's gap, and its duration; None if it never opened."""
        opening = self.opening(message_id)
        if opening is None:
            return None
        first = self.first_with_id(message_id)
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
