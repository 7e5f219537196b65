"""``sds-monitor run``, and the commands that take its options."""

from __future__ import annotations

import click

from streaming.cli.run_options import RunSettings, checked_url, run_options
from streaming.cli.settings import Parsed, config_option, setting


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


@click.command(
    "doctor",
    epilog="Example: sds-monitor doctor --bootstrap localhost:9092 --checkpoint "
    "./state",
)
@config_option
@setting(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Lines of text, or one JSON document.",
)
@setting(
    "--alertmanager",
    type=Parsed("URL", checked_url),
    help="Check that this Alertmanager answers.",
)
@run_options
def doctor_command(
    settings: RunSettings, output_format: str, alertmanager: str | None
) -> None:
    """Check what a monitor needs before it runs.

    Takes the flags of `run`, and the table [run] of the --config file. Checks Java,
    memory, disk space, file descriptors, port, checkpoint, Kafka with the rights on
    all topics and their settings, unread records, clock, certificates, Prometheus and
    Alertmanager. Prints a line for each check, with what to do. The exit code is 1 if
    there is a finding.
    """
    from streaming.cli.actions.doctor import doctor

    doctor(settings, alertmanager, as_json=output_format == "json")


@click.command(
    "rebuild",
    epilog="Example: sds-monitor rebuild --bootstrap localhost:9092 --checkpoint ./new",
)
@config_option
@run_options
def rebuild_command(settings: RunSettings) -> None:
    """Make a new checkpoint of all that the topic holds.

    For other settings of the model, another number of state partitions, or a damaged
    checkpoint. Takes the flags of `run`, and the table [run] of the --config file. It
    can run beside the live job, and writes nothing to Kafka: no dead letters, offsets
    or history. Afterwards, start `run` with the new checkpoint.
    """
    from streaming.cli.actions.rebuild import rebuild

    rebuild(settings)
