"""``sds-monitor demo``."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.simulator import scenario_names
from streaming.cli.channels import channel_table, channels_option
from streaming.cli.log import LogFormat
from streaming.cli.serving_options import Address, serving_options
from streaming.cli.settings import Number, config_option, log_option, setting

RECORDED = "recorded"
"""Name of the traffic of real participants, beside the names of the scenarios."""


@click.command("demo", epilog="Example: sds-monitor demo --duration 60")
@config_option
@setting(
    "--scenario",
    default=RECORDED,
    help=f"Traffic to play: {RECORDED!r} comes from real @waku/sds participants; "
    f"simulated are {', '.join(scenario_names())}, or a TOML file.",
)
@setting(
    "--seed", type=click.IntRange(0), help="Random seed of a simulated scenario.  [1]"
)
@setting(
    "--duration",
    type=Number(0),
    default=20.0,
    help="Seconds over which the traffic is played.",
)
@setting(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report to this file at the end.",
)
@serving_options("page and metrics", 9108, with_host=False)
@setting(
    "--keep/--no-keep",
    default=None,
    help="Serve the page until Ctrl-C after the end.  [default: on a terminal]",
)
@channels_option
@log_option(exposed=True)
def command(
    scenario: str,
    seed: int | None,
    duration: float,
    report: Path | None,
    address: Address,
    keep: bool | None,
    channels: Path | None,
    log_format: LogFormat,
) -> None:
    """Run everything on this machine: Kafka, traffic, the job, metrics and page.

    Ends with a table of the traffic's truth beside what the monitor found; exit code
    1 if they differ.
    """
    table = channel_table(channels)
    if scenario == RECORDED and seed is not None:
        message = "--seed: the recording has no random part; choose a --scenario"
        raise click.UsageError(message)

    from streaming.cli.actions.demo import Demo, recorded_traffic, simulated_traffic

    traffic = (
        recorded_traffic()
        if scenario == RECORDED
        else simulated_traffic(scenario, 1 if seed is None else seed)
    )
    Demo(traffic, duration, report, address, keep, table, log_format).run()
