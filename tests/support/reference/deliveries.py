"""Delivery of each message to each participant (docs/figures.md, 5)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from sds_core.wire import Dialect
from tests.support.reference.filters import Filters, shape
from tests.support.reference.seen import Seen


@dataclass(frozen=True)
class Delivery:
    """How one message came to one participant, as far as that was shown.

    Attributes:
        message: Its first copy.
        participant: Who should have it.
        missing: The participant's first frame that shows it missing, if one does.
        lost: The first such frame late enough to call it lost.
        shown: The participant's first frame that shows that it has it.
    """

    message: Seen
    participant: str
    missing: Seen | None
    lost: Seen | None
    shown: Seen | None

    @property
    def outcome(self) -> str:
        """`first_pass`, `recovered`, `lost`, or none as long as it has not ended."""
        if self.lost is not None:
            return "lost"
        if self.shown is None:
            return ""
        return "first_pass" if self.missing is None else "recovered"

    @property
    def is_retracted(self) -> bool:
        """Whether it was called lost and has come."""
        return self.lost is not None and self.shown is not None

    def recovery(self) -> int:
        """Time from the first frame that shows it missing to the one that has it."""
        assert self.missing is not None
        assert self.shown is not None
        return max(0, self.shown.at - self.missing.at)


class Deliveries(Filters):
    """Adds how each message came to each of its audience."""

    @functools.cache  # noqa: B019 (a reference lives for one example)
    def deliveries(self) -> list[Delivery]:
        """Every message to each of its audience."""
        return [
            self._delivery(m, participant)
            for m in self.messages
            for participant in sorted(self.audience(m))
        ]

    def _frames_after(self, m: Seen, participant: str) -> list[Seen]:
        return [
            one
            for one in self.first_copies
            if one.sender == participant
            and one.place > m.place
            and one.clock <= m.clock + 3_600_000
        ]

    def shown(self, m: Seen, participant: str) -> Seen | None:
        """The participant's first frame that shows that it has a message."""
        for one in self._frames_after(m, participant):
            named = m.message_id in one.history()
            if named or (one.dialect is m.dialect and one.holds(m.message_id)):
                return one
        return None

    def _delivery(self, m: Seen, participant: str) -> Delivery:
        shown = self.shown(m, participant)
        missing = [
            one
            for one in self._frames_after(m, participant)
            if (shown is None or one.place < shown.place) and self.is_missing(m, one)
        ]
        late = [one for one in missing if self.is_overdue(missing[0], one)]
        return Delivery(
            m,
            participant,
            missing[0] if missing else None,
            late[0] if late else None,
            shown,
        )

    def was_named_before(self, one: Seen) -> bool:
        """Whether a frame was named before any tap saw it."""
        return one.has_known_id and any(
            other.place < one.place and one.message_id in other.history()
            for other in self.broadcasts
        )

    def is_overdue(self, missing: Seen, one: Seen) -> bool:
        """Whether a frame lacks what its sender had time to get.

        The time begins with the first frame that showed it missing, and once anew with
        the first frame after a long silence.
        """
        since = [at for at in self.returns(one) if at > missing.at]
        # The second return since then no longer begins it anew.
        begins = since[0] if len(since) == 1 else missing.at
        return one.at > begins + 300_000

    def is_missing(self, m: Seen, one: Seen) -> bool:
        """Whether a first copy of another participant shows that it lacks a message."""
        rolled_over = [
            other.at
            for other in self.roll_overs(one.sender)
            if other.place <= one.place
        ]
        return (
            not one.is_ephemeral
            and not self.was_named_before(one)
            and one.dialect is m.dialect
            and one.lamport > m.lamport
            and one.at > m.at + 5_000
            and one.filter() is not None
            and not one.shows(m.message_id)
            and m.at >= max(rolled_over, default=m.at)
        )

    @functools.cache  # noqa: B019
    def roll_overs(self, participant: str) -> list[Seen]:
        """The frames at which a participant's filter is seen to have rolled over."""
        return [
            one
            for dialect in Dialect
            for one in self._roll_overs(self.newest(participant, dialect))
        ]

    def _roll_overs(self, newest: list[Seen]) -> Iterator[Seen]:
        begin = 0
        for place, (before, one) in enumerate(itertools.pairwise(newest), 1):
            if (
                shape(one) != shape(before)
                or one.bits_set() < before.bits_set()
                or not all(map(one.holds, self._watched(newest[begin:place])))
            ):
                yield one
                begin = place

    def _watched(self, frames: list[Seen]) -> list[str]:
        """The ids by which the filters of a participant's frames are compared."""
        participant = frames[0].sender
        shown = [
            (by.place, m.place, m.message_id)
            for m in self.messages
            if participant in self.audience(m)
            and (by := self.shown(m, participant)) in frames
            and m.message_id not in by.history()
        ]
        ids = [message_id for _, _, message_id in sorted(shown)]
        return ids[:3] + ids[-1:]
