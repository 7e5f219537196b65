"""Which messages were acknowledged, by whom and when (docs/figures.md, 4)."""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections import Counter
from itertools import islice
from operator import attrgetter
from typing import Any

from sds_core.simulation.truth.deliveries import returns_ms_of, summed
from sds_core.simulation.truth.tap_view import HORIZON_MS, Copy, SeenFrame, TapView
from sds_core.wire import FrameKind

DEADLINE_MS = 120_000
PROBABLE_RATE = 1e-6
PROBABLE_PARTICIPANTS = 2


class Fate(enum.StrEnum):
    """State of a message; the value is the state's name in the report."""

    IN_TIME = "acknowledged_in_time"
    UNACKNOWLEDGED = "unacknowledged"
    UNWITNESSED = "unwitnessed"
    IN_FLIGHT = "in_flight"


def acknowledgements_in(view: TapView, end_ms: int) -> dict[str, Any]:
    """Return a channel's figures of acknowledgements as of `end_ms`.

    `end_ms` is a time of the channel's clock, Unix ms.
    """
    definite_latencies: list[list[str | int]] = []
    probable_latencies_ms: list[int] = []
    fates: Counter[Fate] = Counter()
    for message_id, message in view.messages.items():
        definite = definite_for(message, view)
        probable = probable_for(message, view, definite)
        if definite is not None:
            definite_latencies.append([message_id, _latency_ms(message, definite)])
        if probable is not None:
            probable_latencies_ms.append(_latency_ms(message, probable))
        # If a message has both a definite and a probable acknowledgement, the probable
        # acknowledgement is earlier.
        fates[fate_of(message, view, probable or definite, end_ms)] += 1
    return {
        "acknowledged": {
            "definite": len(definite_latencies),
            "probable": len(probable_latencies_ms),
        },
        **{fate.value: fates[fate] for fate in Fate},
        "ack_latencies": definite_latencies,
        "ack_latency_ms": {"probable": summed(probable_latencies_ms)},
    }


def definite_for(message: SeenFrame, view: TapView) -> SeenFrame | None:
    """Return the frame that definitely acknowledges a message; None if none does.

    This is the first frame from another sender whose causal history names the message.
    Only frames up to `HORIZON_MS` after the message count.
    """
    for frame in view.namings.get(message.composition.message_id, ()):
        if frame.clock_ms > message.clock_ms + HORIZON_MS:
            return None
        if frame.composition.is_by_other_than(message.composition):
            return frame
    return None


def probable_for(
    message: SeenFrame, view: TapView, definite: SeenFrame | None
) -> SeenFrame | None:
    """Return the frame that makes a message possibly acknowledged; None if none does.

    If `definite` is given, only frames before it count.
    """
    others = islice(view.active_others(message), PROBABLE_PARTICIPANTS)
    needed = max(1, sum(1 for _ in others))
    end = len(view.frames) if definite is None else definite.index
    holders: set[str] = set()
    rate = 1.0
    for index in range(message.index + 1, end):
        frame = view.frames[index]
        if frame.clock_ms > message.clock_ms + HORIZON_MS:
            return None
        composition = frame.composition
        if (
            frame.is_old
            or composition.filter is None
            or composition.sender in holders
            or not composition.is_by_other_than(message.composition)
            or not composition.filter.holds(message.composition.message_id)
        ):
            continue
        holders.add(composition.sender)
        rate *= composition.filter.false_positive_rate()
        if rate < PROBABLE_RATE and len(holders) >= needed:
            return frame
    return None


def fate_of(
    message: SeenFrame, view: TapView, evidence: SeenFrame | None, end_ms: int
) -> Fate:
    """Return a message's state at `end_ms`; `evidence` is its first acknowledgement."""
    deadline_ms = message.clock_ms + DEADLINE_MS
    if evidence is not None and evidence.clock_ms <= deadline_ms:
        return Fate.IN_TIME
    # If the clock is exactly at the deadline, the next frame can still acknowledge the
    # message in time.
    if end_ms <= deadline_ms:
        return Fate.IN_FLIGHT
    after = view.between(message.clock_ms, deadline_ms)
    if any(_is_opportunity(frame, message, view) for frame in after):
        return Fate.UNACKNOWLEDGED
    return Fate.UNWITNESSED


def _is_opportunity(frame: SeenFrame, message: SeenFrame, view: TapView) -> bool:
    """Return whether a frame could have acknowledged a message, but does not.

    If the frame's filter or history contains the message, the result is False. If the
    frame's sender was silent for long, and returned only after the message was first
    seen, the result is False too.
    """
    known, message_id = frame.composition.filter, message.composition.message_id
    return (
        frame.copy is Copy.FIRST
        and frame.index > message.index
        and frame.at_ms > message.at_ms
        and frame.composition.kind is not FrameKind.EPHEMERAL
        and frame.composition.dialect is message.composition.dialect
        and frame.composition.lamport > message.composition.lamport
        and frame.composition.is_by_other_than(message.composition)
        and not (known is not None and known.holds(message_id))
        and all(named.message_id != message_id for named in frame.composition.history)
        and _returned_ms(frame, view) <= message.at_ms
    )


def _returned_ms(frame: SeenFrame, view: TapView) -> int:
    frames = view.first_copies[frame.composition.sender]
    until = bisect_right(frames, frame.index, key=attrgetter("index"))
    latest_ms, _ = list(returns_ms_of(frames[:until]))[-1]
    return latest_ms


def _latency_ms(message: SeenFrame, evidence: SeenFrame) -> int:
    return max(0, evidence.at_ms - message.at_ms)
