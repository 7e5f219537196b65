"""Decides which messages were sent after the warm-up (docs/figures.md, 6)."""

from __future__ import annotations

from dataclasses import dataclass

from sds_core.native import native
from sds_core.observer.sds.filters import Filters
from sds_core.observer.sds.forgotten_messages import ForgottenMessages
from sds_core.observer.sds.gaps import Gaps
from sds_core.observer.sds.history_heads import HistoryHeads
from sds_core.observer.sds.messages import Message, MessageTable
from sds_core.observer.sds.seen_frames import Named, SeenFrame
from sds_core.observer.sds.seen_ids import SeenIdTable
from sds_core.observer.sds.start_filters import StartFilters
from sds_core.wire import Dialect, FrameKind


@native
@dataclass(slots=True)
class Start:
    """Decides which messages were sent after the start (the end of the warm-up)."""

    # For each dialect, the highest Lamport timestamp of the frames in the warm-up.
    _highest: dict[Dialect, int]
    _messages: MessageTable
    _gaps: Gaps
    _filters: Filters
    _heads: HistoryHeads
    _start_filters: StartFilters
    _seen_ids: SeenIdTable
    _forgotten: ForgottenMessages

    def in_warm_up(self, frame: SeenFrame) -> None:
        """Record the Lamport timestamp and the filter of a frame in the warm-up."""
        self._start_filters.in_warm_up(frame)
        if frame.kind is not FrameKind.EPHEMERAL:
            highest = self._highest.get(frame.dialect, 0)
            self._highest[frame.dialect] = max(highest, frame.lamport)

    def is_before(self, key: int, message: Message | None) -> bool:
        """Whether ids that follow this id in a history may be from before the start.

        True if the id itself may be from the warm-up or earlier. Also True if the
        monitor may have forgotten a message that was first seen when this id was first
        seen, or later.
        """
        seen = self._seen_ids.get(key) if message is None else message
        if seen is None:
            since_ms = self._gaps.after_start_since_ms(key)
            return since_ms is None or not self._forgotten.remembers_since(since_ms)
        return seen.lamport <= self._highest.get(
            seen.dialect, 0
        ) or not self._forgotten.remembers_since(seen.seen_ms)

    def was_held(self, frame: SeenFrame, named: Named) -> bool:
        """Whether a nim-sds frame names an id that a filter of the warm-up holds."""
        return frame.dialect is Dialect.NIM and self._start_filters.held(
            named.message_id
        )

    def first_copy_by(self, frame: SeenFrame, by: int) -> int:
        """Record the history of a first copy.

        Returns:
            The number of last entries of the history that are proven to be from after
            the start.
        """
        before = self._heads.first_copy_by(frame, by, self._filters.has_rolled)
        if before is None or self.is_before(
            before.first, self._messages.get(before.first)
        ):
            return 0
        return before.entries
