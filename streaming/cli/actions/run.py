"""Runs the monitor: the job, the status server, and the display of progress."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext

from pyspark.sql import SparkSession
from rich.console import Console

from connectors.java import find_java
from connectors.kafka.heartbeat import heartbeats
from connectors.web import words
from connectors.web.audit_poll import AuditPoll
from sds_core.observer.protocols import ROOT_KIND
from sds_core.observer.snapshot import Snapshot
from sds_core.text import counted
from streaming.board import Board
from streaming.cli.actions.trace_worker import tracing
from streaming.cli.channels import reload_on_hangup
from streaming.cli.live import progress_display
from streaming.cli.log import logger
from streaming.cli.output import wall_ms
from streaming.cli.run_options import RunSettings
from streaming.cli.serving import PendingJob, current_snapshot, status_server
from streaming.cli.silence import SilenceLog, wait_for_kafka
from streaming.cli.starting import refusals_explained, running_spark, write_report
from streaming.cli.supervising import Supervisor
from streaming.doctor.findings import Checked
from streaming.doctor.kafka import check_history, check_topics
from streaming.doctor.machine import check_machine
from streaming.open_checkpoint import check_start
from streaming.planner import Planner
from streaming.retries import Retries


def run(settings: RunSettings) -> None:
    """Run a job until it ends or a signal ends it.

    Raises:
        connectors.java.JavaMissing: Java is missing or too old.
    """
    report = settings.report
    with refusals_explained():
        # The checks come before the server starts and prints the address of its page:
        # a printed address suggests that the monitor runs.
        check_start(settings.job)
        find_java()
        _log_findings(check_machine(settings.job, settings.reading.session.is_cluster))
        with _supervised(settings) as supervisor:
            supervisor.run(
                lambda job: None if report is None else write_report(job, report)
            )


@contextmanager
def _supervised(settings: RunSettings) -> Iterator[Supervisor]:
    """Start the page, Spark and all else that a job needs; yield its supervisor."""
    pending = PendingJob()
    job, address, kafka = settings.job, settings.address, settings.job.source.kafka
    with (
        reload_on_hangup(settings.channels) as table_file,
        # Spark starts slowly, so the page starts first and is available meanwhile.
        Planner(job.history, lambda: pending.board.snapshot) as plans,
        tracing(kafka) as trace,
        status_server(
            pending, *address, settings.prometheus, plans, trace=trace
        ) as url,
        _examined_spark(settings, pending.board) as (spark, ending),
        heartbeats(kafka) if settings.heartbeat else nullcontext(),
        AuditPoll(settings.audit) as newest_audit,
        progress_display(
            Console(), settings.log_format, url, _progress_line
        ) as display,
    ):
        silence = SilenceLog()

        def each_second() -> None:
            table = None if table_file is None else table_file.reload_if_requested()
            if table is not None:
                pending.board.set(table=table)
            if settings.audit is not None:
                pending.board.set(audit=newest_audit())
            snapshot = current_snapshot(pending.board)
            silence.observe(snapshot.job.kafka, snapshot.job.missing_topic)
            if pending.job is not None:
                pending.job.verdicts.look(snapshot, wall_ms())
            display(snapshot)

        retries = Retries(settings.retry_for_s)
        yield Supervisor(spark, job, pending, ending, retries, each_second)


@contextmanager
def _examined_spark(
    settings: RunSettings, board: Board
) -> Iterator[tuple[SparkSession, threading.Event]]:
    """Wait for Kafka, log findings on topics and history, and start Spark."""
    job = settings.job
    wait_for_kafka(job.source.kafka, board)
    _log_findings(
        [check_topics(job, writes_heartbeats=settings.heartbeat), check_history(job)]
    )
    with running_spark(settings.reading.session) as started:
        yield started


def _log_findings(checks: Iterable[Checked]) -> None:
    for one in checks:
        for finding in one.findings:
            logger.warning("%s: %s", one.check, finding)


def _progress_line(snapshot: Snapshot) -> str:
    job = snapshot.job
    lag_s = job.event_time_lag_seconds
    lag = "nothing read yet" if lag_s is None else f"{lag_s:.1f} s behind in event time"
    line = (
        f"{job.records:,} records read, {job.records_behind:,} to read, {lag}, "
        f"{counted(len(snapshot.views[ROOT_KIND.prefix].totals), 'channel')}"
    )
    if job.kafka.is_stale:
        return f"{words.no_answer(job.kafka)}; {line}"
    if job.missing_topic is not None:
        return f"{words.topic_missing(job.missing_topic)}; {line}"
    return line
