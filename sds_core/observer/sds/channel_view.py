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
from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.incidents import Incident, Incidents
from sds_core.observer.minutes import Minutes
from sds_core.observer.sds import version_1
from sds_core.observer.sds.acknowledgements import (
    Acknowledgements,
    DefiniteAcknowledgement,
)
from sds_core.observer.sds.capacity import Capacity
from sds_core.observer.sds.channel_minute import ChannelMinute
from sds_core.observer.sds.channel_state import ChannelState
from sds_core.observer.sds.copies import Copies, Copy
from sds_core.observer.sds.deliveries import Deliveries
from sds_core.observer.sds.digest import ChannelDigest, Named, SeenFrame, frames_of
from sds_core.observer.sds.filters import Filters
from sds_core.observer.sds.gaps import Gaps, GapState
from sds_core.observer.sds.health import Health
from sds_core.observer.sds.messages import PackedMessages
from sds_core.observer.sds.participants import Participants
from sds_core.observer.sds.repairs import Repairs
from sds_core.observer.sds.timing import RepairTiming
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.wire import Dialect, FrameKind

BLOB_VERSION = 3
"""Version of `ChannelView.to_blob`; every version from 1 on can be read.

Version 3 adds one field at the end of the state of version 2. A release that writes 2
would ignore the field and lose the minutes that end meanwhile, so it must refuse.
"""

_SWEEP_MS = 60_000
"""How often old messages and gaps are looked for: forgetting may come this late."""


_COUNTED = {
    (kind, dialect): f"{kind.value}.{dialect.value}"
    for kind in FrameKind
    for dialect in Dialect
}
"""Keys of `ChannelTotals.frames`."""


ChannelEvent = DefiniteAcknowledgement | Incident | ChannelMinute
"""What leaves a channel's view once."""


class ChannelView:
    """Acknowledgement, delivery, missing dependencies and repair of one channel.

    Attributes:
        totals: The figures, absolute.
    """

    is_forgotten = False

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
        self._messages = messages = state.messages.unpacked()
        self._deadlines = deadlines = Deadlines()
        self._incidents = incidents = Incidents()
        self._participants = participants = Participants(settings, state.participants)
        self._health = health = Health(settings, state.health)
        self._copies = Copies(settings, totals, state.copies)
        self._repairs = Repairs(settings, totals, deadlines, state.requests)
        self._timing = RepairTiming(settings, totals)
        self._filters = filters = Filters(settings, state.filters)
        self._capacity = Capacity(settings, totals, participants, filters, state.epoch)
        self._deliveries = Deliveries(
            settings,
            totals,
            participants,
            filters,
            health,
            incidents,
            messages,
            state.deliveries,
        )
        self._acknowledgements = Acknowledgements(
            settings,
            totals,
            deadlines,
            participants,
            self._deliveries,
            incidents,
            messages,
        )
        self._gaps = Gaps(
            settings,
            totals,
            deadlines,
            participants,
            self._repairs,
            incidents,
            state.gaps,
        )
        self._minutes = Minutes(ChannelMinute, totals, state.minutes, state.clock_ms)

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> ChannelView:
        """Restore the view that `to_blob` packed; see `View.from_blob`.

        Raises:
            UnknownBlobVersion: A newer release made it.
        """
        blob.check_version(version, BLOB_VERSION)
        head, rest = blob.split(data)
        totals = blob.unpack_totals(head, ChannelTotals)
        if version == 1:
            return cls(settings, totals, version_1.channel_state(rest, totals))
        return cls(settings, totals, msgspec.msgpack.decode(rest, type=ChannelState))

    def to_blob(self) -> bytes:
        """Pack the whole view, totals first, in version `BLOB_VERSION`."""
        state = self._state
        state.copies = self._copies.state()
        state.deliveries = self._deliveries.state()
        state.messages = PackedMessages.of(self._messages, self._with_ids())
        return blob.pack(self.totals, self._state)

    def _with_ids(self) -> set[int]:
        """Orders of the messages whose ids a later frame may still need."""
        of_use = self._deliveries.ids_of_use()
        of_use.update(m.order for m in self._messages.values() if not m.definite)
        clock_ms = self._state.clock_ms
        return {
            message.order
            for message in self._messages.values()
            if message.order in of_use
            and self._acknowledgements.is_recent(message, clock_ms)
        }

    def apply(
        self, digests: Iterable[ChannelDigest], clock_ms: int
    ) -> list[ChannelEvent]:
        """Take the next frames, then move the clock to the admission time.

        Args:
            digests: Frames in any order of digests; all before the clock.
            clock_ms: Admission time T, Unix ms.

        Returns:
            What leaves the view once: definite acknowledgements, each incident that
            began or changed, as it is now, and the minutes that ended, in order.
        """
        frames = [frames_of(digest) for digest in digests]
        for frame in heapq.merge(*frames, key=lambda f: f.order):
            self._advance(frame.clock_ms)
            self._take(frame)
        self._advance(clock_ms)
        self._summarise()
        return [
            *self._acknowledgements.take_definite(),
            *self._incidents.take(),
            *self._minutes.take(),
        ]

    @property
    def next_deadline_ms(self) -> int | None:
        """When the view must be called although nothing arrives; None if never."""
        pending = (
            self._deadlines.next_ms,
            self._health.next_change_ms,
            self._capacity.next_change_ms(self._state.clock_ms),
            self._minutes.deadline_ms(self._state.clock_ms),
        )
        return min(
            (ms for ms in pending if ms is not None and ms >= self._state.clock_ms),
            default=None,
        )

    def _advance(self, clock_ms: int) -> None:
        """Move the clock forward, with a stop where a minute ends that may be told."""
        clock_ms = max(clock_ms, self._state.clock_ms)
        while (end_ms := self._next_look_ms()) <= clock_ms:
            self._pass(end_ms)
            self._summarise()
            self._minutes.look(self._capacity.next_change_ms(end_ms))
        self._pass(clock_ms)

    def _next_look_ms(self) -> int:
        """The end of the next minute in which a figure might change."""
        # Of a release that waited for longer, moments may lie before the clock.
        moment_ms = max(self._next_moment_ms(), self._state.clock_ms)
        self._minutes.might_change(moment_ms)
        return self._minutes.look_ms

    def _pass(self, clock_ms: int) -> None:
        """Move the clock forward, firing each deadline that it passes."""
        while (moment_ms := self._next_moment_ms()) < clock_ms:
            for deadline_ms, due, key in self._deadlines.passed(moment_ms + 1):
                self._fire(deadline_ms, due, key)
            self._health.judge(moment_ms + 1, self.totals.gaps_open)
        self._state.clock_ms = clock_ms
        self._forget(clock_ms)

    def _next_moment_ms(self) -> int:
        """When the next deadline is or something leaves the verdict's window."""
        deadline_ms, edge_ms = self._deadlines.next_ms, self._health.edge_ms
        return edge_ms if deadline_ms is None else min(deadline_ms, edge_ms)

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
        self._minutes.might_change(clock_ms)
        self._note_time(frame)
        if copy is Copy.REPLICA:
            self.totals.replicas += 1
        else:
            self._broadcast(frame, clock_ms)
        self._health.judge(clock_ms, self.totals.gaps_open)

    def _broadcast(self, frame: SeenFrame, clock_ms: int) -> None:
        """A frame that is no copy."""
        self._count(frame)
        if self._only_counts(frame):
            return
        by = self._participants.index(frame.sender)
        is_first_copy = self._arrives(frame)
        if is_first_copy:
            self._first_copy_by(frame, by, clock_ms)
        self._read_history(frame, by)
        if frame.filter is not None:
            self._acknowledgements.search_filter(
                frame.filter, by, frame.time_ms, clock_ms
            )
            self._gaps.search_filter(frame, frame.filter, by, is_first_copy)
        for named, held in frame.requests:
            if self._repairs.requested(
                named.fingerprint, by, held, frame.dialect, frame.time_ms, clock_ms
            ):
                self._time_request(frame, named, by)
        self._evict()

    def _first_copy_by(self, frame: SeenFrame, by: int, clock_ms: int) -> None:
        """A participant says something of its own for the first time."""
        is_newest = self._filters.first_copy_by(frame, by)
        if is_newest and frame.filter is not None:
            rate = frame.filter.false_positive_rate()
            self._health.filter(by, frame.time_ms, rate)
        own = self._acknowledgements.get(frame.named.fingerprint)
        self._deliveries.first_copy_by(
            frame,
            by,
            clock_ms,
            is_newest,
            was_named_before=frame.kind is FrameKind.CONTENT
            and own is not None
            and own.was_named_before,
        )
        if self._participants.spoke(by, frame.time_ms):
            self.totals.participants += 1
        self._capacity.first_copy_by(by, clock_ms)
        if frame.kind is not FrameKind.EPHEMERAL:
            self._acknowledgements.first_copy_by(frame, by)

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
        self._capacity.frame(frame)
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
        self._responds(frame)
        return False

    def _only_counts(self, frame: SeenFrame) -> bool:
        """Whether the frame or its message is older than the horizon: a frame, no more.

        Nobody can know any more what a record so late was to those before it.
        """
        horizon_ms = self._settings.horizon_ms
        if frame.time_ms < self._state.clock_ms - horizon_ms:
            return True
        message = self._acknowledgements.get(frame.named.fingerprint)
        return (
            frame.kind is FrameKind.CONTENT
            and message is not None
            and not self._acknowledgements.is_recent(message, self._state.clock_ms)
        )

    def _first_copy(self, frame: SeenFrame) -> None:
        key, clock_ms = frame.named.fingerprint, self._state.clock_ms
        message = self._acknowledgements.first_copy(frame, clock_ms)
        gap = self._gaps.arrived(frame, clock_ms)
        self._responds(frame)
        if gap is not None:
            message.was_named_before = True
            message.hint = gap.hint
            if gap.state is GapState.LOST:
                self._health.retracted(key)
            for by, time_ms in gap.mentions:
                self._acknowledgements.mentioned(message, by, time_ms, clock_ms)

    def _responds(self, frame: SeenFrame) -> None:
        """A content message is broadcast: a response if somebody asks for it."""
        key, clock_ms = frame.named.fingerprint, self._state.clock_ms
        if not self._repairs.responded(key, frame.time_ms, clock_ms):
            return
        self._capacity.response(frame)
        if frame.dialect is Dialect.SPEC and frame.sender:
            self._timing.responded(
                frame.sender,
                frame.named.message_id,
                self._repairs.requests_ms(key),
                self._participants.names(),
                frame.time_ms,
            )

    def _time_request(self, frame: SeenFrame, named: Named, by: int) -> None:
        """A participant asks for an id for the first time."""
        message = self._acknowledgements.get(named.fingerprint)
        if message is None:
            known_ms = self._gaps.named_by_other_ms(named.fingerprint, by)
        elif message.was_named_before or message.sender == by:
            # Nobody can tell any more when the requester could first know of it.
            known_ms = None
        else:
            known_ms = message.t0_ms
        if known_ms is not None and frame.dialect is Dialect.SPEC:
            self._timing.requested(
                frame.sender, named.message_id, known_ms, frame.time_ms
            )

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
                    message.hint = message.hint or named.hint
                    self._acknowledgements.mentioned(
                        message, by, frame.time_ms, clock_ms
                    )
            elif key != frame.named.fingerprint:
                gap = self._gaps.named(named, by, frame.time_ms, clock_ms)
                if gap.state is GapState.NOTED and not warm_up:
                    if after_start:
                        self._gaps.opens(named, gap, frame, clock_ms)
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
        while len(self._messages) > limit:
            self._acknowledgements.forget(next(iter(self._messages)))
            self.totals.remembered_evicted += 1
        while len(state.gaps) > limit:
            self._gaps.forget(next(iter(state.gaps)))
            self.totals.remembered_evicted += 1

    def _sweep(self, sweep_ms: int) -> None:
        """Forget messages and gaps that nobody has shown or named for the horizon."""
        state = self._state
        state.swept_ms = sweep_ms
        edge_ms = sweep_ms - self._settings.horizon_ms
        for key in [k for k, m in self._messages.items() if m.kept_ms < edge_ms]:
            self._acknowledgements.forget(key)
        for key in [k for k, gap in state.gaps.items() if gap.kept_ms < edge_ms]:
            self._gaps.forget(key)
        # Whoever has been silent for longer is not active for any recent message.
        silent_ms = edge_ms - self._settings.horizon_ms
        self._filters.forget_before(silent_ms)
        self._deliveries.forget_silent_since(silent_ms)

    def _summarise(self) -> None:
        totals, clock_ms = self.totals, self._state.clock_ms
        totals.clock_ms = clock_ms
        totals.observers = self._copies.observers()
        totals.oldest_in_flight_ms = self._acknowledgements.oldest_in_flight_ms()
        health = self._state.health
        totals.verdict, totals.verdict_reason = health.verdict, health.reason
        totals.verdict_since_ms = health.since_ms
        self._capacity.summarise(clock_ms)
