"""What Spark's own way to fold a group costs, beside the way of one machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

import pyarrow as pa

from benchmarks.context import Context
from sds_core.observer.tap_kind import TAPS
from streaming.arrow_fold import folded
from streaming.fold import Fold
from tests.support.streaming.groups import STATE, Group, batches, by_spark, tap_digest

ROW = "groups"
_GROUPS = 1_000
_MOST_ROWS = 10_000
"""Spark's default for rows of a batch of Arrow."""


def groups(context: Context) -> None:
    """Fold many groups of one row each, of views that do hardly anything."""
    given = [Group(TAPS.key(f"{n}"), [tap_digest(1_000, 1)]) for n in range(_GROUPS)]
    task = list(batches(given, split=False))
    fold = Fold()
    ways: dict[str, Callable[[], Iterable[pa.RecordBatch]]] = {
        "read a group of one row through pandas": partial(
            by_spark, fold, _MOST_ROWS, task
        ),
        "read a group of one row from Arrow columns": partial(
            folded, fold, STATE, _MOST_ROWS, task
        ),
    }
    for _ in range(context.repeat):
        for what, way in ways.items():
            context.say(ROW, what, "µs", _spent_s(way()) / _GROUPS * 1e6)


def _spent_s(answer: Iterable[pa.RecordBatch]) -> float:
    begun_s = time.process_time()
    for _ in answer:
        pass
    return time.process_time() - begun_s
