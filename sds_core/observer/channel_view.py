"""One channel, as a passive observer of its frames knows it.

`ChannelView.apply` is pure: digests and a clock in, totals out. Cutting the same
sequence of frames into batches in any way gives the same totals (observer model,
section 3).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import msgspec

from sds_core.observer import blob
from sds_core.observer.acknowledgements import (
    Acknowledgements,
    DefiniteAcknowledgement,
    Message,
)
from sds_core.observer.copies import Copies, CopiesState, Copy
from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.digest import ChannelDigest, SeenFrame, frames_of
from sds_core.observer.gaps import Gap, Gaps, GapState
from sds_core.observer.participants import Participant, Participants
from sds_core.observer.repairs import Repairs, Request
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.totals import ChannelTotals
from sds_core.observer.verdict import Health, HealthState
from sds_core.wire import Dialect, FrameKind

_SWEEP_MS = 60_000
"""How often old messages and gaps are looked for: forgetting may come this late."""


_COUNTED = {
    (kind, dialect): f"{kind.value}.{dialect.value}"
    for kind in FrameKind
    for dialect in Dialect
}
"""Keys of `ChannelTotals.frames`."""


class ChannelState(msgspec.Struct, array_like=True):
    """All that the view keeps, beside its totals, between two batches.

    Fields are only ever added, at the end and with a default.
    """

    clock_ms: int = 0
    swept_ms: int = 0
    highest_lamports: dict[Dialect, int] = {}
    participants: list[Participant] = []
    copies: CopiesState = msgspec.field(default_factory=CopiesState)
    messages: dict[int, Message] = {}
    gaps: dict[int, Gap] = {}
    requests: dict[int, Request] = {}
    health: HealthState = msgspec.field(default_factory=HealthState)


class ChannelView:
    """Acknowledgements, missing dependencies and repair of one channel.

    Attributes:
        totals: The figures, absolute.
    """

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        totals: ChannelTotals | None = None,
        state: ChannelState | None = None,
    ) -> None:
        self._settings = settings
        self.totals = totals = totals or ChannelTotals()
        self._state = state = state or ChannelState()
        # Nothing that copies and repairs remember is older.
        self._oldest_ms = 0
        self._deadlines = deadlines = Deadlines()
        self._participants = Participants(settings, state.participants)
        self._health = Health(settings, state.health)
        self._copies = Copies(settings, totals, state.copies)
        self._repairs = Repairs(settings, totals, deadlines, state.requests)
        self._acknowledgements = Acknowledgements(
            settings, totals, deadlines, self._participants, state.messages
        )
        self._gaps = Gaps(
            settings,
            totals,
            deadlines,
            self._participants,
            self._repairs,
            state.gaps,
        )

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> ChannelView:
        """The view as it was when the blob was made.

        Raises:
            UnknownBlobVersion: A newer sds-monitor made it.
        """
        totals, state = blob.unpack(version, data, ChannelTotals, ChannelState)
        return cls(settings, totals, state)

    def to_blob(self) -> bytes:
        """The whole view, totals first, in version `blob.VERSION`."""
        self._state.copies = self._copies.state()
        return blob.pack(self.totals, self._state)

    def apply(self, digests: Iterable[ChannelDigest], clock_ms: int) -> None:
        """Take the next frames, then move the clock to the admission time.

        Args:
            digests: Frames in any order of digests; all before the clock.
            clock_ms: Admission time T, Unix ms.
        """
        frames = [frames_of(digest) for digest in digests]
        for frame in heapq.merge(*frames, key=lambda f: f.order):
            self._advance(frame.clock_ms)
            self._take(frame)
        self._advance(clock_ms)
        self._summarise()

    def take_details(self) -> list[DefiniteAcknowledgement]:
        """Definite acknowledgements since the last call."""
        details, self._acknowledgements.details = self._acknowledgements.details, []
        return details

    @property
    def next_deadline_ms(self) -> int | None:
        """When the view must be called although nothing arrives; None if never."""
        pending = (
            self._deadlines.next_ms,
            self._health.warm_up_end_ms(),
            self._health.next_change_ms(),
        )
        return min(
            (ms for ms in pending if ms is not None and ms >= self._state.clock_ms),
            default=None,
        )

    def _advance(self, clock_ms: int) -> None:
        """Move the clock forward, firing each deadline that it passes."""
        clock_ms = max(clock_ms, self._state.clock_ms)
        for deadline_ms, due, key in self._deadlines.passed(clock_ms):
            self._fire(deadline_ms, due, key)
        self._state.clock_ms = clock_ms
        self._forget(clock_ms)

    def _fire(self, deadline_ms: int, due: Due, key: int) -> None:
        if due is Due.ACKNOWLEDGEMENT:
            unacknowledged = self._acknowledgements.deadline_passed(key, deadline_ms)
            if unacknowledged is not None:
                self._health.deadline_passed(deadline_ms, unacknowledged)
        elif due is Due.GAP_SETTLED:
            self._gaps.settled(key, deadline_ms)
        elif due is Due.GAP_OVERDUE:
            if self._gaps.overdue(key, deadline_ms):
                self._health.lost(key, deadline_ms)
        elif self._repairs.window_passed(key, deadline_ms):
            self._health.expired(deadline_ms)

    def _take(self, frame: SeenFrame) -> None:
        clock_ms = self._state.clock_ms
        copy = self._copies.classify(frame, clock_ms)
        if copy is Copy.DUPLICATE:
            return
        self._note_time(frame)
        if copy is Copy.REPLICA:
            self.totals.replicas += 1
            return
        self._count(frame)
        if self._is_forgotten(frame):
            return
        by = self._participants.index(frame.sender)
        if self._arrives(frame):
            if self._participants.spoke(by, frame.time_ms):
                self.totals.participants += 1
            if frame.kind is not FrameKind.EPHEMERAL:
                self._acknowledgements.first_copy_by(frame, by)
        self._read_history(frame, by)
        if frame.filter is not None:
            self._acknowledgements.search_filter(
                frame.filter, by, frame.time_ms, clock_ms
            )
            self._gaps.search_filter(frame.filter, by)
        for named, held in frame.requests:
            self._repairs.requested(
                named.fingerprint, held, frame.dialect, frame.time_ms, clock_ms
            )
        self._evict()

    def _note_time(self, frame: SeenFrame) -> None:
        self._health.record(self._state.clock_ms)
        totals = self.totals
        if totals.first_event_ms is None or totals.last_event_ms is None:
            totals.first_event_ms = totals.last_event_ms = frame.time_ms
        totals.first_event_ms = min(totals.first_event_ms, frame.time_ms)
        totals.last_event_ms = max(totals.last_event_ms, frame.time_ms)

    def _count(self, frame: SeenFrame) -> None:
        counted = _COUNTED[frame.kind, frame.dialect]
        self.totals.frames[counted] = self.totals.frames.get(counted, 0) + 1
        clock_ms = self._state.clock_ms
        if frame.kind is FrameKind.CONTENT:
            self._health.content(clock_ms)
        if frame.kind is not FrameKind.EPHEMERAL and self._health.in_warm_up(clock_ms):
            highest = self._state.highest_lamports
            highest[frame.dialect] = max(highest.get(frame.dialect, 0), frame.lamport)

    def _arrives(self, frame: SeenFrame) -> bool:
        """Follow the frame's own id; returns whether this is its first copy."""
        if frame.kind is not FrameKind.CONTENT:
            # Sync ids may repeat: each broadcast is a first copy (section 2).
            return True
        key, clock_ms = frame.named.fingerprint, self._state.clock_ms
        known = self._acknowledgements.get(key)
        if known is None:
            self._first_copy(frame)
            return True
        known.kept_ms = clock_ms
        sender = self._participants.index(frame.sender)
        if (known.sender, known.lamport) != (sender, frame.lamport):
            self.totals.message_id_collisions += 1
            return False
        if self._repairs.is_live(key, clock_ms):
            self.totals.rebroadcasts_repair += 1
        else:
            self.totals.rebroadcasts_retry += 1
        self._repairs.responded(key, frame.time_ms, clock_ms)
        return False

    def _is_forgotten(self, frame: SeenFrame) -> bool:
        """Whether the message is older than the horizon: its frames only count."""
        message = self._acknowledgements.get(frame.named.fingerprint)
        return (
            frame.kind is FrameKind.CONTENT
            and message is not None
            and not self._acknowledgements.is_recent(message, self._state.clock_ms)
        )

    def _first_copy(self, frame: SeenFrame) -> None:
        key, clock_ms = frame.named.fingerprint, self._state.clock_ms
        message = self._acknowledgements.first_copy(frame, clock_ms)
        gap = self._gaps.arrived(key, frame.time_ms, clock_ms)
        self._repairs.responded(key, frame.time_ms, clock_ms)
        if gap is not None:
            if gap.state is GapState.LOST:
                self._health.retracted(key)
            for by, time_ms in gap.mentions:
                self._acknowledgements.mentioned(key, message, by, time_ms)

    def _read_history(self, frame: SeenFrame, by: int) -> None:
        clock_ms = self._state.clock_ms
        warm_up = self._health.in_warm_up(clock_ms)
        highest = self._state.highest_lamports
        after_start = False
        for named in frame.history:
            key = named.fingerprint
            message = self._acknowledgements.get(key)
            if message is not None:
                message.kept_ms = clock_ms
                if message.lamport > highest.get(message.dialect, 0):
                    after_start = True
                if self._acknowledgements.is_recent(message, clock_ms):
                    self._acknowledgements.mentioned(key, message, by, frame.time_ms)
            elif key != frame.named.fingerprint:
                gap = self._gaps.named(named, by, frame.time_ms, clock_ms)
                if gap.state is GapState.NOTED and not warm_up:
                    if after_start:
                        self._gaps.opens(named, gap, frame.time_ms, clock_ms)
                    else:
                        gap.state = GapState.BEFORE_START

    def _forget(self, clock_ms: int) -> None:
        """Forget what the horizon leaves behind.

        Always done before a frame is taken and by the clock alone, so that what
        is remembered does not depend on the cut into batches.
        """
        state, horizon_ms = self._state, self._settings.horizon_ms
        if clock_ms - horizon_ms > self._oldest_ms:
            self._copies.forget_before(clock_ms - horizon_ms)
            self._repairs.forget_before(clock_ms - horizon_ms)
            oldest = (self._copies.oldest_ms, self._repairs.oldest_ms)
            self._oldest_ms = min((ms for ms in oldest if ms), default=clock_ms)
        if clock_ms - state.swept_ms >= _SWEEP_MS:
            self._sweep(clock_ms // _SWEEP_MS * _SWEEP_MS)

    def _evict(self) -> None:
        """Forget the oldest messages and gaps beyond the limit.

        Right after the frame that pushed them out, which no cut parts from it.
        """
        state, limit = self._state, self._settings.remembered
        while len(state.messages) > limit:
            self._acknowledgements.forget(next(iter(state.messages)))
            self.totals.remembered_evicted += 1
        while len(state.gaps) > limit:
            self._gaps.forget(next(iter(state.gaps)))
            self.totals.remembered_evicted += 1

    def _sweep(self, sweep_ms: int) -> None:
        """Forget messages and gaps that nobody has shown or named for the horizon."""
        state = self._state
        state.swept_ms = sweep_ms
        edge_ms = sweep_ms - self._settings.horizon_ms
        for key in [k for k, m in state.messages.items() if m.kept_ms < edge_ms]:
            self._acknowledgements.forget(key)
        for key in [k for k, gap in state.gaps.items() if gap.kept_ms < edge_ms]:
            self._gaps.forget(key)

    def _summarise(self) -> None:
        totals, clock_ms = self.totals, self._state.clock_ms
        totals.clock_ms = clock_ms
        totals.observers = self._copies.observers()
        totals.oldest_in_flight_ms = self._acknowledgements.oldest_in_flight_ms()
        totals.verdict, totals.verdict_reason = self._health.judge(
            clock_ms, totals.gaps_open
        )
