"""Groups of the stateful operator as Spark's JVM sends them to a Python worker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import cloudpickle, worker
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)
from pyspark.util import PythonEvalType

from sds_core.observer.tap_view import TapDigest
from streaming.fold import Fold

STATE = StructType().add("version", IntegerType()).add("blob", BinaryType())
OUTPUT = (
    StructType()
    .add("key", StringType())
    .add("totals", BinaryType())
    .add("events", BinaryType())
    .add("clock_ms", LongType())
)
WATERMARK_MS = 1_000
INFO = {
    "startOffset": pa.int32(),
    "numRows": pa.int32(),
    "isLastChunk": pa.bool_(),
    "properties": pa.string(),
    "keyRowAsUnsafe": pa.binary(),
    "object": pa.binary(),
}


class Group:
    """A group of a task's input.

    Args:
        key: Its key.
        digests: Its rows.
        value: The pickled state; None if there is none.
        timed_out: Whether its deadline has passed; it then has one row without values.
    """

    def __init__(
        self,
        key: str,
        digests: list[bytes],
        value: bytes | None = None,
        timed_out: bool = False,
    ) -> None:
        self.key = key
        self.digests: list[bytes | None] = [None] if timed_out else [*digests]
        self.value = value
        self.timed_out = timed_out

    def chunk(self, start: int, rows: int, is_last: bool) -> dict[str, Any]:
        """What the JVM says of some of its rows."""
        properties = {
            "batchProcessingTimeMs": 5,
            "eventTimeWatermarkMs": WATERMARK_MS,
            "timeoutConf": "EventTimeTimeout",
            "hasTimedOut": self.timed_out,
            "watermarkPresent": True,
            "defined": self.value is not None,
            "updated": False,
            "removed": False,
            "timeoutTimestamp": -1,
        }
        return {
            "startOffset": start,
            "numRows": rows,
            "isLastChunk": is_last,
            "properties": json.dumps(properties),
            "keyRowAsUnsafe": self.key.encode(),
            "object": self.value,
        }


def batch(rows: list[tuple[str, bytes | None]], infos: list[Any]) -> pa.RecordBatch:
    """A batch as the JVM sends it: the last column is as long as the others."""
    keys, digests = zip(*rows, strict=True)
    micros = [None if one is None else 2_000_000 + n for n, one in enumerate(digests)]
    padded = infos + [None] * (len(rows) - len(infos))
    columns = [
        pa.array(keys, pa.string()),
        pa.array(micros, pa.timestamp("us", "UTC")),
        pa.array(digests, pa.binary()),
        pa.array(padded, pa.struct(list(INFO.items()))),
    ]
    return pa.RecordBatch.from_arrays(columns, ["key", "event_time", "digest", "state"])


def batches(groups: list[Group], split: bool) -> Iterator[pa.RecordBatch]:
    """The groups in one batch; or each in two, of which the second has its last row."""
    rows: list[tuple[str, bytes | None]] = []
    infos: list[Any] = []
    for group in groups:
        if split and len(group.digests) > 1:
            first = [(group.key, one) for one in group.digests[:-1]]
            yield batch(first, [group.chunk(0, len(first), is_last=False)])
            last = [(group.key, group.digests[-1])]
            yield batch(last, [group.chunk(0, 1, is_last=True)])
            continue
        infos.append(group.chunk(len(rows), len(group.digests), is_last=True))
        rows += [(group.key, one) for one in group.digests]
    if rows:
        yield batch(rows, infos)


def by_spark(
    fold: Fold, most_rows: int, given: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What Spark's own worker answers."""
    # One pair of offsets: how many, the number of keys, the key, and the values.
    udf = SimpleNamespace(
        udfs=[cloudpickle.dumps((fold, OUTPUT))],
        args=[5, 1, 0, 0, 1, 2],
        kwargs={},
        result_id=None,
    )
    conf = worker.RunnerConf(
        {
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(most_rows),
            "spark.sql.session.timeZone": "UTC",
        }
    )
    pickler: Any = CloudPickleSerializer()
    function, *_ = worker.read_udfs(
        pickler,
        [udf],
        PythonEvalType.SQL_GROUPED_MAP_PANDAS_UDF_WITH_STATE,
        conf,
        SimpleNamespace(state_value_schema=STATE),
    )
    answer: Iterator[pa.RecordBatch] = function(0, iter(given))
    return answer


def tap_digest(time_ms: int, seq: int) -> bytes:
    """One record of a tap."""
    time, number = (n.to_bytes(8, "little") for n in (time_ms, seq))
    return msgspec.msgpack.encode(TapDigest(time, number, b"", b""))
