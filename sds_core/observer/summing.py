"""Adds up the totals of several views of one kind.

A field's type decides how it is added up. Whole numbers are summed, histograms merged,
and dictionaries of counts summed key by key. For another result, such as the greatest
value, the annotation of a field declares a function::

    clock_ms: Annotated[int, greatest] = 0

A field of another type without such a function keeps its default, because the values
cannot be added up.
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
"""Combines one or more values of a field into one value. The values are never None."""


greatest: Join = max
least: Join = min


def sum_totals(kind: type[Totals], views: Iterable[Totals]) -> Totals:
    """Return the sum of the views' totals.

    If `views` is empty, all fields of the sum have their defaults.
    """
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
    """Return a view's totals with only its counts.

    Counts are whole numbers, histograms, and dictionaries of counts. Other fields, and
    the fields that are named in `gauges`, get their default.
    """
    numbers, others = _fields(type(totals))
    counts = [*numbers, *(n for n, join in others.items() if join in _JOINS)]
    kept = {name: getattr(totals, name) for name in counts if name not in gauges}
    return type(totals)(**kept)


@lru_cache
def _fields(kind: type[msgspec.Struct]) -> tuple[Sequence[str], Mapping[str, Join]]:
    """Return the names of the fields that are summed as whole numbers, and the others.

    Each of the other fields has the function that combines its values. Fields that
    cannot be added up are omitted.
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
    # getter returns a tuple only for two or more names. Therefore, the first name is
    # repeated, and the first sum is removed.
    row = attrgetter(*names[:1], *names)
    return _added_rows(map(row, found), (len(found), 1 + len(names)))[1:]


def _merged(histograms: Sequence[Histogram]) -> Histogram:
    rows = map(attrgetter("counts"), histograms)
    counts = _added_rows(rows, (len(histograms), len(histograms[0].counts)))
    return Histogram(counts, sum(map(attrgetter("sum_ms"), histograms)))


def _added_rows(rows: Iterable[Sequence[int]], shape: tuple[int, int]) -> list[int]:
    """Return the sum of each column of `rows`.

    `shape` is the number of rows and the number of columns.
    """
    values = np.fromiter(chain.from_iterable(rows), np.int64, shape[0] * shape[1])
    sums: list[int] = values.reshape(shape).sum(axis=0).tolist()
    return sums


def added(counts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Return for each key the sum of its counts."""
    sums: dict[Key, int] = {}
    for one in counts:
        for key, count in one.items():
            sums[key] = sums.get(key, 0) + count
    return sums


_JOIN_OF_TYPE: Mapping[Any, Join] = {Histogram: _merged, dict[str, int]: added}
_JOINS = tuple(_JOIN_OF_TYPE.values())
