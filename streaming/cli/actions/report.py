"""Report and failure of a job, for the commands that run one."""

from __future__ import annotations

from pathlib import Path

import click

from streaming.cli import UNREACHABLE
from streaming.cli.output import wall_ms, write_json
from streaming.failure import JobFailed
from streaming.job import Job


class _KafkaUnreachable(click.ClickException):
    exit_code = UNREACHABLE


def as_click_error(error: JobFailed) -> click.ClickException:
    """Return the error with its exit code.

    3 if Kafka was unreachable, 2 if another start fails in the same way, else 1.
    """
    if error.unreachable:
        return _KafkaUnreachable(str(error))
    return (click.UsageError if error.final else click.ClickException)(str(error))


def write_report(job: Job, path: Path) -> None:
    """Write a job's report as JSON with sorted keys."""
    write_json(job.report(wall_ms()), path, "report")
