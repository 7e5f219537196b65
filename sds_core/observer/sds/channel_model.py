"""Draws all conclusions about one channel from its frames.

`ChannelView` passes each frame and each new time of the clock to the model. How the
frames are divided into batches does not affect the result.
"""

from __future__ import annotations

from sds_core.native import native
from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.incidents import Incident, Incidents
from sds_core.observer.journal import Journal
from sds_core.observer.rule_settings import RuleSettings, rule_settings
from sds_core.observer.sds.acknowledgements import (
    Acknowledgements,
    DefiniteAcknowledgement,
)
from sds_core.observer.sds.capacity import Capacity
from sds_core.observer.sds.channel_state import ChannelState
from sds_core.observer.sds.copies import Copies, Copy
from sds_core.observer.sds.deliveries import Deliveries
from sds_core.observer.sds.filters import Filters
from sds_core.observer.sds.forgotten_messages import ForgottenMessages
from sds_core.observer.sds.gap_states import GapEvent
from sds_core.observer.sds.gap_table import GapTable
from sds_core.observer.sds.gaps import Gaps
from sds_core.observer.sds.health import Health
from sds_core.observer.sds.history_heads import HistoryHeads
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.messages import Message, MessageTable
from sds_core.observer.sds.own_ids import OwnIds, Sight
from sds_core.observer.sds.participant_figures import pack_participants
from sds_core.observer.sds.participants import Participants
from sds_core.observer.sds.repairs import Repairs
from sds_core.observer.sds.requests import RequestTable
from sds_core.observer.sds.seen_frames import COUNTED, Named, SeenFrame
from sds_core.observer.sds.seen_ids import SeenIdTable
from sds_core.observer.sds.segments import Segments
from sds_core.observer.sds.start import Start
from sds_core.observer.sds.start_filters import StartFilters
from sds_core.observer.sds.suspicion import Memory, suspects_of
from sds_core.observer.sds.timing import RepairTiming
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect, FrameKind

_SWEEP_MS = 60_000
"""Time between sweeps, which drop old messages and gaps."""


@native
class ChannelModel:
    """Tracks acknowledgement, delivery, dependencies and repair of messages."""

    _settings: RuleSettings
    _totals: ChannelTotals
    _state: ChannelState
    _oldest_ms: int
    _messages: MessageTable
    _gap_table: GapTable
    _request_table: RequestTable
    _deadlines: Deadlines
    _incidents: Incidents
    _participants: Participants
    _health: Health
    _copies: Copies
    _heads: HistoryHeads
    _repairs: Repairs
    _timing: RepairTiming
    _segments: Segments
    _filters: Filters
    _capacity: Capacity
    _deliveries: Deliveries
    _acknowledgements: Acknowledgements
    _gaps: Gaps
    _start: Start
    _seen_ids: SeenIdTable
    _forgotten: ForgottenMessages
    _own_ids: OwnIds
    _journal: Journal | None

    def __init__(
        self,
        given: ObserverSettings,
        totals: ChannelTotals,
        state: ChannelState,
        journal: Journal | None,
    ) -> None:
        self._settings = settings = rule_settings(given)
        self._totals = totals
        self._state = state
        self._journal = journal
        # No entry of `_copies` or `_repairs` is older than this time of the clock.
        self._oldest_ms = 0
        self._messages = messages = MessageTable(state.messages)
        self._gap_table = gaps = GapTable(state.gaps)
        self._request_table = requests = RequestTable(state.requests)
        self._seen_ids = seen_ids = SeenIdTable(state.seen_ids)
        self._forgotten = forgotten = ForgottenMessages(
            settings, totals, state.forgotten
        )
        self._deadlines = deadlines = Deadlines()
        deadlines.add_all(Due.EPISODE_EXPIRED, requests.open_until())
        self._incidents = incidents = Incidents()
        self._participants = participants = Participants(settings, state.participants)
        self._health = health = Health(settings, state.health)
        self._copies = Copies(settings, totals, state.copies)
        self._heads = HistoryHeads(settings, participants, state.heads)
        self._repairs = Repairs(settings, totals, deadlines, requests, journal)
        self._timing = RepairTiming(settings, totals, journal)
        self._segments = Segments(settings, totals, deadlines, state.segments, journal)
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
            state.clock_ms,
            journal,
        )
        self._acknowledgements = Acknowledgements(
            settings,
            totals,
            deadlines,
            participants,
            self._deliveries,
            incidents,
            messages,
            state.clock_ms,
            journal,
        )
        self._gaps = Gaps(
            settings,
            totals,
            deadlines,
            participants,
            self._repairs,
            incidents,
            gaps,
            journal,
        )
        self._own_ids = OwnIds(
            settings,
            totals,
            participants,
            self._acknowledgements,
            seen_ids,
            forgotten,
            self._gaps,
            self._repairs,
            self._timing,
            self._capacity,
            self._segments,
            health,
            journal,
        )
        self._start = Start(
            state.highest_lamports,
            messages,
            self._gaps,
            filters,
            self._heads,
            StartFilters(settings, totals, state.start_filters),
            seen_ids,
            forgotten,
        )

    def requests_ms(self, key: int) -> list[int]:
        """Event times of the latest repair requests for a message; see `Repairs`."""
        return self._repairs.requests_ms(key)

    def names(self) -> list[str]:
        """The ids of all participants."""
        return self._participants.names()

    def pack(self) -> ChannelState:
        """Write all changes to the state that was loaded, and return this state."""
        state = self._state
        state.copies = self._copies.state()
        state.deliveries = self._deliveries.state()
        state.messages = self._messages.packed()
        state.gaps = self._gap_table.packed()
        state.requests = self._request_table.packed()
        state.seen_ids = self._seen_ids.packed()
        return state

    def apply(self, frame: SeenFrame) -> bool:
        """Process a frame; return False if it is a duplicate."""
        clock_ms = self._state.clock_ms
        copy = self._copies.classify(frame, clock_ms)
        if self._journal is not None:
            self._journal.copy, self._journal.is_first = copy, False
        if copy is Copy.DUPLICATE:
            return False
        self._note_time(frame)
        if copy is Copy.REPLICA:
            self._totals.replicas += 1
        else:
            self._broadcast(frame, clock_ms)
        self._health.judge(clock_ms, self._totals.gaps_open)
        return True

    def pass_to(self, clock_ms: int) -> None:
        """Set the clock to a later time, and process each deadline before that time."""
        while self.next_moment() < clock_ms:
            moment_ms: int = self.next_moment()
            for deadline_ms, due, key in self._deadlines.passed(moment_ms + 1):
                self._fire(deadline_ms, due, key)
            self._health.judge(moment_ms + 1, self._totals.gaps_open)
        self._state.clock_ms = clock_ms
        self._forget(clock_ms)

    def next_moment(self) -> int:
        """Next time at which a deadline passes or evidence leaves the window."""
        return min(self._deadlines.next_at, self._health.edge_ms)

    def pending_ms(self) -> tuple[int, int]:
        """Next deadline, and next possible change of the verdict; `NEVER` if none."""
        return self._deadlines.next_at, self._health.next_edge_ms()

    def next_change_ms(self, clock_ms: int) -> int | None:
        """Next time at which a gauge or a sweep may change a figure without a frame.

        Unix ms; None if never.
        """
        gauge_ms = self._capacity.next_change_ms(clock_ms)
        sweep_ms = self._next_leaving_out_ms()
        return min([ms for ms in (gauge_ms, sweep_ms) if ms is not None], default=None)

    def summarise(self) -> None:
        """Set those totals that are gauges to their current values."""
        totals, clock_ms = self._totals, self._state.clock_ms
        totals.clock_ms = clock_ms
        totals.observers = self._copies.observers()
        totals.oldest_in_flight_ms = self._acknowledgements.oldest_in_flight_ms()
        health = self._state.health
        totals.verdict, totals.verdict_reason = health.verdict, health.reason
        totals.verdict_since_ms = health.since_ms
        totals.evidence = self._health.evidence(
            clock_ms, totals.gaps_open, lambda by: self._participants.name(by)
        )
        self._capacity.summarise(clock_ms)

    def drain(self) -> list[DefiniteAcknowledgement | Incident]:
        """Return definite acknowledgements and incidents since the last call."""
        self._totals.participant_table = pack_participants(
            self._participants,
            self._deliveries,
            self._capacity,
            self._totals.participants,
        )
        self._totals.suspects = None
        if self._totals.evidence is not None:
            self._totals.suspects = suspects_of(self._memory(), self._state.clock_ms)
        return [
            *self._acknowledgements.drain_definite(),
            *self._incidents.drain(),
        ]

    def _memory(self) -> Memory:
        return Memory(
            self._settings,
            self._state.health,
            self._messages,
            self._gap_table,
            self._request_table,
            self._deliveries.receivers,
            self._participants,
            self._filters.traces,
            self._totals.messages,
            frozenset(Dialect(key.partition(".")[2]) for key in self._totals.frames),
        )

    def _fire(self, deadline_ms: int, due: Due, key: int) -> None:
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
        elif due is Due.SEGMENTS_IDLE:
            self._segments.idle_passed(key, deadline_ms)
        elif self._repairs.window_passed(key, deadline_ms):
            self._health.expired(deadline_ms)

    def _broadcast(self, frame: SeenFrame, clock_ms: int) -> None:
        self._count(frame)
        if frame.time_ms < clock_ms - self._settings.horizon_ms:
            # An earlier frame with this id may already be forgotten, so it is unknown
            # whether this frame is a first copy.
            return
        by = self._participants.index(frame.sender)
        sight = self._own_ids.follow(frame, clock_ms)
        if sight is not Sight.OLD:
            self._follow_others(frame, by, sight, clock_ms)
        for named, held in frame.requests:
            if self._repairs.requested(
                named.fingerprint, by, held, frame.dialect, frame.time_ms, clock_ms
            ):
                self._time_request(frame, named, by)
        self._evict()

    def _follow_others(
        self, frame: SeenFrame, by: int, sight: Sight, clock_ms: int
    ) -> None:
        is_first_copy = sight is not Sight.AGAIN
        # If a history named the frame's id before the frame was seen, the frame was
        # composed long ago. What its sender lacked then, the sender may have now.
        proves_lack = sight is Sight.FIRST
        if self._journal is not None:
            self._journal.is_first = proves_lack
        after_start = 0
        if is_first_copy:
            self._first_copy_by(frame, by, clock_ms, proves_lack)
            after_start = self._start.first_copy_by(frame, by)
        self._read_history(frame, by, after_start)
        self._acknowledgements.read_frame(frame, by, clock_ms, is_first_copy)
        if frame.filter is not None:
            self._gaps.search_filter(frame, frame.filter, by, proves_lack)

    def _first_copy_by(
        self, frame: SeenFrame, by: int, clock_ms: int, proves_lack: bool
    ) -> None:
        is_newest = self._filters.first_copy_by(frame, by)
        if is_newest and frame.filter is not None:
            rate = frame.filter.false_positive_rate()
            self._health.filter(by, frame.time_ms, rate)
        self._deliveries.first_copy_by(frame, by, clock_ms, is_newest, proves_lack)
        if self._participants.spoke(by, frame.time_ms):
            self._totals.participants += 1
        self._capacity.sent_by(by, clock_ms)

    def _note_time(self, frame: SeenFrame) -> None:
        self._health.record(self._state.clock_ms)
        self._state.heard_ms = self._state.clock_ms
        totals = self._totals
        if totals.first_event_ms is None or totals.last_event_ms is None:
            totals.first_event_ms = totals.last_event_ms = frame.time_ms
        totals.first_event_ms = min(totals.first_event_ms, frame.time_ms)
        totals.last_event_ms = max(totals.last_event_ms, frame.time_ms)

    def _count(self, frame: SeenFrame) -> None:
        counted = COUNTED[frame.code]
        self._totals.frames[counted] = self._totals.frames.get(counted, 0) + 1
        if frame.history_left_out or frame.requests_left_out:
            self._totals.leave_out(LeftOut.HISTORY, frame.history_left_out)
            self._totals.leave_out(LeftOut.REQUEST, frame.requests_left_out)
        self._capacity.frame(frame)
        clock_ms = self._state.clock_ms
        if frame.kind is FrameKind.CONTENT:
            self._health.content(clock_ms, bool(frame.sender))
        if self._health.in_warm_up(clock_ms):
            self._start.in_warm_up(frame)

    def _time_request(self, frame: SeenFrame, named: Named, by: int) -> None:
        message = self._acknowledgements.get(named.fingerprint)
        if message is None:
            known_ms = self._gaps.named_by_other_ms(named.fingerprint, by)
        elif message.was_named_before or message.sender == by:
            # It is unknown when the requester could first notice that the message was
            # missing.
            known_ms = None
        else:
            known_ms = message.t0_ms
        if known_ms is not None and frame.dialect is Dialect.SPEC:
            self._timing.requested(
                frame.sender, named.message_id, known_ms, frame.time_ms
            )

    def _read_history(self, frame: SeenFrame, by: int, after_start: int) -> None:
        """Process the causal history of a frame.

        The messages of its last `after_start` ids were sent after the warm-up.
        """
        clock_ms, time_ms = self._state.clock_ms, frame.time_ms
        naming = before_start = GapEvent.NAMED_BEFORE_START
        if self._health.in_warm_up(clock_ms):
            naming = GapEvent.NAMED_IN_WARM_UP
        first_after: int = len(frame.history) - after_start
        acknowledgements, messages = self._acknowledgements, self._messages
        own_ids = self._own_ids
        oldest_ms = clock_ms - self._settings.horizon_ms
        place: int = -1
        room: int = self._gaps.room()
        unseen: int = 0
        named: Named
        for named in frame.history:
            place += 1
            key: int = named.fingerprint
            # In a healthy channel, most ids need only this fast update.
            if naming is not before_start and messages.name_settled(
                key, named.hint, clock_ms
            ):
                continue
            message: Message | None = messages.get(key)
            if message is None and unseen >= room and self._is_new(key, frame):
                unseen += 1
                if place >= first_after and naming is before_start:
                    naming = GapEvent.NAMED_AFTER_START
                continue
            if naming is before_start and (
                place >= first_after or not self._start.is_before(key, message)
            ):
                naming = GapEvent.NAMED_AFTER_START
            if message is not None:
                message.latest_ms = clock_ms
                if message.seen_ms >= oldest_ms:
                    message.hint = message.hint or named.hint
                    if not message.definite:
                        acknowledgements.mentioned(message, by, time_ms, clock_ms)
            elif key != frame.named.fingerprint and not own_ids.was_seen(key, clock_ms):
                unseen += not self._gaps.follows(key)
                is_after = naming is GapEvent.NAMED_AFTER_START
                event = naming
                if is_after and self._start.was_held(frame, named):
                    event = before_start
                self._gaps.named(named, event, frame, by, clock_ms)
        if unseen > room:
            self._totals.leave_out(LeftOut.UNSEEN, unseen - room)

    def _is_new(self, key: int, frame: SeenFrame) -> bool:
        is_own: bool = key == frame.named.fingerprint
        return not (is_own or self._gaps.follows(key) or self._own_ids.knows(key))

    def _next_leaving_out_ms(self) -> int | None:
        """Last moment before a sweep that may omit a participant, or None.

        Other effects of a sweep do not change a figure.
        """
        if not self._forgotten.may_leave_out(len(self._participants)):
            return None
        found = (self._messages.silent_from_ms(), self._seen_ids.silent_from_ms())
        silent_ms = min([ms for ms in found if ms is not None], default=None)
        if silent_ms is None:
            return None
        kept_to_ms: int = silent_ms + self._settings.horizon_ms
        return kept_to_ms - kept_to_ms % _SWEEP_MS + _SWEEP_MS - 1

    def _forget(self, clock_ms: int) -> None:
        """Drop entries that are older than the retention window."""
        state, horizon_ms = self._state, self._settings.horizon_ms
        if clock_ms - horizon_ms > self._oldest_ms:
            self._copies.forget_before(clock_ms - horizon_ms)
            self._repairs.forget_before(clock_ms - horizon_ms)
            oldest = (self._copies.oldest_ms, self._repairs.oldest_ms)
            self._oldest_ms = min([ms for ms in oldest if ms], default=clock_ms)
        if clock_ms - state.swept_ms >= _SWEEP_MS:
            self._sweep(clock_ms // _SWEEP_MS * _SWEEP_MS)

    def _evict(self) -> None:
        """Drop the oldest messages, gaps, ids and requests that exceed the limit.

        Call this directly after each frame. Otherwise, the result would depend on how
        the frames are divided into batches.
        """
        limit: int = self._settings.remembered
        while len(self._messages) > limit:
            self._own_ids.forget(self._messages.first())
            self._totals.remembered_evicted += 1
        while len(self._gap_table) > limit:
            self._gaps.forget(self._gap_table.first())
            self._totals.remembered_evicted += 1
        while len(self._seen_ids) > limit:
            self._own_ids.forget_seen_id(self._seen_ids.first())
            self._totals.remembered_evicted += 1
        self._repairs.evict()

    def _sweep(self, sweep_ms: int) -> None:
        state = self._state
        state.swept_ms = sweep_ms
        edge_ms = sweep_ms - self._settings.horizon_ms
        for key in self._messages.silent_since(edge_ms):
            self._own_ids.forget(key)
        for key in self._seen_ids.silent_since(edge_ms):
            self._own_ids.forget_seen_id(key)
        for key in self._gap_table.silent_since(edge_ms):
            self._gaps.forget(key)
        self._deliveries.forget_old(sweep_ms)
        self._segments.forget_before(sweep_ms - self._settings.segment_idle_ms)
        self._acknowledgements.forget_ids(sweep_ms)
        # If a participant has been silent since `silent_ms`, the participant does not
        # count as active for any message in the retention window.
        silent_ms = edge_ms - self._settings.horizon_ms
        # A filter that is in use is kept, even if `lately_ms` is longer.
        lately_ms: int = self._settings.lately_ms
        self._filters.forget_before(min(silent_ms, sweep_ms - lately_ms))
        self._deliveries.forget_silent_since(silent_ms)
        self._heads.forget_silent_since(silent_ms)
