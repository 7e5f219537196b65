"""Adds up the totals of several views of one kind.

A field's type decides how it is added up. Whole numbers are summed, histograms merged,
and dictionaries of counts summed key by key. A field's annotation may declare another
function::

    clock_ms: Annotated[int, greatest] = 0

Fields of other types keep their default, because their values cannot be added up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
import numpy as np

from sds_core.observer.histogram import Histogram

Totals = TypeVar("Totals", bound=msgspec.Struct)
Key = TypeVar("Key")

Join = Callable[[Sequence[Any]], Any]
"""Combines one or more values of a field into one value. No value is None."""


greatest: Join = max
least: Join = min


def sum_totals(kind: type[Totals], views: Iterable[Totals]) -> Totals:
    """Return the sum of the views' totals; without views, all fields have defaults."""
    found = list(views)
    if not found:
        return kind()
    numbers, others = _fields(kind)
    joined: dict[str, Any] = dict(zip(numbers, _sums(numbers, found), strict=True))
    for name, join in others.items():
        values = [v for v in map(attrgetter(name), found) if v is not None]
        if values:
            joined[name] = join(values)
    return kind(**joined)


def counted_part(totals: Totals, gauges: Collection[str]) -> Totals:
    """Return only the counts in a view's totals: numbers, histograms, dictionaries.

    Other fields and the fields in `gauges` get their default.
    """
    numbers, others = _fields(type(totals))
    counts = [*numbers, *(n for n, join in others.items() if join in _JOINS)]
    kept = {name: getattr(totals, name) for name in counts if name not in gauges}
    return type(totals)(**kept)


@lru_cache
def _fields(kind: type[msgspec.Struct]) -> tuple[Sequence[str], Mapping[str, Join]]:
    """Names of the fields that are whole numbers, and how other fields are combined.

    Fields that cannot be added up are omitted.
    """
    numbers, others = [], {}
    for field in msgspec.structs.fields(kind):
        declared = getattr(field.type, "__metadata__", ())
        if field.type is int:
            numbers.append(field.name)
        elif declared:
            others[field.name] = declared[0]
        elif field.type in _JOIN_OF_TYPE:
            others[field.name] = _JOIN_OF_TYPE[field.type]
    return numbers, others


def _sums(names: Sequence[str], found: Sequence[msgspec.Struct]) -> list[int]:
    if not names:
        return []
    # Sum view by view, so that the memory of each view is read once for all fields. The
    # first name is repeated, so that the getter returns a tuple even for one field.
    row = attrgetter(*names[:1], *names)
    return _added_rows(map(row, found), (len(found), 1 + len(names)))[1:]


def _merged(histograms: Sequence[Histogram]) -> Histogram:
    rows = map(attrgetter("counts"), histograms)
    counts = _added_rows(rows, (len(histograms), len(histograms[0].counts)))
    return Histogram(counts, sum(map(attrgetter("sum_ms"), histograms)))


def _added_rows(rows: Iterable[Sequence[int]], shape: tuple[int, int]) -> list[int]:
    """Sums of whole numbers by column. `shape` has the numbers of rows and columns."""
    values = np.fromiter(chain.from_iterable(rows), np.int64, shape[0] * shape[1])
    sums: list[int] = values.reshape(shape).sum(axis=0).tolist()
    return sums


def added(counts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Sums of counts by key."""
    sums: dict[Key, int] = {}
    for one in counts:
        for key, count in one.items():
            sums[key] = sums.get(key, 0) + count
    return sums


_JOIN_OF_TYPE: Mapping[Any, Join] = {Histogram: _merged, dict[str, int]: added}
_JOINS = tuple(_JOIN_OF_TYPE.values())
