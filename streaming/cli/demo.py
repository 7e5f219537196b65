"""``sds-monitor demo``."""

from __future__ import annotations

from typing import Any

import click

from connectors.simulator import scenario_names
from streaming.cli import commands
from streaming.cli.channels import table_option
from streaming.cli.serving_options import port_option
from streaming.cli.settings import Panel, log_option, report_option, setting
from streaming.cli.values import DIRECTORY, Duration

RECORDED = "recorded"
"""Value of ``--scenario`` that selects the recorded traffic."""


@commands.command("demo", "sds-monitor demo --duration 60")
@setting(
    "--scenario",
    default=RECORDED,
    panel=Panel.TRAFFIC,
    help=f"Traffic to play. {RECORDED!r} selects recorded traffic of real @waku/sds "
    f"participants. For simulated traffic, give {', '.join(scenario_names())}, or a "
    "TOML file.",
)
@setting(
    "--seed",
    type=click.IntRange(0),
    panel=Panel.TRAFFIC,
    show_default="1",
    help="Random seed of a simulated scenario.",
)
@setting(
    "--duration",
    "duration_s",
    type=Duration("s", 0),
    default=20.0,
    panel=Panel.TRAFFIC,
    help="How long the demo plays the traffic.",
)
@report_option
@setting(
    "--history",
    type=DIRECTORY,
    panel=Panel.OUTPUT,
    help="Keep incidents and per-minute aggregates as Parquet files in this directory.",
)
@port_option("the page and the metrics", 9108)
@setting(
    "--keep/--no-keep",
    default=None,
    panel=Panel.WEB,
    show_default="on a terminal",
    help="After the traffic, serve the page until Ctrl-C.",
)
@table_option
@log_option(exposed=True)
def command(scenario: str, seed: int | None, **options: Any) -> None:
    """Run Kafka, traffic, the job, the metrics and the page on this machine.

    At the end, a table compares what really happened to the messages with what the
    monitor found. If the table shows a difference, the exit code is 1.
    """
    if scenario == RECORDED and seed is not None:
        message = (
            "--seed needs a simulated --scenario, because recorded traffic has no "
            "random part"
        )
        raise click.UsageError(message)

    from streaming.cli.actions.demo import Demo, recorded_traffic, simulated_traffic

    traffic = (
        recorded_traffic()
        if scenario == RECORDED
        else simulated_traffic(scenario, 1 if seed is None else seed)
    )
    Demo(traffic=traffic, **options).run()
