"""Adds up the totals of several views of one kind.

How a field is added up follows from its type: whole numbers are summed, histograms
merged, and dictionaries of counts summed key by key. A field that is to be joined in
another way says so where it is declared::

    clock_ms: Annotated[int, greatest] = 0

Any other field keeps its default, because it has no meaning for several views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import msgspec

from sds_core.observer.histogram import Histogram

Totals = TypeVar("Totals", bound=msgspec.Struct)

Join = Callable[[Sequence[Any]], Any]
"""Joins the values of a field, at least one and never None, into one value."""


class _Field(NamedTuple):
    """A field that has a meaning for several views.

    Attributes:
        name: Its name.
        join: How its values are joined.
        is_optional: Whether its values may be None.
    """

    name: str
    join: Join
    is_optional: bool


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
    for name, join, is_optional in _fields(kind):
        values = list(map(attrgetter(name), found))
        if is_optional:
            values = [value for value in values if value is not None]
        if values:
            joined[name] = join(values)
    return kind(**joined)


@lru_cache
def _fields(kind: type[msgspec.Struct]) -> Sequence[_Field]:
    """The fields that have a meaning for several views."""
    fields = []
    for field in msgspec.structs.fields(kind):
        declared = getattr(field.type, "__metadata__", ())
        join = declared[0] if declared else _JOIN_OF_TYPE.get(field.type)
        if join is not None:
            fields.append(_Field(field.name, join, is_optional=bool(declared)))
    return fields


def _merged(histograms: Sequence[Histogram]) -> Histogram:
    # By bucket: with thousands of channels, adding one by one takes longest of all.
    buckets = zip(*map(attrgetter("counts"), histograms), strict=True)
    return Histogram(
        list(map(sum, buckets)), sum(map(attrgetter("sum_ms"), histograms))
    )


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    added: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            added[name] = added.get(name, 0) + count
    return added


_JOIN_OF_TYPE: Mapping[Any, Join] = {
    int: sum,
    Histogram: _merged,
    dict[str, int]: _added,
}
