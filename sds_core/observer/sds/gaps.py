"""Tracks missing dependencies (docs/figures.md, 6).

A missing dependency is a message whose id a history names but no tap has seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from sds_core.native import native
from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.incidents import MOST_LACKING, Incident, IncidentKind, Incidents
from sds_core.observer.journal import Journal
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.gap_states import AFTER_START, GapEvent, GapState, transition
from sds_core.observer.sds.gap_table import Gap, GapTable
from sds_core.observer.sds.limits import MANY_UNSEEN, MOST_UNSEEN, LeftOut
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.repairs import Repairs
from sds_core.observer.sds.seen_frames import Named, SeenFrame
from sds_core.observer.sds.totals import ChannelTotals


@native
@dataclass(slots=True)
class Gaps:
    """Tracks each id that a causal history names but no tap has seen.

    `gap_states.TRANSITIONS` defines how events change an id's state and the totals.
    """

    _settings: RuleSettings
    _totals: ChannelTotals
    _deadlines: Deadlines
    _participants: Participants
    _repairs: Repairs
    _incidents: Incidents
    _gaps: GapTable
    _journal: Journal | None
    # Keys of the waiting gaps without enough witnesses, in order of `since_ms`.
    _searched: dict[int, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Queue the deadlines of the waiting gaps."""
        settings = self._settings
        self._searched = dict.fromkeys(self._gaps.searched())
        settle_ms, deadline_ms = settings.settle_ms, settings.gap_deadline_ms
        waiting = self._gaps.waiting()
        settling = [
            (since + settle_ms, key) for key, since, settles in waiting if settles
        ]
        self._deadlines.add_all(Due.GAP_SETTLED, settling)
        overdue = [(since_ms + deadline_ms, key) for key, since_ms, _ in waiting]
        self._deadlines.add_all(Due.GAP_OVERDUE, overdue)

    def room(self) -> int:
        """Maximum number of unseen ids that the next frame may add."""
        return MOST_UNSEEN if len(self._gaps) >= MANY_UNSEEN else MANY_UNSEEN

    def follows(self, key: int) -> bool:
        """Whether the id is tracked as named but unseen."""
        return key in self._gaps

    def named(
        self, named: Named, event: GapEvent, frame: SeenFrame, by: int, clock_ms: int
    ) -> None:
        """Record that a causal history names an id that no tap has seen."""
        key = named.fingerprint
        gap = self._gaps.get(key)
        if gap is None:
            sender = self._participants.index(named.sender)
            gap = self._gaps[key] = Gap(frame.time_ms, clock_ms, clock_ms, sender)
        elif gap.sender == UNKNOWN and named.sender:
            gap.sender = self._participants.index(named.sender)
            # The sender always has its own message, so the sender's frames do not show
            # that the network had the message.
            gap.witnesses = [p for p in gap.witnesses if p != gap.sender]
            # If the sender is known, fewer witnesses are enough.
            if gap.is_witnessed:
                self._searched.pop(key, None)
        gap.last_named_ms = clock_ms
        gap.hint = gap.hint or named.hint
        if by != UNKNOWN:
            if len(gap.mentions) < 2 and by not in [p for p, _ in gap.mentions]:
                gap.mentions.append((by, frame.time_ms))
            self._add_witness(key, gap, by)
        if gap.state is not GapState.NOTED:
            return
        if self._move(key, gap, event, frame.time_ms) is GapState.SETTLING:
            gap.named_ms = frame.time_ms
            gap.since_ms = clock_ms
            gap.naming = frame.dialect, frame.lamport
            gap.message_id = named.message_id
            settled_ms = clock_ms + self._settings.settle_ms
            self._deadlines.add(settled_ms, Due.GAP_SETTLED, key)
            self._deadlines.add(self._deadline_of(gap), Due.GAP_OVERDUE, key)
            if not gap.is_witnessed:
                self._searched[key] = None

    def after_start_since_ms(self, key: int) -> int | None:
        """The channel's clock when an id became a gap, Unix ms; None if it did not."""
        gap = self._gaps.get(key)
        if gap is None or gap.state not in AFTER_START:
            return None
        return gap.since_ms

    def named_by_other_ms(self, key: int, by: int) -> int | None:
        """Event time at which a participant other than `by` first named an id.

        None if no other participant has named the id.
        """
        gap = self._gaps.get(key)
        mentions = [] if gap is None else gap.mentions
        return min([ms for who, ms in mentions if who != by], default=None)

    def search_filter(
        self, frame: SeenFrame, filter_: Filter, by: int, is_first_copy: bool
    ) -> None:
        """Look up the ids of waiting gaps in a participant's filter.

        A rebroadcast has an old filter. Therefore, only the filter of a first copy can
        show that the participant lacks a message.
        """
        if by == UNKNOWN or not self._searched:
            return
        limit = self._settings.searched
        self._totals.leave_out(LeftOut.SEARCH, max(0, len(self._searched) - limit))
        newest = list(islice(reversed(self._searched), limit))
        searched = [
            (key, gap)
            for key, gap in zip(newest, self._gaps.many(newest), strict=True)
            if by != gap.sender and by not in gap.witnesses
        ]
        for key, gap in reversed(searched):
            if filter_.contains(gap.message_id):
                self._add_witness(key, gap, by)
            elif (
                is_first_copy
                and len(gap.lacking) < MOST_LACKING
                and self._could_have(frame, gap)
            ):
                gap.lacking.setdefault(by, frame.time_ms)

    def settle_time_passed(self, key: int, deadline_ms: int) -> bool:
        """Open a gap when its settle time has passed; return whether the gap is open.

        If the settle time does not end at `deadline_ms`, the call changes nothing and
        returns False: `deadline_ms` belongs to an earlier gap of the same id.
        """
        gap = self._gaps.get(key)
        if gap is None or gap.since_ms + self._settings.settle_ms != deadline_ms:
            return False
        state = self._move(key, gap, GapEvent.SETTLE_TIME_PASSED, deadline_ms)
        return state is GapState.OPEN

    def deadline_passed(self, key: int, deadline_ms: int) -> bool:
        """Decide the outcome of a gap; return whether the message is now lost.

        If `deadline_ms` is not the gap's deadline, the call changes nothing and returns
        False: `deadline_ms` belongs to an earlier gap of the same id.
        """
        gap = self._gaps.get(key)
        if gap is None or self._deadline_of(gap) != deadline_ms:
            return False
        was = gap.state
        event = GapEvent.DEADLINE_PASSED
        if gap.is_witnessed:
            event = GapEvent.DEADLINE_PASSED_WITH_EVIDENCE
        state = self._move(key, gap, event, deadline_ms)
        if state is was:
            return False
        self._searched.pop(key, None)
        if state is GapState.TAP_GAP:
            gap.message_id = ""
            gap.lacking = {}
            return False
        self._record_incident(gap)
        return True

    def arrived(self, frame: SeenFrame, clock_ms: int) -> Gap | None:
        """Stop tracking an id whose first copy has arrived, and return its gap.

        The result is None if the id was not tracked.
        """
        key = frame.named.fingerprint
        gap = self._gaps.pop(key)
        if gap is None:
            return None
        self._searched.pop(key, None)
        event = self._arrival(key, gap, clock_ms)
        self._move(key, gap, event, frame.time_ms)
        if gap.state is GapState.OPEN:
            self._totals.gap_duration.observe(max(0, frame.time_ms - gap.named_ms))
        elif gap.state is GapState.LOST and event is not GapEvent.ARRIVED_AFTER_HORIZON:
            self._record_incident(
                gap, ended_ms=clock_ms, waku_hash=frame.waku_hash_bytes
            )
        return gap

    def forget(self, key: int) -> None:
        """Stop tracking an id.

        No history named the id for a retention window, or the limit of entries evicts
        the id.
        """
        state = self._gaps.state_of(key)
        self._gaps.remove(key)
        self._searched.pop(key, None)
        self._count(transition(state, GapEvent.FORGOTTEN)[1])

    def _move(
        self, key: int, gap: Gap, event: GapEvent, time_ms: int
    ) -> GapState | None:
        """Apply an event to a gap; return its next state, or None if tracking ends."""
        next_, counts = transition(gap.state, event)
        self._count(counts)
        if self._journal is not None:
            for name, change in counts.items():
                if change > 0 and name != "gaps_open":
                    self._journal.note(key, name, time_ms)
            if next_ is not gap.state and not counts and next_ is not None:
                self._journal.note(key, f"gaps_{next_.name.lower()}", time_ms)
        if next_ is not None:
            gap.state = next_
        return next_

    def _count(self, counts: Mapping[str, int]) -> None:
        for name, change in counts.items():
            setattr(self._totals, name, getattr(self._totals, name) + change)

    def _arrival(self, key: int, gap: Gap, clock_ms: int) -> GapEvent:
        horizon_ms = gap.since_ms + self._settings.horizon_ms
        if clock_ms > max(horizon_ms, self._deadline_of(gap)):
            return GapEvent.ARRIVED_AFTER_HORIZON
        if not self._repairs.was_requested(key):
            return GapEvent.ARRIVED
        if self._repairs.is_live(key, clock_ms):
            return GapEvent.ARRIVED_AFTER_REQUEST
        return GapEvent.ARRIVED_AFTER_REPAIR_WINDOW

    def _add_witness(self, key: int, gap: Gap, by: int) -> None:
        if by == gap.sender or by in gap.witnesses or gap.is_witnessed:
            return
        gap.witnesses.append(by)
        gap.lacking.pop(by, None)
        if gap.is_witnessed:
            self._searched.pop(key, None)

    def _could_have(self, frame: SeenFrame, gap: Gap) -> bool:
        """Whether the frame's sender could have had the gap's message when it sent.

        If so, and the frame's filter does not hold the id, the sender lacked the
        message. The message is earlier than the frame that began the gap, so the
        frame must be later than the frame that began the gap.
        """
        return (
            gap.naming is not None
            and frame.dialect is gap.naming[0]
            and frame.lamport > gap.naming[1]
            and frame.time_ms > gap.named_ms + self._settings.delivery_grace_ms
        )

    def _record_incident(
        self, gap: Gap, ended_ms: int | None = None, waku_hash: bytes = b""
    ) -> None:
        participants = self._participants
        lacking = (
            {}
            if ended_ms
            else {participants.name(by): ms for by, ms in gap.lacking.items()}
        )
        self._incidents.record(
            Incident(
                IncidentKind.LOST,
                gap.message_id,
                participants.name(gap.sender),
                since_ms=gap.named_ms,
                found_ms=self._deadline_of(gap),
                ended_ms=ended_ms,
                lacking=lacking,
                named_by=[participants.name(by) for by, _ in gap.mentions],
                waku_hash=waku_hash,
                hint=gap.hint,
            )
        )

    def _deadline_of(self, gap: Gap) -> int:
        return gap.since_ms + self._settings.gap_deadline_ms
