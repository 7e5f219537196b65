"""Explaining a failed query, wherever in Spark our code failed."""

from __future__ import annotations

import importlib
import pickle
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from connectors.kafka.settings import (
    KafkaRefused,
    KafkaUnreachable,
    RecordRefused,
    RecordsLost,
    SecurityUnusable,
    TopicMissing,
    TopicReplaced,
)
from sds_core.observer.blob import UnknownBlobVersion
from streaming.cli.starting import as_click_error, end_of_jvm
from streaming.damage import DamagedCheckpoint
from streaming.failure import (
    BatchTooLarge,
    JobFailed,
    LostInRead,
    NoWorker,
    hand_over,
    query_failure,
)

UNREACHABLE = KafkaUnreachable("a:1", 'says "no" to <user>, ${user} and Jürgen\r\x85')
LOST = RecordsLost("frames", 0, 1, 2)


def raised_in_spark(error: Exception) -> StreamingQueryException:
    """The error of a query in which our code raised an error."""

    @hand_over
    def fail() -> None:
        raise error

    try:
        fail()
    except Exception:
        text = traceback.format_exc()
    return spark_error(f"[FOREACH_BATCH_USER_FUNCTION_ERROR] Reason: {text}")


def spark_error(message: str) -> StreamingQueryException:
    """The error of a query whose cause has a message."""
    return StreamingQueryException(
        message=f"[STREAM_FAILED] Query [id = 1, runId = 2] terminated with "
        f"exception: {message} SQLSTATE: XXKST\n=== Streaming Query ===\n"
        "Identifier: [id = 1]",
        messageParameters={"id": "1", "runId": "2", "message": message},
    )


def test_process_of_spark_that_does_not_answer_is_explained() -> None:
    """Spark's own words name neither the cause nor what to do."""
    error = spark_error("Python worker failed to connect back.")
    failure = query_failure(error)
    assert isinstance(failure, NoWorker)
    assert "the machine is too busy or lacks memory" in str(failure)
    assert (failure.passes, failure.final) == (True, False)


@pytest.mark.parametrize(
    ("error", "unreachable"),
    [
        (UNREACHABLE, True),
        (KafkaRefused("a:1", "it asks for a user", "give one"), True),
        (TopicMissing("frames", "a:1"), True),
        (SecurityUnusable("ca.pem contains no readable certificates"), True),
        (RecordRefused("a:1", "it is too large", "allow larger ones"), False),
        (LOST, False),
        (UnknownBlobVersion(99, 3), False),
        (TopicReplaced("frames", "old", "new"), False),
        (DamagedCheckpoint("offsets/7", "is missing"), False),
    ],
)
def test_error_of_our_own_says_what_to_do(error: Exception, unreachable: bool) -> None:
    """Its text is the cause; its class decides whether Kafka was unreachable."""
    failure = query_failure(raised_in_spark(error))
    assert failure.cause == str(failure) == str(error).strip()
    assert failure.unreachable == unreachable


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (UnknownBlobVersion(99, 3), True),
        (TopicReplaced("frames", "old", "new"), True),
        (DamagedCheckpoint("offsets/7", "is missing"), True),
        (LOST, True),
        (UNREACHABLE, False),
        (ValueError("no such thing"), False),
    ],
)
def test_error_that_returns_at_each_start_needs_a_person(
    error: Exception, final: bool
) -> None:
    """A supervisor should not start the job again."""
    failure = query_failure(raised_in_spark(error))
    assert failure.final == final
    code = {True: 2, False: 3 if failure.unreachable else 4}[final]
    assert as_click_error(failure).exit_code == code


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (UNREACHABLE, True),
        (TopicMissing("frames", "a:1"), True),
        (RecordRefused("a:1", "it is too large", "allow larger ones"), False),
        (LOST, False),
        (LostInRead("frames", 0), True),
        (TopicReplaced("frames", "old", "new"), False),
        (DamagedCheckpoint("offsets/7", "is missing"), False),
        (KafkaRefused("a:1", "it asks for a user", "give one"), None),
        (SecurityUnusable("ca.pem contains no readable certificates"), None),
        (OSError("the disk is full"), None),
    ],
)
def test_error_says_whether_it_passes(error: Exception, passes: bool | None) -> None:
    """A broker that ends may refuse clients; a certificate may be half replaced."""
    assert query_failure(raised_in_spark(error)).passes is passes


@pytest.mark.parametrize(
    "error",
    [
        TopicReplaced("frames", "old", "new"),
        LostInRead("frames", 0),
        DamagedCheckpoint("a", "is", "delete it"),
        SecurityUnusable("ca.pem contains no readable certificates"),
    ],
)
def test_error_survives_its_way_between_processes(error: Exception) -> None:
    """With its text and its attributes."""
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), str(again), vars(again)) == (
        type(error),
        str(error),
        vars(error),
    )


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ValueError("no such thing\nat all"), "ValueError: no such thing"),
        (AssertionError(), "AssertionError"),
        (UnicodeError("sds-monitor: {}"), "UnicodeError: sds-monitor: {}"),
    ],
)
def test_other_error_is_named_with_its_class(error: Exception, cause: str) -> None:
    """In one line."""
    failure = query_failure(raised_in_spark(error))
    assert (failure.cause, failure.unreachable) == (cause, False)


def test_first_error_of_a_chain_counts() -> None:
    """A failing clean-up must not hide that Kafka was unreachable."""

    @hand_over
    def fail() -> None:
        try:
            raise UNREACHABLE
        finally:
            raise OSError

    with pytest.raises(OSError) as caught:  # noqa: PT011 - it has no message
        fail()
    failure = query_failure(raised_in_spark(caught.value))
    assert failure.unreachable


def test_error_of_spark_itself_is_the_first_line_of_its_message() -> None:
    """Without the query's numbers."""
    failure = query_failure(spark_error("[STATE_STORE] It is another one.\nLook: it."))
    assert failure.cause == "[STATE_STORE] It is another one."
    assert not failure.unreachable


def test_error_that_stops_our_code_from_being_loaded_is_named() -> None:
    """Such an error is not marked; it ends the last traceback."""
    failure = query_failure(
        spark_error(
            "[FOREACH_BATCH_USER_FUNCTION_ERROR] Reason: Traceback (most recent call "
            'last):\n  File "a.py", line 1, in b\nPythonException: [PYTHON_EXCEPTION] '
            'Thrown: Traceback (most recent call last):\n  File "c.py", line 1, in d\n'
            "    import streaming\nModuleNotFoundError: No module named 'streaming'\n"
        )
    )
    assert failure.cause == "ModuleNotFoundError: No module named 'streaming'"


class Reader(DataSourceStreamReader):
    """A stream that fails in one of its methods."""

    def __init__(self, place: str) -> None:
        self._place = place

    def _fail_in(self, place: str) -> None:
        if place == self._place:
            raise UNREACHABLE

    @hand_over
    def initialOffset(self) -> dict[str, int]:
        """Where it begins."""
        self._fail_in("initialOffset")
        return {"offset": 0}

    @hand_over
    def latestOffset(self, start: Any, limit: Any) -> dict[str, int]:
        """Where it ends."""
        self._fail_in("latestOffset")
        return {"offset": 1}

    @hand_over
    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        """One partition."""
        self._fail_in("partitions")
        return [InputPartition(0)]

    @hand_over
    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        """One row."""
        self._fail_in("read")
        yield ("town",)


class Source(DataSource):
    """Gives one row."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "failing"

    def schema(self) -> str:
        """Schema of the rows."""
        return "key string"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """The reader that fails."""
        return Reader(self.options["place"])


def failing_fold(place: str) -> Callable[..., Iterator[pd.DataFrame]]:
    """A function of the stateful operator that may fail."""

    @hand_over
    def fold(
        key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        if place == "fold":
            raise UNREACHABLE
        yield pd.DataFrame({"key": [key[0]]})

    return fold


class Unloadable:
    """Cannot be unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        """What a worker calls instead."""
        return importlib.import_module, ("no_such_module",)


@pytest.mark.spark
@pytest.mark.parametrize(
    "place", ["initialOffset", "latestOffset", "partitions", "read", "fold", "sink"]
)
def test_error_is_understood_wherever_spark_runs_our_code(
    place: str, spark: SparkSession, tmp_path: Path
) -> None:
    """In the planner beside the driver, in a worker, and in the driver itself."""

    @hand_over
    def sink(output: DataFrame, batch_id: int) -> None:
        output.collect()
        if place == "sink":
            raise UNREACHABLE

    failure = failure_of(spark, tmp_path, sink, failing_fold(place), place)
    assert failure.cause == str(UNREACHABLE).strip()
    assert failure.unreachable


@pytest.mark.spark
def test_error_of_spark_in_a_batch_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By its condition, or by the class of the Java exception that has none."""

    @hand_over
    def fail_in_sql(output: DataFrame, batch_id: int) -> None:
        output.sparkSession.sql("SELECT raise_error('the disk\nis full')").collect()

    @hand_over
    def fail_in_java(output: DataFrame, batch_id: int) -> None:
        jvm: Any = output.sparkSession.sparkContext._jvm  # noqa: SLF001
        jvm.java.util.ArrayDeque().getFirst()

    failure = failure_of(spark, tmp_path / "sql", fail_in_sql, failing_fold(""))
    assert failure.cause == "[USER_RAISED_EXCEPTION] the disk"
    failure = failure_of(spark, tmp_path / "java", fail_in_java, failing_fold(""))
    assert failure.cause == "java.util.NoSuchElementException"


@pytest.mark.spark
def test_code_that_a_worker_cannot_load_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nothing of ours could mark such an error."""
    unloadable = Unloadable()

    def fold(*arguments: Any) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"key": [str(unloadable)]})

    @hand_over
    def sink(output: DataFrame, batch_id: int) -> None:
        output.collect()

    failure = failure_of(spark, tmp_path, sink, fold)
    assert failure.cause == "ModuleNotFoundError: No module named 'no_such_module'"


def failure_of(
    spark: SparkSession,
    checkpoint: Path,
    sink: Callable[[DataFrame, int], None],
    fold: Callable[..., Iterator[pd.DataFrame]],
    place: str = "",
) -> JobFailed:
    """What the failure of a query means.

    As the job does, it starts the query again if a busy machine kept Spark waiting for
    a Python process.
    """
    spark.dataSource.register(Source)
    writer = (
        spark.readStream.format("failing")
        .option("place", place)
        .load()
        .groupBy("key")
        .applyInPandasWithState(
            fold,
            "key string",
            "count int",
            "update",
            GroupStateTimeout.NoTimeout,
        )
        .writeStream.outputMode("update")
        .foreachBatch(sink)
    )
    checkpoint.mkdir(exist_ok=True)
    while True:
        directory = tempfile.mkdtemp(dir=checkpoint)
        query = writer.option("checkpointLocation", directory).start()
        try:
            with pytest.raises(StreamingQueryException) as caught:
                query.awaitTermination(240)
        finally:
            query.stop()
        failure = query_failure(caught.value)
        if not isinstance(failure, NoWorker):
            return failure


def test_batch_that_is_too_large_is_known_as_such() -> None:
    """Another start helps, because it makes the batch smaller."""
    failure = query_failure(raised_in_spark(BatchTooLarge(8_388_608)))
    assert (failure.too_large, failure.passes, failure.final) == (True, True, False)
    assert "more than 8,388,608 bytes" in failure.cause
    assert not query_failure(raised_in_spark(LOST)).too_large


@pytest.mark.parametrize(
    "message",
    ["java.lang.OutOfMemoryError: Java heap space", "[UNABLE_TO_ACQUIRE_MEMORY] 1 MiB"],
)
def test_lack_of_memory_says_what_to_set(message: str) -> None:
    """Also if it does not end the JVM."""
    cause = query_failure(spark_error(message)).cause
    assert cause.startswith(message)
    assert "--driver-memory" in cause
    assert "--max-batch-bytes" in cause


def test_end_of_the_jvm_says_what_to_do() -> None:
    """By its exit status."""
    assert "by signal 9: start again" in end_of_jvm(-9)
    assert "with status 1: start again" in end_of_jvm(1)
    found = end_of_jvm(52)
    assert "for lack of memory: start again" in found
    assert "PYSPARK_SUBMIT_ARGS='--driver-memory 2g pyspark-shell'" in found
