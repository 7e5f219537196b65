"""Starts and ends Spark and a job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.kafka.settings import KafkaUnreachable
from connectors.sockets.listener import AddressUnusable, PortInUse
from sds_core import compiled
from sds_core.observer.blob import UnknownBlobVersion
from sds_core.observer.kinds import UnknownKind
from streaming.board import Board
from streaming.checkpoint import CheckpointMismatch
from streaming.cli.exit_codes import Failed, Unreachable, wrong_use
from streaming.cli.log import logger
from streaming.cli.output import wall_ms, write_json
from streaming.cli.signals import end_requested
from streaming.cli.silence import wait_for_kafka
from streaming.damage import DamagedCheckpoint
from streaming.directories import DirectoryInUse, DirectoryUnwritable
from streaming.failure import MORE_MEMORY, JobFailed
from streaming.job import Job, running_job
from streaming.session import (
    exit_status_of_jvm,
    is_ended_by_master,
    make_session,
    stop_session,
    warm_up,
)
from streaming.settings import JobSettings, SessionSettings

_REFUSALS = (
    CheckpointMismatch,
    DamagedCheckpoint,
    DirectoryInUse,
    DirectoryUnwritable,
    UnknownBlobVersion,
    UnknownKind,
    AddressUnusable,
    PortInUse,
)
"""Errors at startup that would occur again if the command were started again."""

_ENDED_BY_MASTER = (
    "the Spark master has ended the application: find the reason on the master's "
    "page or in the master's log, and start again; nothing is lost"
)
_OUT_OF_MEMORY = 52
"""Exit status of a JVM in which Spark met an OutOfMemoryError."""

_END_OF_JVM_S = 5.0
"""Maximum time to wait for the end of a JVM that is probably ending, seconds."""


@contextmanager
def started_job(
    session: SessionSettings, settings: JobSettings, board: Board | None = None
) -> Iterator[tuple[Job, threading.Event]]:
    """Start Spark and a job, and stop both at the end of the block.

    Yields the job, and an event that Ctrl-C and SIGTERM set.

    Raises:
        Exception: The errors of `wait_for_kafka`, `running_spark` and
            `streaming.job.running_job`.
    """
    board = Board() if board is None else board
    # Before Spark starts, a signal can still end the wait immediately.
    wait_for_kafka(settings.source.kafka, board)
    with (
        running_spark(session) as (spark, ending),
        running_job(spark, settings, board) as job,
    ):
        yield job, ending


@contextmanager
def running_spark(
    session: SessionSettings,
) -> Iterator[tuple[SparkSession, threading.Event]]:
    """Start Spark, and stop it at the end of the block.

    Yields the session, and an event that Ctrl-C and SIGTERM set.

    Raises:
        click.Abort: A signal arrived before the block began, or a signal ended the JVM.
        click.ClickException: Spark's JVM has ended without a signal.
    """
    # If a signal raised an exception while Spark starts, the JVM would never end.
    with end_requested(is_interruptible=False) as ending:
        spark = _started_spark(session)
        logger.info("rules: %s", compiled.describe())
        warm_up(spark)
        with (
            end_requested(ending, is_interruptible=False),
            _end_of_jvm_explained(ending),
        ):
            try:
                if ending.is_set():
                    raise click.Abort
                yield spark, ending
            finally:
                stop_session(spark)


def _started_spark(session: SessionSettings) -> SparkSession:
    try:
        return make_session(session)
    except (PySparkRuntimeError, Py4JNetworkError, ConnectionError) as error:
        # `make_session` keeps a connection only to the JVM, so a connection error means
        # that the JVM has ended.
        if (
            isinstance(error, PySparkRuntimeError)
            and error.getCondition() != "JAVA_GATEWAY_EXITED"
        ):
            raise
        message = (
            "Spark's JVM ended during startup: read its output above, and check "
            "Java and PYSPARK_SUBMIT_ARGS"
        )
        raise Failed(message) from error


@contextmanager
def _end_of_jvm_explained(ending: threading.Event) -> Iterator[None]:
    """If the block fails because a signal ended the JVM, abort the command.

    If the JVM ended for another reason, explain the reason in the error. A SIGTERM to
    the whole process group ends the JVM too, possibly in the middle of a call.
    """
    try:
        yield
    except (JobFailed, Py4JError, ConnectionError) as error:
        if not ending.is_set():
            _explain(error)
            raise
        logger.warning(
            "the signal that ends this command also ended Spark, so the next start "
            "repeats the unfinished work"
        )
        raise click.Abort from error


def _explain(error: Exception) -> None:
    if isinstance(error, KafkaUnreachable):
        return
    broke_off = isinstance(error, Py4JNetworkError | ConnectionError)
    # After a fatal error, a local JVM first ends its Spark context, and then itself. In
    # between, the error says that the master has ended the application.
    is_ending = broke_off or str(error) == _ENDED_BY_MASTER
    status = exit_status_of_jvm(_END_OF_JVM_S if is_ending else 0)
    if status is None:
        return
    raise Failed(end_of_jvm(status)) from error


def end_of_jvm(status: int) -> str:
    """Return a message that says how Spark's JVM ended, and what the remedy is.

    `status` is a result of `exit_status_of_jvm`.
    """
    if status == _OUT_OF_MEMORY:
        how, then = "for lack of memory", MORE_MEMORY
    else:
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        then = "if the machine lacked memory, see docs/sizing.md, Memory"
    return f"Spark's JVM ended {how}: start again, nothing is lost; {then}"


def every_second(job: Job, ending: threading.Event) -> Iterator[None]:
    """Yield every second until the job ends or `ending` is set, then once more.

    Raises:
        streaming.failure.JobFailed: The job ended with an error.
    """
    while not (ending.is_set() or _has_ended(job, ending)):
        yield
    yield


def _has_ended(job: Job, ending: threading.Event) -> bool:
    """Wait for at most a second; return whether the job has ended."""
    try:
        has_ended = job.wait(1.0, ending)
    except JobFailed as failure:
        # If the master has ended the application, Spark no longer knows the real error.
        if is_ended_by_master():
            raise JobFailed(_ENDED_BY_MASTER) from failure
        raise
    # Without new records, the query would not notice that the master has ended the
    # application.
    if is_ended_by_master():
        raise JobFailed(_ENDED_BY_MASTER)
    return has_ended


def as_click_error(error: JobFailed) -> click.ClickException:
    """Return the error as an error of click.

    If Kafka or the topic is unreachable, the exit code is 3. If another start would
    fail in the same way, the exit code is 2. Otherwise, the exit code is 4.
    """
    if error.unreachable:
        return Unreachable(str(error))
    return (click.UsageError if error.final else Failed)(str(error))


@contextmanager
def refusals_explained() -> Iterator[None]:
    """If a job in the block fails, raise a one-line error that has an exit code.

    Raises:
        click.ClickException: The job cannot start, or failed.
    """
    try:
        with wrong_use(*_REFUSALS):
            yield
    except (NoHistory, DamagedHistory) as error:
        raise Failed(str(error)) from error
    except JobFailed as error:
        raise as_click_error(error) from error


def write_report(job: Job, path: Path) -> None:
    """Write a job's report."""
    write_json(job.report(wall_ms()), path, "report")
