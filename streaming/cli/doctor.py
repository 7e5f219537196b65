"""``sds-monitor doctor``."""

from __future__ import annotations

import click

from streaming.cli.run_options import RunSettings, checked_url, run_options
from streaming.cli.settings import Parsed, config_option, setting


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
def command(
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
