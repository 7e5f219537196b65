"""Remembers where participants' causal histories began (docs/figures.md, 6).

A causal history is the end of a participant's log of messages, and the log only grows.
Assume that a history has n entries and begins with entry e. Then, in the participant's
later histories, none of the last n entries precedes e.
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
    """The start of the causal history in the latest of a participant's first copies.

    Attributes:
        dialect, lamport: Dialect and Lamport timestamp of the frame.
        first: Fingerprint of the first entry; 0 if the history is empty.
    """

    dialect: Dialect
    lamport: int
    entries: int
    first: int


@native
@dataclass(slots=True)
class HistoryHeads:
    """Remembers how the newest causal history of each participant began."""

    _settings: RuleSettings
    _participants: Participants
    _heads: dict[int, HistoryHead]

    def first_copy_by(
        self, frame: SeenFrame, by: int, has_rolled: bool
    ) -> HistoryHead | None:
        """Remember the history of a first copy.

        Args:
            frame: The first copy.
            by: Participant index or `UNKNOWN`.
            has_rolled: Whether the frame's filter shows that the participant restarted.
                After a restart, the earlier history proves nothing.

        Returns:
            The sender's previous history. None after a restart, or if this history is
            unknown, is empty, has another dialect, has more entries than the new
            history, or is not older than the new history. If a history of n entries is
            returned, none of the new history's last n entries precedes the previous
            history's first entry.
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
        """Drop participants whose latest first copy is before this time, Unix ms."""
        for by in list(self._heads):
            if not self._participants.has_spoken_since(by, time_ms):
                del self._heads[by]
