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
    """Outcome of a delivery; the value is the outcome's name in the report.

    The report counts a retracted delivery as lost too, because the delivery was lost
    before it was retracted. The report does not count open deliveries.
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
    """Yield every delivery of a channel, in the topic order of the messages."""
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
    """Return the number and the sum of durations, as an object of the report."""
    return {"count": len(durations_ms), "sum": sum(durations_ms)}


def deliveries_in(deliveries: Iterable[Delivery]) -> dict[str, Any]:
    """Return a channel's figures of deliveries."""
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
    """Return whether a delivery is lost, because `frame` still lacks the message.

    The participant has `LOST_AFTER_MS` to receive the message. This time begins at
    `lacking`, the first frame that lacks the message. If the participant has returned
    from exactly one long silence since then, the time begins at the return.
    """
    latest_ms, one_before_ms = returns_ms
    begins_ms = lacking.at_ms
    if one_before_ms <= lacking.at_ms:
        begins_ms = max(begins_ms, latest_ms)
    return frame.at_ms > begins_ms + LOST_AFTER_MS


def returns_ms_of(frames: Iterable[SeenFrame]) -> Iterator[tuple[int, int]]:
    """For each frame of a sender, yield the times of the sender's latest two returns.

    A return is a frame that ends a silence of more than `LOST_AFTER_MS`. The latest
    return is first in the pair. 0 stands for a return that does not exist.
    """
    last_ms = None
    latest_ms = one_before_ms = 0
    for frame in frames:
        if last_ms is not None and frame.at_ms > last_ms + LOST_AFTER_MS:
            latest_ms, one_before_ms = frame.at_ms, latest_ms
        last_ms = frame.at_ms if last_ms is None else max(last_ms, frame.at_ms)
        yield latest_ms, one_before_ms


def _could_know(frame: SeenFrame, message: SeenFrame) -> bool:
    """Return whether a sender had time to receive a message before it sent a frame.

    `frame` and `message` must have the same dialect. If `frame` is ephemeral, the
    result is False, because the frame has no Lamport timestamp.
    """
    return (
        frame.composition.lamport > message.composition.lamport
        and frame.at_ms > message.at_ms + GRACE_MS
    )


def _rollovers_ms(frames: Sequence[SeenFrame]) -> Iterator[int]:
    """For each frame of a sender, yield when the sender's filter last rolled over.

    The value is 0 if no frame so far shows a roll-over. A frame can show a roll-over
    only if its Lamport timestamp is greater than those of the sender's previous frames
    in the same dialect. The function compares the ids that the filters hold. A monitor
    sees only the bits of the filters. It can miss a roll-over that clears no bit, if no
    tap recorded the removed ids.
    """
    rollover_ms = 0
    for frame, has_rolled in zip(frames, rolled_over(frames), strict=True):
        if has_rolled:
            rollover_ms = frame.at_ms
        yield rollover_ms


def rolled_over(frames: Iterable[SeenFrame]) -> Iterator[bool]:
    """For each frame of a sender, yield whether it shows a roll-over of the filter."""
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
