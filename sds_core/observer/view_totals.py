"""Interface of a view's totals, which include the verdict on the view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from sds_core.observer.settings import ObserverSettings
from sds_core.observer.verdict import Verdict

Excused = Callable[[int, int], bool]
"""A function that decides whether capture gaps excuse evidence for a bad verdict.

Its arguments are the times when the evidence began and when it was found, Unix ms.
"""


class ViewTotals(Protocol):
    """The part of a view's totals that all kinds of views have.

    Implementations are msgspec structs in which each field has a default. If all
    fields have their defaults, the struct has the totals of a view without frames.
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
        """Event time when the view got this verdict, Unix ms; None if unknown."""

    def verdict_without(
        self, excused: Excused, settings: ObserverSettings
    ) -> tuple[Verdict, str]:
        """Return the verdict that follows from unexcused evidence, and its reason."""

    @property
    def observers(self) -> Sequence[str]:
        """Ids of the taps that mirrored traffic of the view in the retention window."""


_Totals = TypeVar("_Totals", bound=ViewTotals)


def replaced(totals: _Totals, **changes: object) -> _Totals:
    """Return a copy of a view's totals with the new field values in `changes`."""
    struct: Any = totals
    changed: _Totals = msgspec.structs.replace(struct, **changes)
    return changed
