"""Runs the monitor: a job, its server, and its progress."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click
from rich.console import Console

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.kafka.heartbeat import heartbeats
from connectors.web import words
from connectors.web.audit_poll import AuditPoll
from connectors.web.server import AddressUnusable, PortInUse
from sds_core.observer.blob import UnknownBlobVersion
from sds_core.observer.kinds import UnknownKind
from sds_core.observer.protocols import ROOT_KIND
from sds_core.observer.snapshot import Snapshot
from sds_core.text import counted
from streaming.checkpoint import (
    CheckpointInUse,
    CheckpointMismatch,
    CheckpointUnwritable,
)
from streaming.cli.actions.report import as_click_error, write_report
from streaming.cli.channels import reload_on_hangup
from streaming.cli.live import progress_display
from streaming.cli.log import LogFormat
from streaming.cli.output import wall_ms
from streaming.cli.serving import PendingJob, current_snapshot, status_server
from streaming.cli.serving_options import Address
from streaming.cli.silence import SilenceLog
from streaming.cli.starting import started_spark
from streaming.cli.supervising import Supervisor
from streaming.damage import DamagedCheckpoint
from streaming.failure import JobFailed
from streaming.history import HistoryInUse, HistoryUnwritable
from streaming.job import Job
from streaming.open_checkpoint import check_start
from streaming.settings import JobSettings, SessionSettings


def run(
    settings: JobSettings,
    session: SessionSettings,
    address: Address,
    prometheus: str | None,
    audit: str | None,
    heartbeat: bool,
    report: Path | None,
    channels: Path | None,
    retry_for_s: float | None,
    log_format: LogFormat,
) -> None:
    """Run a job until it ends or a signal ends it.

    Args:
        settings: Settings of the job.
        session: Settings of Spark.
        address: Address of page and metrics.
        prometheus: URL of the Prometheus that evaluates the alerts; None if there is
            none.
        audit: URL of a repeated audit of the mirror; None if there is none.
        heartbeat: Whether to write heartbeats to the topic.
        report: File for the report at the end; None to write none.
        channels: File of channels, read again on SIGHUP; None if there is none.
        retry_for_s: See `streaming.retries.Retries`.
        log_format: Format of the log.

    Raises:
        click.ClickException: The job cannot start, or failed.
    """
    pending = PendingJob()
    try:
        # Before the page's address is printed: then the monitor seems to run.
        check_start(settings)
        with (
            reload_on_hangup(channels) as table_file,
            # Before Spark starts, which takes so long that people open the page.
            status_server(pending, *address, prometheus=prometheus) as url,
            started_spark(session, settings.source.kafka, pending.board) as (
                spark,
                ending,
            ),
            heartbeats(settings.source.kafka) if heartbeat else nullcontext(),
            AuditPoll(audit) as newest_audit,
            progress_display(Console(), log_format, url, _progress_line) as display,
        ):
            silence = SilenceLog()

            def each_second() -> None:
                table = None if table_file is None else table_file.reload_if_requested()
                if table is not None:
                    pending.board.set_table(table)
                if audit is not None:
                    pending.board.set_audit(newest_audit())
                snapshot = current_snapshot(pending.board)
                silence.observe(snapshot.job.kafka, snapshot.job.missing_topic)
                if pending.job is not None:
                    pending.job.look(snapshot, wall_ms())
                display(snapshot)

            def at_end(job: Job) -> None:
                if report is not None:
                    write_report(job, report)

            Supervisor(spark, settings, pending, ending, retry_for_s, each_second).run(
                at_end
            )
    except (
        CheckpointInUse,
        CheckpointMismatch,
        CheckpointUnwritable,
        DamagedCheckpoint,
        UnknownBlobVersion,
        UnknownKind,
        HistoryInUse,
        HistoryUnwritable,
        AddressUnusable,
        PortInUse,
    ) as error:
        raise click.UsageError(str(error)) from error
    except (NoHistory, DamagedHistory) as error:
        raise click.ClickException(str(error)) from error
    except JobFailed as error:
        raise as_click_error(error) from error


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
