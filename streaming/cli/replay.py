"""``sds-monitor replay``."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.kafka.settings import KafkaSettings
from streaming.cli.commands import Command
from streaming.cli.config_file import config_option
from streaming.cli.kafka_options import kafka_reading_options
from streaming.cli.reading_options import ReadingSettings, reading_options
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.window_options import window_options
from streaming.settings import Window


@click.command(
    "replay",
    cls=Command,
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
    panel=Panel.OUTPUT,
    help="Write the report to this file.",
)
@setting(
    "--report-detail",
    is_flag=True,
    panel=Panel.OUTPUT,
    help="Add every incident and definite acknowledgement to the report.",
)
@setting(
    "--scratch",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    panel=Panel.STORAGE,
    help="Directory for the temporary checkpoint. On a cluster, all executors must "
    "share the directory.",
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
    """Report on a past window of a topic, as if a job had started then.

    The command reads the records whose time lies in the window, and ignores earlier
    ones. The command writes only the report: the live job, its offsets and the dead
    letters remain unchanged.
    """
    from streaming.cli.actions.replay import replay

    if scratch is None and reading.session.is_cluster:
        message = (
            "a cluster needs --scratch: give a directory that its executors and this "
            "command mount at the same path"
        )
        raise click.UsageError(message)
    source = reading.source(kafka, window=window)
    replay(source, window, reading.session, report, report_detail, scratch)
