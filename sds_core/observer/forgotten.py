"""What remains of views that the monitor has forgotten (docs/figures.md, 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

Totals = TypeVar("Totals")


class Forgotten(msgspec.Struct, array_like=True, tag=True):
    """The end of a view; what the same name does afterwards belongs to a new view.

    Attributes:
        totals: Its last figures, packed as `blob.totals_part` returns them.
    """

    totals: bytes


@dataclass(frozen=True, slots=True)
class Remainder(Generic[Totals]):
    """What forgotten views of one kind had counted, so that no sum falls.

    Attributes:
        views: Number of times that a view was forgotten.
        totals: Sum over all of them; part of every sum over all views.
        other: Sum over those without a metric label of their own; part of the series
            ``other``. A view with a label leaves no trace in Prometheus: if its counts
            moved to ``other``, they would look like an increase there. None if all
            had a label.
    """

    views: int
    totals: Totals
    other: Totals | None = None
