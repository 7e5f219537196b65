"""Remembers how each participant's causal history began (docs/figures.md, 6).

A participant's log of messages only grows, and a causal history contains the last
entries of the log. Assume that a history has n entries and that its first entry is e.
Then, in each later history of the participant, the last n entries are e or entries that
follow e in the log.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from sds_core.native import native
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.wire import Dialect, FrameKind


class HistoryHead(msgspec.Struct, array_like=True):
    """The first entry of the causal history in a participant's newest frame.

    Only first copies of frames count.

    Attributes:
        dialect, lamport: Dialect and Lamport timestamp of this frame.
        first: Fingerprint of the entry's message id; 0 if the history is empty.
    """

    dialect: Dialect
    lamport: int
    entries: int
    first: int


@native
@dataclass(slots=True)
class HistoryHeads:
    """Remembers the first entry of each participant's newest causal history."""

    _settings: RuleSettings
    _participants: Participants
    _heads: dict[int, HistoryHead]

    def first_copy_by(
        self, frame: SeenFrame, by: int, has_rolled: bool
    ) -> HistoryHead | None:
        """Remember the history of a first copy, and return the sender's previous one.

        Args:
            frame: The first copy.
            by: Participant index or `UNKNOWN`.
            has_rolled: Whether the frame's filter shows a roll-over. The participant
                may then have restarted, so its previous history proves nothing.

        Returns:
            The sender's previous history. None if `has_rolled` is set, or if the
            previous history is unknown, is empty, has another dialect, has more entries
            than the new history, or is not older than the new history. If the previous
            history has n entries, none of the last n entries of the new history
            precedes the first entry of the previous history.
        """
        if by == UNKNOWN or frame.kind is FrameKind.EPHEMERAL:
            return None
        before = self._heads.get(by)
        if before is None and len(self._heads) >= self._settings.followed:
            return None
        is_same = before is not None and before.dialect is frame.dialect
        if is_same and before is not None and frame.lamport <= before.lamport:
            return None
        self._heads[by] = HistoryHead(
            frame.dialect,
            frame.lamport,
            len(frame.history),
            frame.history[0].fingerprint if frame.history else 0,
        )
        if before is None or not is_same or has_rolled or not before.entries:
            return None
        return before if before.entries <= len(frame.history) else None

    def forget_silent_since(self, time_ms: int) -> None:
        """Drop participants that have sent no first copy since `time_ms`, Unix ms."""
        for by in list(self._heads):
            if not self._participants.has_spoken_since(by, time_ms):
                del self._heads[by]
