"""Outcomes of deliveries, concluded from participants' frames (docs/figures.md, 5)."""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from sds_core.simulation.truth.tap_view import HORIZON_MS, SeenFrame, TapView
from sds_core.wire import Dialect, FrameKind

GRACE_MS = 5_000
LOST_AFTER_MS = 300_000

_index = attrgetter("index")


class Outcome(enum.StrEnum):
    """Final state of a delivery; the value is its name in the report.

    A retracted delivery was lost before, so the report also counts it as lost. The
    report does not count open deliveries.
    """

    FIRST_PASS = "first_pass"  # noqa: S105 (no password)
    RECOVERED = "recovered"
    LOST = "lost"
    RETRACTED = "retracted"
    OPEN = "open"


class Delivery(NamedTuple):
    """A message and a participant that was active when the message was first seen.

    Attributes:
        lacking: the first frame that shows that the participant lacks the message, if
            any.
        having: the first frame that shows that the participant has the message, if any.
    """

    message: SeenFrame
    participant: str
    lacking: SeenFrame | None
    having: SeenFrame | None
    outcome: Outcome


def deliveries_of(view: TapView) -> Iterator[Delivery]:
    """Return every delivery of a channel, in the order of the messages."""
    pasts = {
        participant: list(
            zip(_rollovers_ms(frames), returns_ms_of(frames), strict=True)
        )
        for participant, frames in view.first_copies.items()
    }
    for message in view.messages.values():
        if message.composition.sender:
            for participant in view.active_others(message):
                yield _delivery(message, participant, view, pasts[participant])


def summed(durations_ms: Sequence[int]) -> dict[str, int]:
    """Return the number and the sum of durations, in the form of the report."""
    return {"count": len(durations_ms), "sum": sum(durations_ms)}


def deliveries_in(deliveries: Iterable[Delivery]) -> dict[str, Any]:
    """Return the figures of a channel."""
    outcomes: Counter[Outcome] = Counter()
    recoveries_ms: list[int] = []
    for delivery in deliveries:
        outcomes[delivery.outcome] += 1
        lacking, having = delivery.lacking, delivery.having
        if delivery.outcome is Outcome.RECOVERED and lacking and having:
            recoveries_ms.append(max(0, having.at_ms - lacking.at_ms))
    return {
        "deliveries": {
            "first_pass": outcomes[Outcome.FIRST_PASS],
            "recovered": outcomes[Outcome.RECOVERED],
            "lost": outcomes[Outcome.LOST] + outcomes[Outcome.RETRACTED],
            "retracted": outcomes[Outcome.RETRACTED],
        },
        "delivery_recovery_ms": summed(recoveries_ms),
    }


def _delivery(
    message: SeenFrame,
    participant: str,
    view: TapView,
    pasts: Sequence[tuple[int, tuple[int, int]]],
) -> Delivery:
    message_id = message.composition.message_id
    naming = set(view.namings.get(message_id, ()))
    frames = view.first_copies[participant]
    lacking: SeenFrame | None = None
    is_lost = False
    for place in range(bisect_right(frames, message.index, key=_index), len(frames)):
        frame = frames[place]
        if frame.clock_ms > message.clock_ms + HORIZON_MS:
            break
        rollover_ms, returns_ms = pasts[place]
        # Ids of one dialect cannot be looked up in filters of the other dialect.
        is_alike = frame.composition.dialect is message.composition.dialect
        known = frame.composition.filter if is_alike else None
        if frame in naming or (known is not None and known.holds(message_id)):
            if is_lost:
                outcome = Outcome.RETRACTED
            else:
                outcome = Outcome.FIRST_PASS if lacking is None else Outcome.RECOVERED
            return Delivery(message, participant, lacking, frame, outcome)
        if (
            known is not None
            and _could_know(frame, message)
            and message.at_ms >= rollover_ms
            and not _was_named_before(frame, view)
        ):
            lacking = lacking or frame
            is_lost |= _is_overdue(frame, lacking, returns_ms)
    outcome = Outcome.LOST if is_lost else Outcome.OPEN
    return Delivery(message, participant, lacking, None, outcome)


def _was_named_before(frame: SeenFrame, view: TapView) -> bool:
    namings = view.namings.get(frame.composition.message_id, ())
    return frame.composition.has_known_id and any(
        naming.index < frame.index for naming in namings
    )


def _is_overdue(
    frame: SeenFrame, lacking: SeenFrame, returns_ms: tuple[int, int]
) -> bool:
    """Return whether a participant had enough time to receive a missing message."""
    latest_ms, one_before_ms = returns_ms
    begins_ms = lacking.at_ms
    if one_before_ms <= lacking.at_ms:
        begins_ms = max(begins_ms, latest_ms)
    return frame.at_ms > begins_ms + LOST_AFTER_MS


def returns_ms_of(frames: Iterable[SeenFrame]) -> Iterator[tuple[int, int]]:
    """For each frame, yield the times of the sender's last two returns from silence.

    The later return is first. 0 means no return.
    """
    last_ms = None
    latest_ms = one_before_ms = 0
    for frame in frames:
        if last_ms is not None and frame.at_ms > last_ms + LOST_AFTER_MS:
            latest_ms, one_before_ms = frame.at_ms, latest_ms
        last_ms = frame.at_ms if last_ms is None else max(last_ms, frame.at_ms)
        yield latest_ms, one_before_ms


def _could_know(frame: SeenFrame, message: SeenFrame) -> bool:
    """Return whether a frame was composed late enough to show receipt of a message.

    Both frames must have the same dialect. For ephemeral frames, which have no Lamport
    timestamp, the function returns False.
    """
    return (
        frame.composition.lamport > message.composition.lamport
        and frame.at_ms > message.at_ms + GRACE_MS
    )


def _rollovers_ms(frames: Sequence[SeenFrame]) -> Iterator[int]:
    """For each frame, yield when the sender's filter last rolled over.

    The value is 0 if no frame so far shows a roll-over. A frame shows no roll-over if
    its Lamport timestamp is not above that of the dialect's newest frame. The function
    compares the actual ids. A monitor sees only bits, and can miss a roll-over if no
    bit is cleared and no tap mirrored the removed ids.
    """
    rollover_ms = 0
    for frame, has_rolled in zip(frames, rolled_over(frames), strict=True):
        if has_rolled:
            rollover_ms = frame.at_ms
        yield rollover_ms


def rolled_over(frames: Iterable[SeenFrame]) -> Iterator[bool]:
    """Yield for each frame of a participant whether the frame shows a roll-over."""
    newest: dict[Dialect, SeenFrame] = {}
    for frame in frames:
        has_rolled = False
        composition = frame.composition
        known = composition.filter
        if known is not None and composition.kind is not FrameKind.EPHEMERAL:
            before = newest.get(composition.dialect)
            if before is None or composition.lamport > before.composition.lamport:
                earlier = before.composition.filter if before is not None else None
                has_rolled = earlier is not None and known.lacks_some_of(earlier)
                newest[composition.dialect] = frame
        yield has_rolled
