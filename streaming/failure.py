"""Explains why a query failed, for the operator and for the exit code.

Spark runs our code in several processes and forwards errors only as text. In the
process that raises an error, `hand_over` therefore adds a note to the error: a line
with a mark and the attributes of a `JobFailed` as JSON. Spark's text contains the
traceback with this line, so that `query_failure` finds the line.
"""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from connectors.kafka.settings import (
    InvalidTopic,
    KafkaRefused,
    KafkaUnreachable,
    RecordRefused,
    RecordsLost,
    SecurityUnusable,
    TopicMissing,
    TopicReplaced,
)
from connectors.storage import disk
from sds_core.observer.blob import UnknownBlobVersion
from streaming.damage import DamagedCheckpoint

if TYPE_CHECKING:
    from pyspark.errors import StreamingQueryException

_FINAL = (DamagedCheckpoint, RecordsLost, TopicReplaced, UnknownBlobVersion)
"""Errors after which another start would fail in the same way."""


class BatchTooLarge(RuntimeError):
    """The output of a worker for one batch would not fit into memory."""

    def __init__(self, limit_bytes: int) -> None:
        # Unpickling calls the class with `args`, so `args` has the same argument.
        super().__init__(limit_bytes)
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        """The error in one line."""
        return (
            f"a worker's digests of a batch have more than {self.limit_bytes:,} bytes: "
            "the job plans the batch again in smaller parts; if this fails, use a "
            "lower --max-batch-records"
        )


class LostInRead(LookupError):
    """Kafka deleted records of a batch after the batch was planned.

    The job continues without these records, because `SourceSettings.skip_lost` is set.
    """

    def __init__(self, topic: str, partition: int) -> None:
        # Unpickling calls the class with `args`, so `args` has the same arguments.
        super().__init__(topic, partition)

    def __str__(self) -> str:
        """The error in one line."""
        topic, partition = self.args
        return (
            f"Kafka deleted records of {topic}:{partition} while the job read them: "
            "the job continues without these records"
        )


_FORESEEN = (
    *_FINAL,
    BatchTooLarge,
    LostInRead,
    InvalidTopic,
    KafkaUnreachable,
    TopicMissing,
)
"""Errors whose text contains the remedy.

For an error of another class, `JobFailed.cause` also names the class.
"""

_NO_WORKER = "Python worker failed to connect back"
"""Part of Spark's message if its Python process has not connected within 10 s."""

_NO_WORKER_CAUSE = (
    "a Python process that Spark started did not answer within 10 s: the machine is "
    "too busy or lacks memory; stop other programs or add memory, and start again: "
    "nothing is lost"
)
MORE_MEMORY = (
    "if the batch fails again, the next start plans it again in smaller parts; for a "
    "larger heap set PYSPARK_SUBMIT_ARGS='--driver-memory 2g pyspark-shell', for "
    "smaller batches --max-batch-bytes (docs/sizing.md, Memory)"
)

_MEMORY_ERRORS = ("OutOfMemoryError", "UNABLE_TO_ACQUIRE_MEMORY")

_MARK = "sds-monitor failure: "
_TRACEBACK = "Traceback (most recent call last):\n"

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


@dataclass(eq=False, repr=False)
class JobFailed(RuntimeError):
    """The query ended with an error.

    Attributes:
        cause: The error in one line.
        unreachable: Whether Kafka or the topic cannot be reached.
        final: Whether another start would fail in the same way.
        passes: Whether another start can succeed without action of a person; None if
            unknown.
        too_large: Whether the next starts must plan smaller batches.
    """

    cause: str
    unreachable: bool = False
    final: bool = False
    passes: bool | None = None
    too_large: bool = False

    def __post_init__(self) -> None:
        """Set the text of the error."""
        super().__init__(self.cause)


class NoWorker(JobFailed):
    """A Python process of Spark did not answer in time, before it read anything."""

    def __init__(self) -> None:
        super().__init__(_NO_WORKER_CAUSE, passes=True)


def hand_over(
    function: Callable[_Parameters, _Result],
) -> Callable[_Parameters, _Result]:
    """Decorate a function or generator: its errors get a note for `query_failure`."""
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            try:
                yield from function(*args, **kwargs)
            except Exception as error:
                _add_meaning(error)
                raise

        return cast("Callable[_Parameters, _Result]", generate)

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _add_meaning(error)
            raise

    return call


def query_failure(error: StreamingQueryException) -> JobFailed:
    """Return the error that explains a failed query.

    If the error was raised outside our code, for example because a worker cannot load
    our code, Spark's text contains no mark. In this case, `cause` is the line of
    Spark's message that names the error.
    """
    text = str(error)
    if _NO_WORKER in text:
        return NoWorker()
    _, mark, after = text.partition(_MARK)
    if mark:
        return JobFailed(**json.loads(after.partition("\n")[0]))
    # Spark's error has the condition STREAM_FAILED. Its parameter ``message`` is the
    # message of the error that ended the query.
    parameters = error.getMessageParameters() or {}
    cause = with_remedy(_naming_line(parameters.get("message", text)))
    if any(name in text for name in _MEMORY_ERRORS):
        cause = f"{cause}; {MORE_MEMORY}"
    return JobFailed(cause)


def _add_meaning(error: Exception) -> None:
    # If a task has failed, Spark raises an error in the sink. Its text already contains
    # the mark that was added in the task.
    if _MARK in str(error):
        return
    # `json.dumps` escapes line ends and all characters outside ASCII, so the note has
    # only one line.
    error.add_note(_MARK + json.dumps(vars(_meaning_of(error))))


def _meaning_of(error: Exception) -> JobFailed:
    for one in _chain(error):
        if isinstance(one, _FORESEEN):
            # `RecordRefused` is a `KafkaUnreachable`, but the broker is reachable.
            unreachable = isinstance(
                one, KafkaUnreachable | TopicMissing
            ) and not isinstance(one, RecordRefused)
            final = isinstance(one, _FINAL)
            # These errors may be temporary: a broker that shuts down refuses clients,
            # and a certificate may be replaced before its key.
            is_unclear = isinstance(one, KafkaRefused | SecurityUnusable)
            passes = None if is_unclear else unreachable
            return JobFailed(
                _first_line(str(one)),
                unreachable,
                final,
                True if isinstance(one, BatchTooLarge | LostInRead) else passes,
                too_large=isinstance(one, BatchTooLarge),
            )
    return JobFailed(with_remedy(cause_of(error)))


def with_remedy(cause: str) -> str:
    """Return an error's one-line text, with a remedy if a disk caused the error."""
    explained = disk.with_remedy(cause)
    if explained == cause:
        return cause
    return f"{explained}, and start again: finished batches are not lost"


def cause_of(error: Exception) -> str:
    """Return one line that describes an unexpected error of Spark or Python."""
    # PySpark is imported only here, because commands that do not start Spark also
    # import this module.
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if isinstance(error, Py4JJavaError):
        java = error.java_exception
        while (cause := java.getCause()) is not None:
            java = cause
        return _first_line(str(java.toString()))
    if isinstance(error, PySparkException):
        return _naming_line(str(error))
    return _first_line(traceback.format_exception_only(error)[0])


def _chain(error: BaseException) -> Iterator[BaseException]:
    following: BaseException | None = error
    while following is not None:
        yield following
        context = None if following.__suppress_context__ else following.__context__
        following = following.__cause__ or context


def _naming_line(message: str) -> str:
    """Return the line that names the error: the first line without an indent.

    If the message contains Python tracebacks, only the last traceback is searched.
    """
    tail = message.rpartition(_TRACEBACK)[2]
    lines = (line for line in tail.splitlines() if line[:1].strip())
    return next(lines, message)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
