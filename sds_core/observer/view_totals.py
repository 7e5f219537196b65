"""What the totals of every kind of view have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sds_core.observer.verdict import Verdict


class ViewTotals(Protocol):
    """Totals of one view, as verdict, report and pages read them.

    Times are event times in Unix milliseconds; None if there is none yet.
    """

    @property
    def first_event_ms(self) -> int | None:
        """Time of the first record."""

    @property
    def last_event_ms(self) -> int | None:
        """Time of the newest record."""

    @property
    def verdict(self) -> Verdict:
        """Health of what the view follows."""

    @property
    def verdict_reason(self) -> str:
        """Why the verdict is what it is, as a code."""

    @property
    def verdict_since_ms(self) -> int | None:
        """When the verdict began."""

    @property
    def observers(self) -> Sequence[str]:
        """Taps that showed it within the horizon."""
