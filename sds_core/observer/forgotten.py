"""The counts that remain of forgotten views (docs/figures.md, 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

Totals = TypeVar("Totals")


class Forgotten(msgspec.Struct, array_like=True, tag=True):
    """The end of a view; later traffic with the same name belongs to a new view.

    Attributes:
        totals: Its last figures, encoded by `blob.totals_part`.
    """

    totals: bytes


@dataclass(frozen=True, slots=True)
class Remainder(Generic[Totals]):
    """Sums over the forgotten views of one kind, so that no sum decreases.

    Attributes:
        views: Number of times that a view was forgotten.
        totals: Sum over all of them; part of every sum over all views.
        other: Sum over those without a metric label of their own; part of the series
            ``other``. The counts of a view with a label are not added: in ``other``,
            they would look like an increase. None if all had a label.
    """

    views: int
    totals: Totals
    other: Totals | None = None
