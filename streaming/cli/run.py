"""``sds-monitor run``."""

from __future__ import annotations

from pathlib import Path

import click

from streaming.cli.channels import channels_option
from streaming.cli.kafka_options import kafka_options
from streaming.cli.reading_options import reading_options
from streaming.cli.run_options import (
    RunSettings,
    checked_checkpoint,
    checked_url,
    history_options,
    job_options,
)
from streaming.cli.serving_options import serving_options
from streaming.cli.settings import (
    Parsed,
    config_option,
    log_option,
    option_group,
    setting,
)


@click.command(
    "run",
    epilog="Example: sds-monitor run --bootstrap localhost:9092 --checkpoint ./state",
)
@config_option
@kafka_options()
@setting(
    "--checkpoint",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    callback=checked_checkpoint,
    help="State directory. A job restarted with the same directory resumes.",
)
@serving_options("page and metrics", 9108)
@setting(
    "--prometheus",
    type=Parsed("URL", checked_url),
    help="List on the page the alerts that fire in this Prometheus.",
)
@setting(
    "--audit",
    type=Parsed("URL", checked_url),
    help="Where `sds-monitor audit --every` serves its metrics: channels of which the "
    "mirror lacks a recent message are blind.",
)
@setting(
    "--heartbeat",
    is_flag=True,
    help="Write heartbeats, for a topic whose taps write none.",
)
@setting(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report to this file at the end.",
)
@setting(
    "--retry-for",
    type=click.FloatRange(0),
    help="Seconds for which to retry after Kafka was lost; 0 to end then. By default "
    "for ever, but 0 with --until-caught-up.",
)
@channels_option
@history_options
@reading_options
@job_options
@log_option(exposed=True)
@option_group("settings", (), RunSettings)
def command(settings: RunSettings) -> None:
    """Read SDS traffic from Kafka and report how reliable each channel is.

    Serves the status page at / and Prometheus metrics at /metrics, from before the
    first read; on a terminal a table displays the channels with the most trouble. You
    can kill it at any moment: restarted with the same checkpoint, every figure
    continues. SIGHUP makes it read --channels again.
    """
    from streaming.cli.actions.run import run

    run(settings)
