"""Start of Spark and a job, and their end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import click
from py4j.protocol import Py4JError

from connectors.kafka.offsets import TopicOffsets
from streaming.board import Board
from streaming.cli.log import logger
from streaming.cli.signals import end_requested
from streaming.failure import JobFailed
from streaming.job import Job, running_job
from streaming.session import make_session
from streaming.settings import JobSettings, SessionSettings


@contextmanager
def started_job(
    session: SessionSettings, settings: JobSettings, board: Board | None = None
) -> Iterator[tuple[Job, threading.Event]]:
    """Start Spark and a job, and stop both at the end of the block.

    Gives the job, and an event that Ctrl-C and SIGTERM set.

    Args:
        session: Settings of Spark.
        settings: Settings of the job.
        board: Board for its figures; None for a new one.

    Raises:
        click.Abort: A signal came before the job had started, or ended the JVM too.
        Exception: See `streaming.job.running_job`.
    """
    # Before Spark starts, because this may wait minutes for Kafka, and before Spark
    # starts a signal can end the program immediately.
    with closing(TopicOffsets(settings.source.kafka)) as offsets:
        offsets.partitions()
    # An exception while Spark starts would leave a JVM that never ends.
    with end_requested() as ending:
        spark = make_session(session)
        with end_requested(ending), _end_of_jvm_excused(ending):
            try:
                if ending.is_set():
                    raise click.Abort
                with running_job(spark, settings, board) as job:
                    yield job, ending
            finally:
                spark.stop()


@contextmanager
def _end_of_jvm_excused(ending: threading.Event) -> Iterator[None]:
    """Abort instead of failing if a signal has ended the JVM too.

    SIGTERM to the whole process group ends the JVM in the middle of a call.
    """
    try:
        yield
    except (JobFailed, Py4JError, ConnectionError) as error:
        if not ending.is_set():
            raise
        logger.warning(
            "the signal ended Spark too: the next start repeats the last batch"
        )
        raise click.Abort from error


def every_second(job: Job, ending: threading.Event) -> Iterator[None]:
    """Yield every second until the job ends or `ending` is set, then once more.

    Raises:
        streaming.failure.JobFailed: The job ended with an error.
    """
    while not (ending.is_set() or job.wait(1.0)):
        yield
    yield
