"""Adds up the totals of several views of one kind.

How a field is added up follows from its type: whole numbers are summed, histograms
merged, and dictionaries of counts summed key by key. A field that is to be joined in
another way says so where it is declared::

    clock_ms: Annotated[int, greatest] = 0

Any other field keeps its default, because it has no meaning for several views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from sds_core.observer.histogram import Histogram

Totals = TypeVar("Totals", bound=msgspec.Struct)

Join = Callable[[Sequence[Any]], Any]
"""Joins the values of a field, at least one and never None, into one value."""


def greatest(values: Sequence[int]) -> int:
    """The greatest of the values."""
    return max(values)


def least(values: Sequence[int]) -> int:
    """The least of the values."""
    return min(values)


def sum_totals(kind: type[Totals], views: Iterable[Totals]) -> Totals:
    """Totals over views; without any view, those of a new one.

    Args:
        kind: Class of the totals.
        views: Totals of each view; they are not changed.
    """
    found = list(views)
    joined = {}
    for name, join in _joins(kind).items():
        values = [v for one in found if (v := getattr(one, name)) is not None]
        if values:
            joined[name] = join(values)
    return kind(**joined)


@lru_cache
def _joins(kind: type[msgspec.Struct]) -> Mapping[str, Join]:
    """How each field is joined that has a meaning for several views."""
    joins = {}
    for field in msgspec.structs.fields(kind):
        declared = getattr(field.type, "__metadata__", ())
        join = declared[0] if declared else _JOIN_OF_TYPE.get(field.type)
        if join is not None:
            joins[field.name] = join
    return joins


def _merged(histograms: Sequence[Histogram]) -> Histogram:
    merged = Histogram()
    for histogram in histograms:
        merged.add(histogram)
    return merged


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    added: Counter[str] = Counter()
    for one in counts:
        added.update(one)
    return dict(added)


_JOIN_OF_TYPE: Mapping[Any, Join] = {
    int: sum,
    Histogram: _merged,
    dict[str, int]: _added,
}
