"""Relates a broadcast to earlier broadcasts with the same id (docs/figures.md, 2)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sds_core.native import native
from sds_core.observer.journal import Journal
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.acknowledgements import Acknowledgements
from sds_core.observer.sds.capacity import Capacity
from sds_core.observer.sds.forgotten_messages import ForgottenMessages
from sds_core.observer.sds.gap_states import GapState
from sds_core.observer.sds.gap_table import Gap
from sds_core.observer.sds.gaps import Gaps
from sds_core.observer.sds.health import Health
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.participants import Participants
from sds_core.observer.sds.repairs import Repairs
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.observer.sds.seen_ids import SeenId, SeenIdTable
from sds_core.observer.sds.segments import Segments
from sds_core.observer.sds.timing import RepairTiming
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.wire import Dialect, FrameKind


class Sight(enum.Enum):
    """How a broadcast relates to earlier broadcasts with the same id."""

    FIRST = enum.auto()
    FIRST_AFTER_NAMING = enum.auto()
    """A first copy whose id a causal history named before any tap saw it."""
    AGAIN = enum.auto()
    OLD = enum.auto()
    """A rebroadcast whose first copy is older than the retention window."""


@native
@dataclass(slots=True)
class OwnIds:
    """Decides for each broadcast whether it is a first copy or a rebroadcast."""

    _settings: RuleSettings
    _totals: ChannelTotals
    _participants: Participants
    _acknowledgements: Acknowledgements
    _seen_ids: SeenIdTable
    _forgotten: ForgottenMessages
    _gaps: Gaps
    _repairs: Repairs
    _timing: RepairTiming
    _capacity: Capacity
    _segments: Segments
    _health: Health
    _journal: Journal | None

    def follow(self, frame: SeenFrame, clock_ms: int) -> Sight:
        """Classify and count a broadcast, and remember its id."""
        if frame.kind is FrameKind.SYNC and frame.dialect is Dialect.NIM:
            return self._follow_sync(frame, clock_ms)
        if frame.kind is not FrameKind.CONTENT:
            # In the specification, histories and repairs name only content messages, so
            # the ids of other frames are not remembered. The ids of js-waku's sync
            # frames would nearly double the size of the state.
            return Sight.FIRST
        key = frame.named.fingerprint
        known = self._acknowledgements.get(key)
        sender = self._participants.index(frame.sender)
        if known is None:
            if self._came_back(frame, sender, clock_ms):
                return Sight.OLD
            return self._first_copy(frame, clock_ms)
        known.latest_ms = clock_ms
        if (known.sender, known.lamport) == (sender, frame.lamport):
            self._again(frame, clock_ms)
        else:
            self._totals.message_id_collisions += 1
            self._note(frame, "message_id_collision")
        return self._age(known.seen_ms, clock_ms)

    def knows(self, key: int) -> bool:
        """Whether an id was seen that does not belong to a tracked message."""
        return key in self._seen_ids

    def was_seen(self, key: int, clock_ms: int) -> bool:
        """Like `knows`; if True, set `latest_ms` of the id to `clock_ms`."""
        seen = self._seen_ids.get(key)
        if seen is None:
            return False
        seen.latest_ms = clock_ms
        return True

    def forget(self, key: int) -> None:
        """Drop a content message."""
        message = self._acknowledgements.forget(key)
        self._forgotten.add(message.seen_ms, message.sender, message.lamport)

    def forget_seen_id(self, key: int) -> None:
        """Drop a seen id that does not belong to a tracked message."""
        seen = self._seen_ids[key]
        self._forgotten.add(seen.seen_ms, seen.sender, seen.lamport)
        self._seen_ids.remove(key)

    def _follow_sync(self, frame: SeenFrame, clock_ms: int) -> Sight:
        key = frame.named.fingerprint
        sender = self._participants.index(frame.sender)
        known = self._seen_ids.get(key)
        if known is None:
            if self._came_back(frame, sender, clock_ms):
                return Sight.OLD
        elif (known.sender, known.lamport) == (sender, frame.lamport):
            known.latest_ms = clock_ms
            self._again(frame, clock_ms)
            return self._age(known.seen_ms, clock_ms)
        gap = self._arrived(frame, clock_ms)
        self._seen_ids[key] = SeenId(
            clock_ms, clock_ms, sender, frame.lamport, frame.dialect
        )
        self._check_response(frame, clock_ms)
        return Sight.FIRST if gap is None else Sight.FIRST_AFTER_NAMING

    def _came_back(self, frame: SeenFrame, sender: int, clock_ms: int) -> bool:
        """Whether a frame is a rebroadcast of a forgotten message; if so, count it.

        The frame can be one only if its id was requested within the repair window, or
        if an earlier rebroadcast of the message was counted. Without this condition, a
        hostile sender could send a frame with a participant's name and a high Lamport
        timestamp. All frames of the participant with a lower timestamp could then count
        as rebroadcasts.
        """
        key, lamport = frame.named.fingerprint, frame.lamport
        seen = self._seen_ids.get(key)
        if seen is not None and seen.is_content:
            if (seen.sender, seen.lamport) != (sender, lamport):
                return False
            seen.latest_ms = clock_ms
        elif (
            not self._repairs.is_live(key, clock_ms)
            or self._gaps.after_start_since_ms(key) is not None
            or not self._forgotten.may_have(sender, lamport)
        ):
            return False
        else:
            # If the table of gaps has the id in the state BEFORE_START, remove it.
            self._gaps.arrived(frame, clock_ms)
            self._seen_ids[key] = SeenId(
                0,
                clock_ms,
                sender,
                lamport,
                frame.dialect,
                is_content=frame.kind is FrameKind.CONTENT,
            )
        self._again(frame, clock_ms)
        return True

    def _age(self, seen_ms: int, clock_ms: int) -> Sight:
        is_recent = clock_ms <= seen_ms + self._settings.horizon_ms
        return Sight.AGAIN if is_recent else Sight.OLD

    def _again(self, frame: SeenFrame, clock_ms: int) -> None:
        if self._repairs.is_live(frame.named.fingerprint, clock_ms):
            self._totals.rebroadcasts_repair += 1
            self._note(frame, "rebroadcast_repair")
        else:
            self._totals.rebroadcasts_retry += 1
            self._note(frame, "rebroadcast_retry")
            self._capacity.sent_by(self._participants.index(frame.sender), clock_ms)
            self._health.retried(frame.named.fingerprint, clock_ms)
        self._check_response(frame, clock_ms)

    def _first_copy(self, frame: SeenFrame, clock_ms: int) -> Sight:
        message = self._acknowledgements.first_copy(frame, clock_ms)
        gap = self._arrived(frame, clock_ms)
        self._check_response(frame, clock_ms)
        if frame.segment is not None:
            self._segments.first_copy(frame.segment, clock_ms)
        if gap is None:
            return Sight.FIRST
        message.was_named_before = True
        message.hint = gap.hint
        for by, time_ms in gap.mentions:
            self._acknowledgements.mentioned(message, by, time_ms, clock_ms)
        return Sight.FIRST_AFTER_NAMING

    def _arrived(self, frame: SeenFrame, clock_ms: int) -> Gap | None:
        self._note(frame, "first_copy")
        gap = self._gaps.arrived(frame, clock_ms)
        if gap is not None and gap.state is GapState.LOST:
            self._health.retracted(frame.named.fingerprint)
        return gap

    def _note(self, frame: SeenFrame, what: str) -> None:
        if self._journal is not None:
            self._journal.note(frame.named.fingerprint, what, frame.time_ms)

    def _check_response(self, frame: SeenFrame, clock_ms: int) -> None:
        key = frame.named.fingerprint
        if not self._repairs.responded(key, frame.time_ms, clock_ms):
            return
        self._capacity.response(frame)
        if frame.dialect is Dialect.SPEC and frame.sender:
            if len(self._participants) > self._settings.timed_participants:
                # The check of the response's time would take too long, because it
                # tests every participant of the channel.
                self._totals.leave_out(LeftOut.RESPONSE)
                return
            self._timing.responded(
                frame.sender,
                frame.named.message_id,
                self._repairs.requests_ms(key),
                self._participants.names(),
                frame.time_ms,
            )
