"""``sds-monitor run``."""

from __future__ import annotations

import click

from streaming.cli.run_options import RunSettings, run_options
from streaming.cli.settings import config_option


@click.command(
    "run",
    epilog="Example: sds-monitor run --bootstrap localhost:9092 --checkpoint ./state",
)
@config_option
@run_options
def command(settings: RunSettings) -> None:
    """Read SDS traffic from Kafka and report how reliable each channel is.

    Serves the status page at / and Prometheus metrics at /metrics, from before the
    first read; on a terminal a table displays the channels with the most trouble. You
    can kill it at any moment: restarted with the same checkpoint, every figure
    continues. SIGHUP makes it read --channels again.
    """
    from streaming.cli.actions.run import run

    run(settings)
