"""What can be concluded about each message from the frames that taps recorded.

Compared with the stories (messages.py), which hold what really happened, this shows how
accurate the rules in docs/figures.md are.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sds_core.simulation.truth.deliveries import Delivery, deliveries_of
from sds_core.simulation.truth.gaps import Gap, Outcome, gaps_of
from sds_core.simulation.truth.repair import Episodes, episodes_of
from sds_core.simulation.truth.tap_view import TapView


class Conclusions:
    """All that a correct monitor concludes of a channel's messages.

    Attributes:
        view: frames from which it concludes.
        end_ms: time of the clock, Unix ms.
        gaps: missing dependencies, with their outcomes.
        deliveries: deliveries of each message to each other participant.
        episodes: repair episodes.
    """

    def __init__(self, view: TapView, end_ms: int) -> None:
        """Compute all conclusions."""
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
        """Return the conclusions about a message for the document; times in Unix ms."""
        gap = self._gap_of.get(message_id)
        return {
            "gap": None if gap is None else self._gap_object(gap),
            "deliveries": {
                delivery.participant: _delivery_object(delivery)
                for delivery in self._deliveries_of.get(message_id, ())
            },
        }

    def _gap_object(self, gap: Gap) -> dict[str, Any]:
        return {
            "named_ms": gap.naming.at_ms,
            "deadline_ms": gap.deadline_ms,
            "outcome": self.gaps[gap].value,
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
