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
        totals: Sum over all forgotten views. Every sum over all views includes
            `totals`.
        other: Sum over forgotten views that had no metric label; part of the series
            ``other``. If `other` had counts of a view with a label, the series would
            show a false increase. None if all forgotten views had a label.
    """

    views: int
    totals: Totals
    other: Totals | None = None
