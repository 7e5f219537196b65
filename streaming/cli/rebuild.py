"""``sds-monitor rebuild``."""

from __future__ import annotations

import click

from streaming.cli.run_options import RunSettings, run_options
from streaming.cli.settings import config_option


@click.command(
    "rebuild",
    epilog="Example: sds-monitor rebuild --bootstrap localhost:9092 --checkpoint ./new",
)
@config_option
@run_options
def command(settings: RunSettings) -> None:
    """Make a new checkpoint of all that the topic holds.

    For other settings of the model, another number of state partitions, or a damaged
    checkpoint. Takes the flags of `run`, and the table [run] of the --config file. It
    can run beside the live job, and writes nothing to Kafka: no dead letters, offsets
    or history. Afterwards, start `run` with the new checkpoint.
    """
    from streaming.cli.actions.rebuild import rebuild

    rebuild(settings)
