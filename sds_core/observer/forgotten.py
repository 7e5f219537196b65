"""The counts that are kept when a view is forgotten (docs/figures.md, 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

Totals = TypeVar("Totals")


class Forgotten(msgspec.Struct, array_like=True, tag=True):
    """The event that ends a view; later traffic with its name belongs to a new view.

    Attributes:
        totals: The view's last figures, encoded by `blob.totals_part`.
    """

    totals: bytes


@dataclass(frozen=True, slots=True)
class Remainder(Generic[Totals]):
    """Sums over the forgotten views of a kind.

    Attributes:
        views: How often views were forgotten.
        totals: Sum over all forgotten views. Every sum over all views includes it, so
            such a sum never decreases.
        other: Sum over those forgotten views that had no metric label; None if all had
            a label. The series ``other`` includes this sum. It must not include counts
            of a view with a label, because the series would then show an increase that
            did not happen.
    """

    views: int
    totals: Totals
    other: Totals | None = None
