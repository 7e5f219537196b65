"""Makes a new checkpoint from all records of a topic."""

from __future__ import annotations

from dataclasses import replace

import click

from sds_core.observer.protocols import ROOT_KIND
from sds_core.text import counted
from streaming.batch_log import read_batch_log
from streaming.cli.actions.replay import read_to_the_end, warn_of_deleted_records
from streaming.cli.exit_codes import Failed
from streaming.cli.run_options import RunSettings
from streaming.cli.starting import refusals_explained, started_job, write_report
from streaming.doctor.history import find_mixed_rows
from streaming.settings import EARLIEST


def rebuild(settings: RunSettings) -> None:
    """Make a new checkpoint from the topic's records; if requested, write a report.

    Raises:
        click.ClickException: The checkpoint is not new, the history has minutes that
            the job would write again, the job failed, or a signal came before the job's
            end.
    """
    job, checkpoint = settings.job, settings.job.checkpoint
    with refusals_explained():
        if read_batch_log(checkpoint).planned is not None:
            message = (
                f"checkpoint {checkpoint} already has records of the topic: give a "
                "new directory as --checkpoint"
            )
            raise click.UsageError(message)
        # The live job has already written its output for these records to Kafka, so
        # this job writes nothing to Kafka.
        alone = replace(
            job,
            source=replace(job.source, start=EARLIEST),
            until_caught_up=True,
            dead_letter_topic=None,
            group=None,
            history=job.history and replace(job.history, has_topics=False),
        )
        for mixed in find_mixed_rows(alone):
            raise click.UsageError(mixed)
        warn_of_deleted_records(job.source.kafka, 0, "they are no longer counted")
        with started_job(settings.reading.session, alone) as (running, ending):
            if not read_to_the_end(running, ending):
                message = (
                    f"not all records were read: delete {checkpoint}, and rebuild again"
                )
                raise Failed(message)
            if settings.report is not None:
                write_report(running, settings.report)
            snapshot = running.board.snapshot
    channels = counted(len(snapshot.views[ROOT_KIND.prefix].totals), "channel")
    click.echo(
        f"checkpoint {checkpoint} has {counted(snapshot.job.records, 'record')} of "
        f"{channels}: give it to `run`"
    )
