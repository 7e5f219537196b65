"""The counts that the monitor keeps of forgotten views (docs/figures.md, 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

Totals = TypeVar("Totals")


class Forgotten(msgspec.Struct, array_like=True, tag=True):
    """The last event of a view. Later traffic with its name belongs to a new view.

    Attributes:
        totals: The view's last figures, encoded by `blob.totals_part`.
    """

    totals: bytes


@dataclass(frozen=True, slots=True)
class Remainder(Generic[Totals]):
    """Sums over the forgotten views of a kind.

    Attributes:
        views: Number of forgotten views. If a view returned and was forgotten again, it
            counts again.
        totals: Sum over all forgotten views. Published sums over all views include this
            sum, so that they never decrease.
        other: Sum over the forgotten views that had no metric label; None if all had a
            label. The series ``other`` includes this sum. If a view with a label were
            added to this sum, ``other`` would rise without new traffic.
    """

    views: int
    totals: Totals
    other: Totals | None = None
