"""Interface of the totals of a view that has a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from sds_core.observer.settings import ObserverSettings
from sds_core.observer.verdict import Verdict

Excused = Callable[[int, int], bool]
"""Takes the times when evidence began and when it was found, Unix ms.

Returns whether the evidence is excused.
"""


class ViewTotals(Protocol):
    """The part of a view's totals that verdicts, minutes and summaries use.

    Implementations are msgspec structs in which each field has a default. A struct
    with all defaults has the totals of a view without frames.
    """

    @property
    def first_event_ms(self) -> int | None:
        """Earliest event time of a frame, Unix ms; None before the first frame."""

    @property
    def last_event_ms(self) -> int | None:
        """Latest event time of a frame, Unix ms; None before the first frame."""

    @property
    def clock_ms(self) -> int:
        """Watermark up to which the figures are valid, Unix ms."""

    @property
    def verdict(self) -> Verdict:
        """Verdict on the view."""

    @property
    def verdict_reason(self) -> str:
        """Why the view has this verdict, as one word."""

    @property
    def verdict_since_ms(self) -> int | None:
        """When the verdict began, Unix ms of event time; None if unknown."""

    def verdict_without(
        self, excused: Excused, settings: ObserverSettings
    ) -> tuple[Verdict, str]:
        """Return the verdict and its reason if excused evidence does not count."""

    @property
    def observers(self) -> Sequence[str]:
        """Ids of the taps that mirrored the view within the retention window."""


_Totals = TypeVar("_Totals", bound=ViewTotals)


def replaced(totals: _Totals, **changes: object) -> _Totals:
    """Return a copy of totals in which the given fields are replaced."""
    struct: Any = totals
    changed: _Totals = msgspec.structs.replace(struct, **changes)
    return changed
