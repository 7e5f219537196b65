"""Runs the fold on whole Arrow batches in Spark's Python workers, without pandas.

For each group, Spark's own worker makes one pandas data frame of the input, and two
data frames of the result (docs/performance.md). Instead, this module reads and writes
whole columns of a batch. On a cluster, workers start without the monitor's code, so
they run Spark's own code with pandas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import wraps
from typing import Any

import pyarrow as pa
from pyspark import worker
from pyspark.serializers import CPickleSerializer
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType
from pyspark.worker_util import read_command

from streaming.fold import Fold, OutputRow

_PICKLER: Any = CPickleSerializer()

_COUNTS = {"dataCount": pa.int32(), "stateCount": pa.int32()}
_ROWS = dict(
    zip(
        OutputRow._fields,
        (pa.string(), pa.binary(), pa.binary(), pa.int64()),
        strict=True,
    )
)
_STATES = {
    "properties": pa.string(),
    "keyRowAsUnsafe": pa.binary(),
    "object": pa.binary(),
    "oldTimeoutTimestamp": pa.int64(),
}


_StateRow = tuple[str, bytes, bytes | None, int]
"""A row of `_STATES`; the last item is the deadline before the fold, Unix ms."""


def use_arrow_fold() -> None:
    """Patch pyspark in this process, so that workers forked from it fold with Arrow."""
    read_udfs: Any = worker.read_udfs
    make_serializer: Any = ArrowStreamSerializer

    @wraps(read_udfs)
    def read(
        pickler: Any, udfs: Any, eval_type: int, runner_conf: Any, eval_conf: Any
    ) -> Any:
        if eval_type == PythonEvalType.SQL_GROUPED_MAP_PANDAS_UDF_WITH_STATE:
            fold, _ = read_command(pickler, udfs[0].udfs[0])
            if isinstance(fold, Fold):
                most_rows = runner_conf.arrow_max_records_per_batch
                schema = eval_conf.state_value_schema
                serializer = make_serializer(write_start_stream=True)

                def run(_split_index: int, batches: Any) -> Iterator[pa.RecordBatch]:
                    return folded(fold, schema, most_rows, batches)

                return run, None, serializer, serializer
        return read_udfs(pickler, udfs, eval_type, runner_conf, eval_conf)

    worker.read_udfs = read


def folded(
    fold: Fold,
    schema: StructType,
    most_rows: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Fold the groups of a task; yield batches of three structs: counts, rows, states.

    The batches of the input have the columns ``key``, ``event_time`` and ``digest``.
    Their last column contains, for each group, its range of rows and its state. If
    `most_rows` is positive, a result is yielded as soon as it has more rows than this.
    The function raises the errors of `Fold.row`.
    """
    rows: list[OutputRow] = []
    states: list[_StateRow] = []
    for key, packed, clock_ms, state in _groups(batches, schema):
        rows.append(fold.row(key, packed, clock_ms, state))
        states.append(_state_row(state, schema))
        if 0 < most_rows < len(rows):
            yield _answer(rows, states)
            rows, states = [], []
    if rows:
        yield _answer(rows, states)


def _groups(
    batches: Iterable[pa.RecordBatch], schema: StructType
) -> Iterator[tuple[str, list[bytes], int, GroupState]]:
    """Yield each group's key, digests, newest event time in Unix ms, and state."""
    packed: list[bytes] = []
    clock_ms = 0
    for batch in batches:
        keys, digests = (batch.column(name).to_pylist() for name in ("key", "digest"))
        micros = batch.column("event_time").cast(pa.int64()).to_pylist()
        for group in batch.column(batch.num_columns - 1).to_pylist():
            if group is None:
                break
            first, properties = group["startOffset"], json.loads(group["properties"])
            # If a group is folded only because its deadline has passed, the group has a
            # single row, which contains the key, but no digest.
            if not properties["hasTimedOut"]:
                part = slice(first, first + group["numRows"])
                packed += digests[part]
                clock_ms = max(clock_ms, max(micros[part], default=0) // 1000)
            if not group["isLastChunk"]:
                continue
            value = group["object"]
            properties["optionalValue"] = _PICKLER.loads(value) if value else None
            key_row = group["keyRowAsUnsafe"]
            state = GroupState(keyAsUnsafe=key_row, valueSchema=schema, **properties)
            yield keys[first], packed, clock_ms, state
            packed, clock_ms = [], 0


def _state_row(state: GroupState, schema: StructType) -> _StateRow:
    value = None
    if state.exists:
        value = _PICKLER.dumps(schema.toInternal(state.get))
    key: bytes = state._keyAsUnsafe  # noqa: SLF001 - as Spark's worker
    return state.json(), key, value, state.oldTimeoutTimestamp


def _answer(rows: Sequence[OutputRow], states: Sequence[_StateRow]) -> pa.RecordBatch:
    count = len(rows)
    columns = [
        _struct(_COUNTS, [(count, count)] * count),
        _struct(_ROWS, rows),
        _struct(_STATES, states),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["_0", "_1", "_2"])


def _struct(
    types: dict[str, pa.DataType], rows: Sequence[tuple[Any, ...]]
) -> pa.StructArray:
    columns = [
        pa.array(column, kind)
        for column, kind in zip(zip(*rows, strict=True), types.values(), strict=True)
    ]
    return pa.StructArray.from_arrays(columns, names=list(types))
