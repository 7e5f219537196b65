"""What a correct monitor concludes about each message from the recorded frames.

The stories (messages.py) hold what actually happened to each message. A comparison of
the conclusions with the stories shows how accurate the rules in docs/figures.md are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from sds_core.simulation.truth.deliveries import Delivery, deliveries_of, summed
from sds_core.simulation.truth.gaps import Gap, Outcome, gaps_of
from sds_core.simulation.truth.tap_view import SeenFrame, TapView, window_end_ms


@dataclass(slots=True)
class Episodes:
    """Outcomes of a channel's repair episodes (docs/figures.md, 7).

    Attributes:
        expired: number of episodes that ended without a response.
        responses: copies of requested messages that were recorded within the repair
            window of the latest request.
    """

    response_times_ms: list[int] = field(default_factory=list)
    expired: int = 0
    responses: list[SeenFrame] = field(default_factory=list)


def episodes_of(view: TapView, end_ms: int) -> Episodes:
    """Return the outcomes of a channel's repair episodes as of `end_ms`.

    `end_ms` is a time of the channel's clock, Unix ms.
    """
    episodes = Episodes()
    for message_id in view.requests:
        _follow(message_id, view, end_ms, episodes)
    return episodes


def repair_in(view: TapView, episodes: Episodes) -> dict[str, Any]:
    """Return a channel's figures of repairs."""
    asked = [
        (frame.composition.filter, message_id)
        for frame in view.frames
        for message_id in frame.composition.requests
    ]
    for_received = [
        message_id
        for known, message_id in asked
        if known is not None and known.holds(message_id)
    ]
    answered = len(episodes.response_times_ms)
    return {
        "repair": {
            "requests": len(asked),
            "requests_for_received": len(for_received),
            "answered": answered,
            "expired": episodes.expired,
            "responses": len(episodes.responses),
            "redundant": len(episodes.responses) - answered,
        },
        "repair_response_ms": summed(episodes.response_times_ms),
    }


def _follow(message_id: str, view: TapView, end_ms: int, episodes: Episodes) -> None:
    copies = set(view.copies.get(message_id, ()))
    requests = set(view.requests[message_id])
    first: SeenFrame | None = None
    latest: SeenFrame | None = None
    for frame in sorted(copies | requests, key=attrgetter("index")):
        is_live = latest is not None and not _is_over(latest, frame.clock_ms)
        if first is not None and not is_live:
            episodes.expired += 1
            first = None
        if frame in copies and is_live:
            episodes.responses.append(frame)
            if first is not None:
                episodes.response_times_ms.append(max(0, frame.at_ms - first.at_ms))
                first = None
        if frame in requests:
            first = first or frame
            latest = frame
    if first is not None and latest is not None and _is_over(latest, end_ms):
        episodes.expired += 1


def _is_over(latest: SeenFrame, clock_ms: int) -> bool:
    return clock_ms > window_end_ms(latest)


class Conclusions:
    """All conclusions of a correct monitor about a channel's messages."""

    def __init__(self, view: TapView, end_ms: int) -> None:
        self.view = view
        self.end_ms = end_ms
        self.gaps: dict[Gap, Outcome] = gaps_of(view, end_ms)
        self.deliveries: list[Delivery] = list(deliveries_of(view))
        self.episodes: Episodes = episodes_of(view, end_ms)
        self._gap_of = {gap.message_id: gap for gap in self.gaps}
        self._deliveries_of: defaultdict[str, list[Delivery]] = defaultdict(list)
        for delivery in self.deliveries:
            message_id = delivery.message.composition.message_id
            self._deliveries_of[message_id].append(delivery)

    def document_of(self, message_id: str) -> dict[str, Any]:
        """Return the conclusions about a message as JSON values; times in Unix ms."""
        gap = self._gap_of.get(message_id)
        return {
            "gap": None
            if gap is None
            else {
                "named_ms": gap.naming.at_ms,
                "deadline_ms": gap.deadline_ms,
                "outcome": self.gaps[gap].value,
            },
            "deliveries": {
                delivery.participant: _delivery_object(delivery)
                for delivery in self._deliveries_of.get(message_id, ())
            },
        }


def _delivery_object(delivery: Delivery) -> dict[str, Any]:
    lacking = delivery.lacking
    return {
        "outcome": delivery.outcome.value,
        "lacking": None
        if lacking is None
        else {
            "composed_ms": lacking.composition.composed_ms,
            "seen_ms": lacking.at_ms,
        },
    }
