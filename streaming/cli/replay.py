"""``sds-monitor replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streaming.cli import commands
from streaming.cli.kafka_options import kafka_reading_options
from streaming.cli.reading_options import reading_options
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import FILE
from streaming.cli.window_options import window_options


@commands.command(
    "replay",
    "sds-monitor replay --bootstrap localhost:9092 "
    "--from 2026-11-21T08:00:00Z --to 2026-11-21T09:00:00Z --report report.json",
)
@kafka_reading_options
@window_options(required=True)
@setting(
    "--report",
    type=FILE,
    required=True,
    panel=Panel.OUTPUT,
    help="Write the report to this file.",
)
@setting(
    "--report-detail",
    is_flag=True,
    panel=Panel.OUTPUT,
    help="Add all incidents and all definite acknowledgements to the report.",
)
@setting(
    "--scratch",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    panel=Panel.STORAGE,
    help="Directory for the temporary checkpoint. On a cluster, all executors must "
    "mount the directory.",
)
@reading_options
@log_option()
def command(**options: Any) -> None:
    """Report on a past window of a topic, as if a job had started at --from.

    The command reads the records whose time lies in the window, and ignores earlier
    records. The command writes only the report: the live job, its offsets and the dead
    letters remain unchanged.
    """
    from streaming.cli.actions.replay import replay

    replay(**options)
