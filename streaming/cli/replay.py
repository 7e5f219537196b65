"""``sds-monitor replay``."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.kafka.settings import KafkaSettings
from streaming.cli.kafka_options import kafka_reading_options
from streaming.cli.reading_options import ReadingSettings, reading_options
from streaming.cli.settings import config_option, log_option, setting
from streaming.cli.window_options import window_options
from streaming.settings import Window


@click.command(
    "replay",
    epilog="Example: sds-monitor replay --bootstrap localhost:9092 "
    "--from 2026-11-21T08:00:00Z --to 2026-11-21T09:00:00Z --report report.json",
)
@config_option
@kafka_reading_options()
@window_options(required=True)
@setting(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="Write the report to this file.",
)
@setting(
    "--report-detail",
    is_flag=True,
    help="Add every incident and definite acknowledgement to the report.",
)
@setting(
    "--scratch",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory for the temporary checkpoint, which a cluster's executors must "
    "share.",
)
@reading_options
@log_option()
def command(
    kafka: KafkaSettings,
    window: Window,
    report: Path,
    report_detail: bool,
    scratch: Path | None,
    reading: ReadingSettings,
) -> None:
    """Report on a past window of a topic, as a job started then would have.

    Reads the records whose time lies in the window, bounds included, and knows nothing
    of earlier ones. Writes nothing but the report: the live job, its offsets and the
    dead letters stay as they are.
    """
    from streaming.cli.actions.replay import replay

    if scratch is None and reading.session.is_cluster:
        message = (
            "executors of a cluster need a --scratch directory that they and this "
            "command mount at the same path"
        )
        raise click.UsageError(message)
    source = reading.source(kafka, window=window)
    replay(source, window, reading.session, report, report_detail, scratch)
