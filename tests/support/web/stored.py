"""What is stored of channels, as a test says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.history.schema import Row
from connectors.web.sources import StoredViews
from sds_core.planning.hours import hour_rows


@dataclass
class StoredByHand:
    """Answers of a store; by default nothing is stored.

    Attributes:
        find_incidents, find_minutes, find_recent, find_steps, find_verdicts,
            verdicts_until_ms: See `StoredViews`.
    """

    find_incidents: Callable[..., Any] = lambda query: []
    find_minutes: Callable[..., Any] = lambda channel, since_ms, until_ms, fields: []
    find_recent: Callable[..., Any] = lambda at_ms: {}
    find_steps: Callable[..., Any] = lambda channels, since_ms, until_ms, step_ms: {}
    find_verdicts: Callable[..., Any] = lambda channels, since_ms, until_ms: {}
    verdicts_until_ms: Callable[[], int | None] = lambda: None

    def find_hours(
        self,
        channel: str,
        since_ms: int,
        until_ms: int,
        counters: Collection[str],
        gauges: Sequence[str],
    ) -> Sequence[Row]:
        """Return the hours of `find_minutes`."""
        fields = [*counters, *gauges]
        return hour_rows(self.find_minutes(channel, since_ms, until_ms, fields), gauges)


def stored(**answers: Callable[..., Any]) -> Callable[[], Mapping[str, StoredViews]]:
    """Return what `Sources.stored` is, of a monitor that observes SDS alone."""
    views = {"sds": StoredByHand(**answers)}
    return lambda: views
