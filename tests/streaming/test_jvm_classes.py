"""Bytes of states on their way from the JVM to Python."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streaming.session import use_bytes_pickler

pytestmark = pytest.mark.spark


def pickled(spark: SparkSession, data: bytes | None) -> bytes:
    """A state as Spark's JVM passes it to a Python worker."""
    frame = spark.createDataFrame([(1, data)], "version int, blob binary")
    row: Any = frame._jdf.collectAsList().get(0)  # noqa: SLF001 - no public way
    jvm: Any = spark._jvm  # noqa: SLF001 - no public way
    return bytes(jvm.org.apache.spark.sql.api.python.PythonSQLUtils.toPyRow(row))


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)), b"", b"\xff" * 300_000, None],
    ids=["all", "empty", "long", "none"],
)
def test_state_is_what_spark_makes_of_it(
    spark: SparkSession, data: bytes | None
) -> None:
    """Python reads the same value, of the same type."""
    use_bytes_pickler(spark)
    version, blob = pickle.loads(pickled(spark, data))  # noqa: S301 - our own bytes
    assert (version, blob, type(blob)) == (1, data, type(data))


def test_bytes_are_passed_as_they_are(spark: SparkSession) -> None:
    """Spark's own pickler takes up to two bytes for each."""
    use_bytes_pickler(spark)
    data = bytes(range(128, 256))
    assert data in pickled(spark, data)
