"""From nothing to a running job, and back, whenever somebody wants it to end."""

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
        session: Of Spark.
        settings: Of the job.
        board: Where its figures are to hang; None for a new one.

    Raises:
        click.Abort: It was to end before it had started, or the JVM ended as well.
        Exception: As `streaming.job.running_job`.
    """
    # Before Spark starts: until here a signal may still end the program at once, and
    # Kafka may be waited for for minutes.
    with closing(TopicOffsets(settings.source.kafka)) as offsets:
        offsets.partitions()
    # An exception while Spark starts would leave a JVM behind that never ends.
    with end_requested() as ending:
        spark = make_session(session)
        with end_requested(ending), _no_complaint_of_the_end(ending):
            try:
                if ending.is_set():
                    raise click.Abort
                with running_job(spark, settings, board) as job:
                    yield job, ending
            finally:
                spark.stop()


@contextmanager
def _no_complaint_of_the_end(ending: threading.Event) -> Iterator[None]:
    """SIGTERM to the whole group of processes ends the JVM too, in whatever it does."""
    try:
        yield
    except (JobFailed, Py4JError, ConnectionError) as error:
        if not ending.is_set():
            raise
        logger.warning("Spark was ended as well: the last batch is done again")
        raise click.Abort from error


def looks(job: Job, ending: threading.Event) -> Iterator[None]:
    """One for each second until the job's end or the event, and one then.

    Raises:
        streaming.failure.JobFailed: The job ended with an error.
    """
    while not (ending.is_set() or job.wait(1.0)):
        yield
    yield
