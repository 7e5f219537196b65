"""View of one channel: what a passive observer concludes from its frames.

`ChannelView.apply` is pure: it takes digests and a clock, and updates the totals. The
totals do not depend on how the sequence of frames is cut into batches
(docs/figures.md, 3).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import islice

import msgspec
from msgspec.structs import replace

from sds_core.observer import blob
from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.incidents import Incident, Incidents
from sds_core.observer.minutes import Minutes
from sds_core.observer.sds import version_1
from sds_core.observer.sds.acknowledgements import (
    Acknowledgements,
    DefiniteAcknowledgement,
)
from sds_core.observer.sds.capacity import Capacity
from sds_core.observer.sds.channel_minute import ChannelMinute
from sds_core.observer.sds.channel_state import (
    BLOB_VERSION,
    CHECKSUM_SINCE,
    ChannelState,
)
from sds_core.observer.sds.copies import Copies, Copy
from sds_core.observer.sds.deliveries import Deliveries
from sds_core.observer.sds.digest import ChannelDigest
from sds_core.observer.sds.filters import Filters
from sds_core.observer.sds.gap_states import GapEvent, GapState
from sds_core.observer.sds.gaps import Gaps
from sds_core.observer.sds.health import Health
from sds_core.observer.sds.history_heads import HistoryHeads
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.messages import PackedMessages
from sds_core.observer.sds.participant_figures import pack_participants
from sds_core.observer.sds.participants import Participants
from sds_core.observer.sds.repairs import Repairs
from sds_core.observer.sds.seen_frames import Named, SeenFrame, frames_of
from sds_core.observer.sds.start import Start
from sds_core.observer.sds.timing import RepairTiming
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.wire import Dialect, FrameKind

_SWEEP_MS = 60_000
"""Time between sweeps: old messages and gaps are forgotten up to this much later."""

_MOMENTARY = {"evidence": None, "participant_table": b""}
"""Figures of the present alone, as minutes and the last totals have them."""

_COUNTED = {
    (kind, dialect): f"{kind.value}.{dialect.value}"
    for kind in FrameKind
    for dialect in Dialect
}
"""Keys of `ChannelTotals.frames`."""

ChannelEvent = DefiniteAcknowledgement | Incident | ChannelMinute | Forgotten
"""Values that `ChannelView.apply` returns once."""


class ChannelView:
    """Acknowledgement, delivery, missing dependencies and repair of one channel.

    A channel that is silent for `forget_ms` is forgotten; if it returns, it is new.

    Attributes:
        totals: The figures since the channel's first record.
    """

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        totals: ChannelTotals | None = None,
        state: ChannelState | None = None,
    ) -> None:
        self._settings = settings
        self._begin(totals or ChannelTotals(), state or ChannelState())

    def _begin(self, totals: ChannelTotals, state: ChannelState) -> None:
        """Make the parts of the view from totals and state."""
        settings = self._settings
        self.totals = totals
        self._state = state
        # Lower bound of the clocks in `_copies` and `_repairs`.
        self._oldest_ms = 0
        self._messages = messages = state.messages.unpacked()
        self._deadlines = deadlines = Deadlines()
        self._incidents = incidents = Incidents()
        self._participants = participants = Participants(settings, state.participants)
        self._health = health = Health(settings, state.health)
        self._copies = Copies(settings, totals, state.copies)
        self._heads = HistoryHeads(settings, participants, state.heads)
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
        self._start = Start(
            state.highest_lamports, messages, self._gaps, filters, self._heads
        )
        self._minutes = Minutes(
            ChannelMinute,
            totals,
            state.minutes,
            state.clock_ms,
            momentary=_MOMENTARY,
        )

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> ChannelView:
        """Restore the view that `to_blob` packed; see `View.from_blob`."""
        with blob.opened(version, data, BLOB_VERSION, CHECKSUM_SINCE) as body:
            head, rest = blob.split(body)
            totals = blob.unpack_totals(head, ChannelTotals)
            if version == 1:
                return cls(settings, totals, version_1.channel_state(rest, totals))
            state = msgspec.msgpack.decode(rest, type=ChannelState)
            return cls(settings, totals, state)

    def to_blob(self) -> bytes:
        """Pack the whole view, totals first, in version `BLOB_VERSION`."""
        state = self._state
        state.copies = self._copies.state()
        state.deliveries = self._deliveries.state()
        of_use = self._acknowledgements.orders_of_use(state.clock_ms)
        state.messages = PackedMessages.of(self._messages, of_use)
        return blob.pack(self.totals, self._state)

    def apply(
        self, digests: Iterable[ChannelDigest], clock_ms: int
    ) -> list[ChannelEvent]:
        """Apply the next frames, then move the clock to the admission time.

        Args:
            digests: The frames; digests may be in any order.
            clock_ms: Admission time T, Unix ms.

        Returns:
            Definite acknowledgements, then each incident that began or changed, as it
            is now, then the minutes that ended. Each is returned once. If the channel
            was forgotten meanwhile, what came before comes first, and its end.
        """
        frames = [frames_of(digest) for digest in digests]
        events: list[ChannelEvent] = []
        for frame in heapq.merge(*frames, key=lambda f: f.order):
            events += self._end_of_silence(frame.clock_ms)
            self._advance(frame.clock_ms)
            self._apply_frame(frame)
        events += self._end_of_silence(clock_ms)
        self._advance(clock_ms)
        self._summarise()
        return [*events, *self._drain()]

    def forget(self) -> list[ChannelEvent]:
        """Forget the channel; see `View.forget`.

        The last minute is returned although it has not ended.
        """
        if self.is_forgotten:
            return []
        self._summarise()
        self._minutes.finish(self._state.clock_ms)
        last = replace(self.totals, **_MOMENTARY)
        events = [*self._drain(), Forgotten(blob.pack_totals(last))]
        self._begin(ChannelTotals(), ChannelState())
        return events

    @property
    def is_forgotten(self) -> bool:
        """Whether the channel was forgotten and has sent nothing since."""
        return self.totals.first_event_ms is None

    @property
    def next_deadline_ms(self) -> int | None:
        """Deadline after which `apply` is due even without frames; None if never."""
        pending = (
            self._deadlines.next_ms,
            self._health.next_change_ms,
            self._capacity.next_change_ms(self._state.clock_ms),
            self._minutes.deadline_ms(self._state.clock_ms),
            self._silent_until_ms,
        )
        return min(
            (ms for ms in pending if ms is not None and ms >= self._state.clock_ms),
            default=None,
        )

    @property
    def _silent_until_ms(self) -> int | None:
        """Clock after which the channel is forgotten if it stays silent."""
        heard_ms = self._state.heard_ms
        if heard_ms is None:
            heard_ms = self.totals.last_event_ms
        if heard_ms is None or not self._settings.forget_ms:
            return None
        return heard_ms + self._settings.forget_ms

    def _end_of_silence(self, clock_ms: int) -> list[ChannelEvent]:
        """Forget the channel if it is silent for too long at this clock.

        This comes before the frame that ends the silence, so that the cut into batches
        does not matter.
        """
        until_ms = self._silent_until_ms
        if until_ms is None or clock_ms <= until_ms:
            return []
        self._advance(until_ms)
        return self.forget()

    def _drain(self) -> list[ChannelEvent]:
        """Return the events since the last call; list the participants as of now."""
        self.totals.participant_table = pack_participants(
            self._participants,
            self._deliveries,
            self._capacity,
            self.totals.participants,
        )
        return [
            *self._acknowledgements.drain_definite(),
            *self._incidents.drain(),
            *self._minutes.take(),
        ]

    def _advance(self, clock_ms: int) -> None:
        """Move the clock forward; stop where a minute ends that may be reported."""
        clock_ms = max(clock_ms, self._state.clock_ms)
        while (end_ms := self._next_minute_end_ms()) <= clock_ms:
            self._pass(end_ms)
            self._summarise()
            self._minutes.check(self._capacity.next_change_ms(end_ms))
        self._pass(clock_ms)

    def _next_minute_end_ms(self) -> int:
        """End of the next minute in which a figure may change, Unix ms."""
        # A state of an earlier release may have moments before the clock.
        moment_ms = max(self._next_moment_ms(), self._state.clock_ms)
        self._minutes.might_change(moment_ms)
        return self._minutes.check_ms

    def _pass(self, clock_ms: int) -> None:
        """Move the clock forward; fire each deadline that it passes."""
        while (moment_ms := self._next_moment_ms()) < clock_ms:
            for deadline_ms, due, key in self._deadlines.passed(moment_ms + 1):
                self._fire(deadline_ms, due, key)
            self._health.judge(moment_ms + 1, self.totals.gaps_open)
        self._state.clock_ms = clock_ms
        self._forget(clock_ms)

    def _next_moment_ms(self) -> int:
        """Next deadline, or when an event leaves the verdict's window, if earlier."""
        deadline_ms, edge_ms = self._deadlines.next_ms, self._health.edge_ms
        return edge_ms if deadline_ms is None else min(deadline_ms, edge_ms)

    def _fire(self, deadline_ms: int, due: Due, key: int) -> None:
        """Handle a deadline that has passed."""
        if due is Due.ACKNOWLEDGEMENT:
            unacknowledged = self._acknowledgements.deadline_passed(key, deadline_ms)
            if unacknowledged is not None:
                self._health.deadline_passed(deadline_ms, unacknowledged)
        elif due is Due.GAP_SETTLED:
            if self._gaps.settle_time_passed(key, deadline_ms):
                self._health.gap_opened(deadline_ms - self._settings.settle_ms)
        elif due is Due.GAP_OVERDUE:
            if self._gaps.deadline_passed(key, deadline_ms):
                self._health.lost(key, deadline_ms)
        elif self._repairs.window_passed(key, deadline_ms):
            self._health.expired(deadline_ms)

    def _apply_frame(self, frame: SeenFrame) -> None:
        """Ignore a duplicate, count a replica, follow a broadcast."""
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
        """Follow a frame that is not a copy."""
        self._count(frame)
        if self._acknowledgements.is_too_old(frame, clock_ms):
            return
        by = self._participants.index(frame.sender)
        is_first_copy = self._follow_own_id(frame)
        if is_first_copy:
            self._first_copy_by(frame, by, clock_ms)
        after_start = self._start.first_copy_by(frame, by) if is_first_copy else 0
        self._read_history(frame, by, after_start)
        self._acknowledgements.read_frame(frame, by, clock_ms, is_first_copy)
        if frame.filter is not None:
            self._gaps.search_filter(frame, frame.filter, by, is_first_copy)
        for named, held in frame.requests:
            if self._repairs.requested(
                named.fingerprint, by, held, frame.dialect, frame.time_ms, clock_ms
            ):
                self._time_request(frame, named, by)
        self._evict()

    def _first_copy_by(self, frame: SeenFrame, by: int, clock_ms: int) -> None:
        """Record a participant's first copy."""
        is_newest = self._filters.first_copy_by(frame, by)
        if is_newest and frame.filter is not None:
            rate = frame.filter.false_positive_rate()
            self._health.filter(by, frame.time_ms, rate)
        own = self._acknowledgements.get(frame.named.fingerprint)
        was_named_before = (
            frame.kind is FrameKind.CONTENT and own is not None and own.was_named_before
        )
        self._deliveries.first_copy_by(frame, by, clock_ms, is_newest, was_named_before)
        if self._participants.spoke(by, frame.time_ms):
            self.totals.participants += 1
        self._capacity.first_copy_by(by, clock_ms)

    def _note_time(self, frame: SeenFrame) -> None:
        """Record the event time of a frame."""
        self._health.record(self._state.clock_ms)
        self._state.heard_ms = self._state.clock_ms
        totals = self.totals
        if totals.first_event_ms is None or totals.last_event_ms is None:
            totals.first_event_ms = totals.last_event_ms = frame.time_ms
        totals.first_event_ms = min(totals.first_event_ms, frame.time_ms)
        totals.last_event_ms = max(totals.last_event_ms, frame.time_ms)

    def _count(self, frame: SeenFrame) -> None:
        """Count a broadcast, its bytes and its Lamport timestamp in the warm-up."""
        counted = _COUNTED[frame.kind, frame.dialect]
        self.totals.frames[counted] = self.totals.frames.get(counted, 0) + 1
        self.totals.leave_out(LeftOut.HISTORY, frame.history_left_out)
        self.totals.leave_out(LeftOut.REQUEST, frame.requests_left_out)
        self._capacity.frame(frame)
        clock_ms = self._state.clock_ms
        if frame.kind is FrameKind.CONTENT:
            self._health.content(clock_ms)
        if self._health.in_warm_up(clock_ms):
            self._start.in_warm_up(frame)

    def _follow_own_id(self, frame: SeenFrame) -> bool:
        """Follow the frame's own id; returns whether the frame is its first copy."""
        if frame.kind is not FrameKind.CONTENT:
            # Sync ids may repeat: each broadcast is a first copy (docs/figures.md, 2).
            return True
        key, clock_ms = frame.named.fingerprint, self._state.clock_ms
        known = self._acknowledgements.get(key)
        if known is None:
            self._first_copy(frame)
            return True
        known.latest_ms = clock_ms
        sender = self._participants.index(frame.sender)
        if (known.sender, known.lamport) != (sender, frame.lamport):
            self.totals.message_id_collisions += 1
            return False
        if self._repairs.is_live(key, clock_ms):
            self.totals.rebroadcasts_repair += 1
        else:
            self.totals.rebroadcasts_retry += 1
        self._check_response(frame)
        return False

    def _first_copy(self, frame: SeenFrame) -> None:
        """Begin to follow a message; it fills the gap that waits for it."""
        key, clock_ms = frame.named.fingerprint, self._state.clock_ms
        message = self._acknowledgements.first_copy(frame, clock_ms)
        gap = self._gaps.arrived(frame, clock_ms)
        self._check_response(frame)
        if gap is not None:
            message.was_named_before = True
            message.hint = gap.hint
            if gap.state is GapState.LOST:
                self._health.retracted(key)
            for by, time_ms in gap.mentions:
                self._acknowledgements.mentioned(message, by, time_ms, clock_ms)

    def _check_response(self, frame: SeenFrame) -> None:
        """Count a broadcast of a content message as a response if it was requested."""
        key, clock_ms = frame.named.fingerprint, self._state.clock_ms
        if not self._repairs.responded(key, frame.time_ms, clock_ms):
            return
        self._capacity.response(frame)
        if frame.dialect is Dialect.SPEC and frame.sender:
            if len(self._participants) > self._settings.timed_participants:
                # Each of them would have to be tried.
                self.totals.leave_out(LeftOut.RESPONSE)
                return
            self._timing.responded(
                frame.sender,
                frame.named.message_id,
                self._repairs.requests_ms(key),
                self._participants.names(),
                frame.time_ms,
            )

    def _time_request(self, frame: SeenFrame, named: Named, by: int) -> None:
        """Check the time of a participant's first request for an id."""
        message = self._acknowledgements.get(named.fingerprint)
        if message is None:
            known_ms = self._gaps.named_by_other_ms(named.fingerprint, by)
        elif message.was_named_before or message.sender == by:
            # It is unknown when the requester could first know of the message.
            known_ms = None
        else:
            known_ms = message.t0_ms
        if known_ms is not None and frame.dialect is Dialect.SPEC:
            self._timing.requested(
                frame.sender, named.message_id, known_ms, frame.time_ms
            )

    def _read_history(self, frame: SeenFrame, by: int, after_start: int) -> None:
        """Follow each id that the frame's causal history names.

        The last `after_start` of them were sent after the start.
        """
        clock_ms = self._state.clock_ms
        naming = before_start = GapEvent.NAMED_BEFORE_START
        if self._health.in_warm_up(clock_ms):
            naming = GapEvent.NAMED_IN_WARM_UP
        first_after = len(frame.history) - after_start
        for place, named in enumerate(frame.history):
            key = named.fingerprint
            message = self._acknowledgements.get(key)
            if naming is before_start and (
                place >= first_after or not self._start.is_before(key)
            ):
                naming = GapEvent.NAMED_AFTER_START
            if message is not None:
                message.latest_ms = clock_ms
                if self._acknowledgements.is_recent(message, clock_ms):
                    message.hint = message.hint or named.hint
                    self._acknowledgements.mentioned(
                        message, by, frame.time_ms, clock_ms
                    )
            elif key != frame.named.fingerprint:
                self._gaps.named(named, naming, frame, by, clock_ms)

    def _forget(self, clock_ms: int) -> None:
        """Forget entries older than the horizon.

        Happens before each frame and by the clock alone, so that memory does not
        depend on how the frames are cut into batches.
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
        """Forget the oldest messages, gaps and requests beyond the limit.

        Happens right after the frame that exceeded the limit, in the same batch.
        """
        limit = self._settings.remembered
        for entries, forget in (
            (self._messages, self._acknowledgements.forget),
            (self._state.gaps, self._gaps.forget),
        ):
            excess = max(0, len(entries) - limit)
            for key in list(islice(entries, excess)):
                forget(key)
            self.totals.remembered_evicted += excess
        self._repairs.evict()

    def _sweep(self, sweep_ms: int) -> None:
        """Forget messages and gaps that were neither seen nor named for the horizon."""
        state = self._state
        state.swept_ms = sweep_ms
        edge_ms = sweep_ms - self._settings.horizon_ms
        for key in [k for k, m in self._messages.items() if m.latest_ms < edge_ms]:
            self._acknowledgements.forget(key)
        for key in [k for k, gap in state.gaps.items() if gap.last_named_ms < edge_ms]:
            self._gaps.forget(key)
        # A participant silent for longer is active for no message in the horizon.
        silent_ms = edge_ms - self._settings.horizon_ms
        self._filters.forget_before(silent_ms)
        self._deliveries.forget_silent_since(silent_ms)
        self._heads.forget_silent_since(silent_ms)

    def _summarise(self) -> None:
        """Set the totals that are gauges, as of the clock."""
        totals, clock_ms = self.totals, self._state.clock_ms
        totals.clock_ms = clock_ms
        totals.observers = self._copies.observers()
        totals.oldest_in_flight_ms = self._acknowledgements.oldest_in_flight_ms()
        health = self._state.health
        totals.verdict, totals.verdict_reason = health.verdict, health.reason
        totals.verdict_since_ms = health.since_ms
        totals.evidence = self._health.evidence(clock_ms, totals.gaps_open)
        self._capacity.summarise(clock_ms)
