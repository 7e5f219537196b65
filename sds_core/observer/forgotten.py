"""The counts that remain of forgotten views (docs/figures.md, 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

Totals = TypeVar("Totals")


class Forgotten(msgspec.Struct, array_like=True, tag=True):
    """The end of a view. Later traffic with the same name belongs to a new view.

    Attributes:
        totals: The view's last figures, encoded by `blob.totals_part`.
    """

    totals: bytes


@dataclass(frozen=True, slots=True)
class Remainder(Generic[Totals]):
    """Sums over forgotten views of a kind, so that sums over all views never decrease.

    Attributes:
        views: Number of times that a view was forgotten.
        totals: Sum over all forgotten views; part of every sum over all views.
        other: Sum over forgotten views without a metric label of their own; part of the
            series ``other``. The counts of a view with a label would look like an
            increase there. None if all forgotten views had a label.
    """

    views: int
    totals: Totals
    other: Totals | None = None
