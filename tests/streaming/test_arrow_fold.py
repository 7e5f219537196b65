"""The fold of whole batches, beside Spark's own way through pandas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.serializers import CPickleSerializer

from sds_core.observer.tap_kind import TAPS
from streaming.arrow_fold import folded
from streaming.chunk import CLOCK_KEY
from streaming.fold import Fold
from tests.support.streaming.groups import STATE, Group, batches, by_spark, tap_digest

MOST_ROWS = 3


def answers(of: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """What the JVM reads of each batch: as many rows and states as it counts."""
    found = []
    for one in of:
        counts, rows, states = (column.to_pylist() for column in one.columns)
        rows, states = (
            rows[: counts[0]["dataCount"]],
            states[: counts[0]["stateCount"]],
        )
        found.append((rows, states))
    return found


def groups() -> list[Group]:
    """Some groups: new, known, silent beyond a deadline, and that of the clock."""
    names = [TAPS.key(name) for name in ("a", "b", "c", "d")]
    new = [Group(key, [tap_digest(1_000, 1), tap_digest(1_500, 4)]) for key in names]
    (first, *_) = answers(folded(Fold(), STATE, 0, batches(new, split=False)))
    value = first[1][0]["object"]
    pickler: Any = CPickleSerializer()
    assert pickler.loads(value)[1]
    return [
        Group(CLOCK_KEY, [b""]),
        *new,
        Group(TAPS.key("e"), [tap_digest(1_900, 5)], value),
        Group(TAPS.key("f"), [], value, timed_out=True),
        Group(TAPS.key("g"), [tap_digest(1_900, n) for n in range(5, 9)], value),
    ]


@pytest.mark.parametrize("split", [False, True])
def test_answer_is_that_of_sparks_own_worker(split: bool) -> None:
    """Rows, states and timeouts, of groups in one batch and in several."""
    given = groups()
    expected = answers(by_spark(Fold(), MOST_ROWS, batches(given, split)))
    found = answers(folded(Fold(), STATE, MOST_ROWS, batches(given, split)))
    rows = [row for part, _ in found for row in part]
    states = [state for _, part in found for state in part]
    assert len(rows) == len(states) == len(given)
    assert len(found) > 1
    assert [row for part, _ in expected for row in part] == rows
    assert [state for _, part in expected for state in part] == states


def test_columns_have_the_types_that_spark_gives_them() -> None:
    """The JVM reads them by position and type."""
    given = groups()
    (expected, *_) = by_spark(Fold(), MOST_ROWS, batches(given, split=False))
    (found, *_) = folded(Fold(), STATE, MOST_ROWS, batches(given, split=False))
    assert [str(one.type) for one in found.columns] == [
        str(one.type) for one in expected.columns
    ]
    assert found.schema.names == expected.schema.names


def test_task_without_groups_has_no_answer() -> None:
    """As in Spark: nothing is written."""
    assert list(folded(Fold(), STATE, 0, iter([]))) == []
