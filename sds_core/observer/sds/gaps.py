"""Missing dependencies: ids that are named but not seen (observer model, 6)."""

from __future__ import annotations

import enum

import msgspec

from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.incidents import Incident, IncidentKind, Incidents
from sds_core.observer.sds.digest import Filter, Named, SeenFrame
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.repairs import Repairs
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect


class GapState(enum.IntEnum):
    """Where an id that is named but not seen stands.

    NOTED -> BEFORE_START, or NOTED -> SETTLING -> OPEN -> LOST or TAP_GAP;
    the id's first copy ends it in any state.
    """

    NOTED = 0
    BEFORE_START = 1
    SETTLING = 2
    OPEN = 3
    LOST = 4
    TAP_GAP = 5


WAITING = frozenset({GapState.SETTLING, GapState.OPEN})


_LACKING = 100
"""Participants who are remembered to lack one id: strangers may make up any number."""


class Gap(msgspec.Struct, array_like=True):
    """One id that is named but not seen.

    Attributes:
        named_ms: Event time of the naming from which its time runs.
        since_ms: The channel's clock then; deadlines run from it.
        kept_ms: The channel's clock when it was last named.
        sender: Its sender as named, participant index or `UNKNOWN`.
        state: Where it stands.
        mentions: The first naming of each of the first two distinct
            participants: index and event time.
        shown_by: Participants other than the named sender who had it.
        message_id: The id, for as long as it waits or is lost.
        naming: Dialect and lamport timestamp of the frame from which its time runs:
            frames after it could have had the id.
        lacking: Participants shown to lack it and not to have it since, and when that
            was first shown (event time); at most `_LACKING`.
        hint: A retrieval hint for it; empty if none was given.
    """

    named_ms: int
    since_ms: int
    kept_ms: int
    sender: int
    state: GapState = GapState.NOTED
    mentions: list[tuple[int, int]] = []
    shown_by: list[int] = []
    message_id: str = ""
    naming: tuple[Dialect, int] | None = None
    lacking: dict[int, int] = {}
    hint: bytes = b""


class Gaps:
    """Follows each id that is named but not seen."""

    def __init__(
        self,
        settings: ObserverSettings,
        totals: ChannelTotals,
        deadlines: Deadlines,
        participants: Participants,
        repairs: Repairs,
        incidents: Incidents,
        gaps: dict[int, Gap],
    ) -> None:
        self._settings = settings
        self._totals = totals
        self._deadlines = deadlines
        self._participants = participants
        self._repairs = repairs
        self._incidents = incidents
        self._gaps = gaps
        self._searched: dict[int, Gap] = {}
        for key, gap in gaps.items():
            if gap.state in WAITING:
                self._await(key, gap)

    def named(self, named: Named, by: int, time_ms: int, clock_ms: int) -> Gap:
        """A participant's causal history names an id that was not seen."""
        key = named.fingerprint
        gap = self._gaps.get(key)
        if gap is None:
            sender = self._participants.index(named.sender)
            gap = self._gaps[key] = Gap(time_ms, clock_ms, clock_ms, sender)
        elif gap.sender == UNKNOWN and named.sender:
            gap.sender = self._participants.index(named.sender)
            # What its own sender shows proves nothing about the network.
            gap.shown_by = [p for p in gap.shown_by if p != gap.sender]
        gap.kept_ms = clock_ms
        gap.hint = gap.hint or named.hint
        if by != UNKNOWN:
            if len(gap.mentions) < 2 and by not in (p for p, _ in gap.mentions):
                gap.mentions.append((by, time_ms))
            self._shown(key, gap, by)
        return gap

    def named_by_other_ms(self, key: int, by: int) -> int | None:
        """When another participant first named an unseen id; None if unknown."""
        gap = self._gaps.get(key)
        mentions = [] if gap is None else gap.mentions
        return min((ms for who, ms in mentions if who != by), default=None)

    def opens(self, named: Named, gap: Gap, frame: SeenFrame, clock_ms: int) -> None:
        """The id lies after the monitor's first sight: a gap, once it settles."""
        gap.state = GapState.SETTLING
        gap.named_ms = frame.time_ms
        gap.since_ms = clock_ms
        gap.naming = frame.dialect, frame.lamport
        gap.message_id = named.message_id
        self._await(named.fingerprint, gap)

    def search_filter(
        self, frame: SeenFrame, filter_: Filter, by: int, is_first_copy: bool
    ) -> None:
        """Look for waiting gaps in a participant's filter.

        What is sent again carries an old filter, which shows what its owner had and
        not what it lacks.
        """
        if by == UNKNOWN:
            return
        for key, gap in list(self._searched.items()):
            if by == gap.sender or by in gap.shown_by:
                continue
            if filter_.contains(gap.message_id):
                self._shown(key, gap, by)
            elif (
                is_first_copy
                and len(gap.lacking) < _LACKING
                and self._could_have(frame, gap)
            ):
                gap.lacking.setdefault(by, frame.time_ms)

    def settled(self, key: int, deadline_ms: int) -> None:
        """A gap has stood for the settle time."""
        gap = self._gaps.get(key)
        if (
            gap is not None
            and gap.state is GapState.SETTLING
            and gap.since_ms + self._settings.settle_ms == deadline_ms
        ):
            gap.state = GapState.OPEN
            self._totals.gaps_opened += 1
            self._totals.gaps_open += 1

    def overdue(self, key: int, deadline_ms: int) -> bool:
        """A gap's deadline has passed; returns whether the message is lost."""
        gap = self._gaps.get(key)
        if (
            gap is None
            or gap.state is not GapState.OPEN
            or gap.since_ms + self._settings.gap_deadline_ms != deadline_ms
        ):
            return False
        self._totals.gaps_open -= 1
        self._searched.pop(key, None)
        if self._is_shown(gap):
            gap.state = GapState.TAP_GAP
            gap.message_id = ""
            gap.lacking = {}
            self._totals.gaps_tap_gap += 1
            return False
        gap.state = GapState.LOST
        self._totals.gaps_lost += 1
        self._tell(gap)
        return True

    def arrived(self, frame: SeenFrame, clock_ms: int) -> Gap | None:
        """The id's first copy has come; returns what was known of it."""
        key = frame.named.fingerprint
        gap = self._gaps.pop(key, None)
        if gap is None:
            return None
        self._searched.pop(key, None)
        if gap.state is GapState.OPEN:
            self._filled(key, gap, frame.time_ms, clock_ms)
        elif (
            gap.state is GapState.LOST
            and clock_ms <= gap.since_ms + self._settings.horizon_ms
        ):
            self._totals.gaps_retracted += 1
            self._tell(gap, ended_ms=clock_ms, waku_hash=frame.waku_hash_bytes)
        return gap

    def forget(self, key: int) -> None:
        """Forget an id that nobody has named for the horizon.

        An open gap pushed out by the limit ends as a tap gap: nothing shows that
        it was lost.
        """
        gap = self._gaps.pop(key)
        self._searched.pop(key, None)
        if gap.state is GapState.OPEN:
            self._totals.gaps_open -= 1
            self._totals.gaps_tap_gap += 1

    def _filled(self, key: int, gap: Gap, time_ms: int, clock_ms: int) -> None:
        totals = self._totals
        totals.gaps_open -= 1
        totals.gap_duration.observe(max(0, time_ms - gap.named_ms))
        if not self._repairs.was_requested(key):
            totals.gaps_late += 1
        elif self._repairs.is_live(key, clock_ms):
            totals.gaps_repaired += 1
        else:
            totals.gaps_recovered_late += 1

    def _shown(self, key: int, gap: Gap, by: int) -> None:
        if by == gap.sender or by in gap.shown_by or self._is_shown(gap):
            return
        gap.shown_by.append(by)
        gap.lacking.pop(by, None)
        if self._is_shown(gap):
            self._searched.pop(key, None)

    def _could_have(self, frame: SeenFrame, gap: Gap) -> bool:
        """Whether a filter without the id shows that its owner lacked it.

        Of an unseen message neither time nor lamport timestamp is known, but those of
        the frame that named it are later.
        """
        return (
            gap.naming is not None
            and frame.dialect is gap.naming[0]
            and frame.lamport > gap.naming[1]
            and frame.time_ms > gap.named_ms + self._settings.delivery_grace_ms
        )

    def _tell(
        self, gap: Gap, ended_ms: int | None = None, waku_hash: bytes = b""
    ) -> None:
        """Tell the incident of a lost message."""
        name = self._participants.name
        lacking = {} if ended_ms else {name(by): ms for by, ms in gap.lacking.items()}
        self._incidents.tell(
            Incident(
                IncidentKind.LOST,
                gap.message_id,
                name(gap.sender),
                since_ms=gap.named_ms,
                found_ms=gap.since_ms + self._settings.gap_deadline_ms,
                ended_ms=ended_ms,
                lacking=lacking,
                named_by=[name(by) for by, _ in gap.mentions],
                waku_hash=waku_hash,
                hint=gap.hint,
            )
        )

    def _is_shown(self, gap: Gap) -> bool:
        """Whether the network had it: one witness, two if its sender is unknown."""
        return len(gap.shown_by) >= (2 if gap.sender == UNKNOWN else 1)

    def _await(self, key: int, gap: Gap) -> None:
        if gap.state is GapState.SETTLING:
            settle_ms = gap.since_ms + self._settings.settle_ms
            self._deadlines.add(settle_ms, Due.GAP_SETTLED, key)
        overdue_ms = gap.since_ms + self._settings.gap_deadline_ms
        self._deadlines.add(overdue_ms, Due.GAP_OVERDUE, key)
        if not self._is_shown(gap):
            self._searched[key] = gap
