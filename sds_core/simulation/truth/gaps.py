"""Missing dependencies and their outcomes (docs/figures.md, 6)."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sds_core.simulation.truth.composition import Named
from sds_core.simulation.truth.deliveries import rolled_over, summed
from sds_core.simulation.truth.tap_view import HORIZON_MS, SeenFrame, TapView
from sds_core.wire import Dialect, FrameKind

WARM_UP_MS = 30_000
SETTLE_MS = 2_000
DEADLINE_MS = 300_000


class Outcome(enum.StrEnum):
    """Outcome of a gap; the value is the outcome's name in the report."""

    LATE = "late"
    REPAIRED = "repaired"
    RECOVERED_LATE = "recovered_late"
    LOST = "lost"
    TAP_GAP = "tap_gap"
    OPEN = "open"


class Gap(NamedTuple):
    """A message id that a frame named before any tap showed the message.

    Attributes:
        naming: the frame whose history opens the gap.
        arrival: first copy of the message that a tap recorded; None if no tap did.
    """

    message_id: str
    naming: SeenFrame
    arrival: SeenFrame | None

    @property
    def deadline_ms(self) -> int:
        """Latest clock time at which an arrival closes the gap in time, Unix ms."""
        return self.naming.clock_ms + DEADLINE_MS


def gaps_of(view: TapView, end_ms: int) -> dict[Gap, Outcome]:
    """Return the outcome of each gap as of the clock time `end_ms`, Unix ms."""
    return {
        gap: outcome_of(gap, view, end_ms)
        for gap in unseen_in(view)
        if _has_settled(gap, end_ms)
    }


def gaps_in(gaps: Mapping[Gap, Outcome]) -> dict[str, Any]:
    """Return a channel's figures of gaps."""
    outcomes = Counter(gaps.values())
    waits_ms: list[int] = []
    retracted = 0
    for gap, outcome in gaps.items():
        if gap.arrival is None:
            continue
        if outcome is Outcome.LOST:
            stood_ms = gap.arrival.clock_ms - gap.naming.clock_ms
            retracted += stood_ms <= HORIZON_MS
        elif outcome is not Outcome.TAP_GAP:
            waits_ms.append(max(0, gap.arrival.at_ms - gap.naming.at_ms))
    return {
        "gaps": {
            "opened": len(gaps),
            **{outcome.value: outcomes[outcome] for outcome in Outcome},
            "retracted": retracted,
        },
        "gap_ms": summed(waits_ms),
    }


def unseen_in(view: TapView) -> Iterator[Gap]:
    """Yield a gap for each id that a history names before a tap shows the message.

    Only frames after the warm-up open gaps. The first such frame that names an unseen
    id decides: if it does not prove that the message was sent after the monitor's
    start, the id never opens a gap.
    """
    if view.began_ms is None:
        return
    warm_up_end_ms = view.began_ms + WARM_UP_MS
    l0 = _highest_lamports(view, warm_up_end_ms)
    before = _histories_before(view)
    # The keys are ids that a history named before a tap showed the message. The value
    # is True if the id opened a gap, because the message was surely sent after the
    # monitor's start.
    decided: dict[str, bool] = {}

    def is_known(message_id: str, frame: SeenFrame) -> bool:
        """Return whether a message was surely sent after the monitor's start.

        The function uses only records up to the record of `frame`.
        """
        first = view.shown.get(message_id)
        if first is None or first.index > frame.index:
            return decided.get(message_id, False)
        return first.composition.lamport > l0[first.composition.dialect]

    at_start = [
        frame.composition.filter
        for frame in view.between(0, warm_up_end_ms)
        if frame.composition.dialect is Dialect.NIM
    ]

    def was_held(message_id: str, frame: SeenFrame) -> bool:
        """Return whether a filter of nim-sds held an id during the warm-up.

        If `frame` has another dialect, the result is False.
        """
        return frame.composition.dialect is Dialect.NIM and any(
            known is not None and known.holds(message_id) for known in at_start
        )

    for frame in view.between(warm_up_end_ms + 1, view.frames[-1].clock_ms):
        own_id, history = frame.composition.message_id, frame.composition.history
        earlier = before.get(frame.index, ())
        certain = len(history)
        if earlier and is_known(earlier[0].message_id, frame):
            certain -= len(earlier)
        is_after_start = False
        for place, (message_id, _) in enumerate(history):
            is_after_start |= place >= certain or is_known(message_id, frame)
            first = view.shown.get(message_id)
            if first is not None and first.index <= frame.index:
                continue
            # A frame that names its own id opens no gap.
            if message_id not in decided and message_id != own_id:
                is_gap = is_after_start and not was_held(message_id, frame)
                decided[message_id] = is_gap
                if is_gap:
                    yield Gap(message_id, frame, first)


def _histories_before(view: TapView) -> dict[int, tuple[Named, ...]]:
    """Return, for first copies, the history of the same sender's previous first copy.

    The keys are the indices of the later copies. A participant's log only grows, so a
    pair of copies is omitted in any of these cases:

    - The later copy has another dialect.
    - The later copy does not have a greater Lamport timestamp.
    - The later copy's history has fewer entries.
    - The sender's filter rolled over between the two copies.
    """
    found: dict[int, tuple[Named, ...]] = {}
    for frames in view.first_copies.values():
        newest: SeenFrame | None = None
        for frame, has_rolled in zip(frames, rolled_over(frames), strict=True):
            own = frame.composition
            if own.kind is FrameKind.EPHEMERAL:
                continue
            earlier = None if newest is None else newest.composition
            if earlier is not None and earlier.dialect is own.dialect:
                if own.lamport <= earlier.lamport:
                    continue
                if not has_rolled and len(earlier.history) <= len(own.history):
                    found[frame.index] = earlier.history
            newest = frame
    return found


def outcome_of(gap: Gap, view: TapView, end_ms: int) -> Outcome:
    """Return the outcome of a gap that lasts longer than the settle time."""
    if gap.arrival is not None and gap.arrival.clock_ms <= gap.deadline_ms:
        if view.latest_request(gap.message_id, gap.arrival) is None:
            return Outcome.LATE
        is_live = view.is_requested(gap.arrival)
        return Outcome.REPAIRED if is_live else Outcome.RECOVERED_LATE
    # If the clock is exactly at the deadline, the gap is still open.
    if end_ms <= gap.deadline_ms:
        return Outcome.OPEN
    return Outcome.TAP_GAP if _network_had(gap, view) else Outcome.LOST


def _has_settled(gap: Gap, end_ms: int) -> bool:
    until_ms = end_ms if gap.arrival is None else gap.arrival.clock_ms
    return until_ms > gap.naming.clock_ms + SETTLE_MS


def _network_had(gap: Gap, view: TapView) -> bool:
    deadline_ms = gap.deadline_ms
    namings = [
        frame for frame in view.namings[gap.message_id] if frame.clock_ms <= deadline_ms
    ]
    named_senders = [
        named.sender
        for frame in namings
        for named in frame.composition.history
        if named.message_id == gap.message_id and named.sender
    ]
    shown_by = {frame.composition.sender for frame in namings}
    for frame in view.between(gap.naming.clock_ms, deadline_ms):
        known = frame.composition.filter
        is_later = frame.index >= gap.naming.index
        if is_later and known is not None and known.holds(gap.message_id):
            shown_by.add(frame.composition.sender)
    # Histories that give the sender of the message all give the same sender, so the
    # first name in `named_senders` suffices.
    shown_by -= {"", *named_senders[:1]}
    return len(shown_by) >= (1 if named_senders else 2)


def _highest_lamports(view: TapView, until_ms: int) -> Counter[Dialect]:
    highest: Counter[Dialect] = Counter()
    for frame in view.between(0, until_ms):
        composition = frame.composition
        dialect = composition.dialect
        highest[dialect] = max(highest[dialect], composition.lamport)
    return highest
