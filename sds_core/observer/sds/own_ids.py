"""How a broadcast relates to earlier ones with its id (docs/figures.md, 2)."""

from __future__ import annotations

import enum

from sds_core.observer.sds.acknowledgements import Acknowledgements
from sds_core.observer.sds.capacity import Capacity
from sds_core.observer.sds.gap_states import GapState
from sds_core.observer.sds.gap_table import Gap
from sds_core.observer.sds.gaps import Gaps
from sds_core.observer.sds.health import Health
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.old_ids import OldIds
from sds_core.observer.sds.participants import Participants
from sds_core.observer.sds.repairs import Repairs
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.observer.sds.segments import Segments
from sds_core.observer.sds.sync_table import SeenSync, SyncTable
from sds_core.observer.sds.timing import RepairTiming
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect, FrameKind


class Sight(enum.Enum):
    """How a broadcast relates to earlier ones with its id."""

    FIRST = enum.auto()
    FIRST_AFTER_NAMING = enum.auto()
    """A first copy whose id a causal history named before any tap saw it."""
    AGAIN = enum.auto()
    OLD = enum.auto()
    """Again, and the first copy is beyond the horizon."""


class OwnIds:
    """Follows the id of each broadcast: first copies, rebroadcasts, responses.

    All arguments are parts of the channel's model.
    """

    def __init__(
        self,
        settings: ObserverSettings,
        totals: ChannelTotals,
        participants: Participants,
        acknowledgements: Acknowledgements,
        syncs: SyncTable,
        old_ids: OldIds,
        gaps: Gaps,
        repairs: Repairs,
        timing: RepairTiming,
        capacity: Capacity,
        segments: Segments,
        health: Health,
    ) -> None:
        self._settings = settings
        self._totals = totals
        self._participants = participants
        self._acknowledgements = acknowledgements
        self._syncs = syncs
        self._old_ids = old_ids
        self._gaps = gaps
        self._repairs = repairs
        self._timing = timing
        self._capacity = capacity
        self._segments = segments
        self._health = health

    def follow(self, frame: SeenFrame, clock_ms: int) -> Sight:
        """Count a broadcast by what was seen of its id, and remember the id.

        Args:
            frame: A frame that is no copy.
            clock_ms: The channel's clock.
        """
        if frame.kind is FrameKind.EPHEMERAL:
            return Sight.FIRST
        if frame.kind is FrameKind.SYNC:
            return self._follow_sync(frame, clock_ms)
        key = frame.named.fingerprint
        known = self._acknowledgements.get(key)
        if known is None:
            if key not in self._old_ids:
                return self._first_copy(frame, clock_ms)
            self._again(frame, clock_ms)
            return Sight.OLD
        known.latest_ms = clock_ms
        sender = self._participants.index(frame.sender)
        if (known.sender, known.lamport) == (sender, frame.lamport):
            self._again(frame, clock_ms)
        else:
            self._totals.message_id_collisions += 1
        return self._age(known.seen_ms, clock_ms)

    def was_seen(self, key: int, clock_ms: int) -> bool:
        """Whether an id that is named is of a sync frame or a forgotten message.

        Args:
            key: Its fingerprint.
            clock_ms: The channel's clock; the sync frame is remembered from then on.
        """
        sync = self._syncs.get(key)
        if sync is not None:
            sync.latest_ms, sync.is_named = clock_ms, True
            return True
        return key in self._old_ids

    def forget(self, key: int) -> None:
        """Forget all of a content message but that it was seen."""
        self._acknowledgements.forget(key)
        self._old_ids.add(key)

    def forget_sync(self, key: int) -> None:
        """Forget a sync frame; one that was named may be named again."""
        if self._syncs[key].is_named:
            self._old_ids.add(key)
        del self._syncs[key]

    def _follow_sync(self, frame: SeenFrame, clock_ms: int) -> Sight:
        """Follow a sync frame; another one may have had the same id."""
        key = frame.named.fingerprint
        sender = self._participants.index(frame.sender)
        known = self._syncs.get(key)
        if known is None and key in self._old_ids:
            self._again(frame, clock_ms)
            return Sight.OLD
        if known is not None and (known.sender, known.lamport) == (
            sender,
            frame.lamport,
        ):
            known.latest_ms = clock_ms
            self._again(frame, clock_ms)
            return self._age(known.seen_ms, clock_ms)
        gap = self._arrived(frame, clock_ms)
        self._syncs[key] = SeenSync(
            clock_ms,
            clock_ms,
            sender,
            frame.lamport,
            frame.dialect,
            is_named=gap is not None or (known is not None and known.is_named),
        )
        self._check_response(frame, clock_ms)
        return Sight.FIRST if gap is None else Sight.FIRST_AFTER_NAMING

    def _age(self, seen_ms: int, clock_ms: int) -> Sight:
        """Of a rebroadcast, by the clock at the first copy."""
        is_recent = clock_ms <= seen_ms + self._settings.horizon_ms
        return Sight.AGAIN if is_recent else Sight.OLD

    def _again(self, frame: SeenFrame, clock_ms: int) -> None:
        """Count a rebroadcast by its cause."""
        if self._repairs.is_live(frame.named.fingerprint, clock_ms):
            self._totals.rebroadcasts_repair += 1
        else:
            self._totals.rebroadcasts_retry += 1
            self._capacity.sent_by(self._participants.index(frame.sender), clock_ms)
        self._check_response(frame, clock_ms)

    def _first_copy(self, frame: SeenFrame, clock_ms: int) -> Sight:
        """Begin to follow a content message; it fills the gap that waits for it."""
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
        """End the gap that waits for a first copy; returns it as it was."""
        gap = self._gaps.arrived(frame, clock_ms)
        if gap is not None and gap.state is GapState.LOST:
            self._health.retracted(frame.named.fingerprint)
        return gap

    def _check_response(self, frame: SeenFrame, clock_ms: int) -> None:
        """Count a broadcast as a response if its message was requested."""
        key = frame.named.fingerprint
        if not self._repairs.responded(key, frame.time_ms, clock_ms):
            return
        self._capacity.response(frame)
        if frame.dialect is Dialect.SPEC and frame.sender:
            if len(self._participants) > self._settings.timed_participants:
                # Each of them would have to be tried.
                self._totals.leave_out(LeftOut.RESPONSE)
                return
            self._timing.responded(
                frame.sender,
                frame.named.message_id,
                self._repairs.requests_ms(key),
                self._participants.names(),
                frame.time_ms,
            )
