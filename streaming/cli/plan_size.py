"""``sds-monitor plan size``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from streaming.cli.plan_options import format_option, html_option
from streaming.cli.settings import Number, config_option, setting

_ABOVE_ZERO = partial(Number, 0, min_open=True)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    "size",
    epilog="Example: sds-monitor plan size --channel-count 1000 --participants 20 "
    "--messages-per-second 100",
)
@config_option
@setting(
    "--channel-count",
    "channels",
    type=click.IntRange(1, 1_000_000),
    required=True,
    help="Channels, each with the same traffic.",
)
@setting(
    "--messages-per-second",
    "frames_per_s",
    type=_ABOVE_ZERO(max=100_000),
    required=True,
    help="Frames that the topic gets, of all channels, sync messages included.",
)
@setting(
    "--participants",
    type=click.IntRange(1, 10_000),
    default=5,
    help="Participants of each channel.",
)
@setting(
    "--memory-hours",
    "hours",
    type=_ABOVE_ZERO(max=24 * 31),
    default=1.0,
    help="Hours for which a channel remembers messages: the horizon.",
)
@setting(
    "--frame-bytes",
    type=_ABOVE_ZERO(max=32 * 2**20),
    help="Mean size of a frame.  [default: that of measured frames with a filter]",
)
@setting(
    "--trigger",
    "trigger_s",
    type=_ABOVE_ZERO(max=3_600),
    default=1.0,
    help="Seconds between two batches, as of `run`.",
)
@setting(
    "--history-days",
    type=click.IntRange(1, 36_500),
    default=30,
    help="Days that the history keeps, as of `run`.",
)
@setting(
    "--performance",
    type=_FILE,
    metavar="FILE",
    help="Figures of `make bench` on your machine.  [default: as shipped]",
)
@setting(
    "--scaling",
    type=_FILE,
    metavar="FILE",
    help="Figures of the other benchmarks.  [default: as shipped]",
)
@format_option
@html_option
def size_command(
    history_days: int,
    performance: Path | None,
    scaling: Path | None,
    form: str,
    html: Path | None,
    **traffic: Any,
) -> None:
    """Say what the monitor itself needs: cores, memory, state and disk.

    Says beyond which size one machine ends, and how many executors a cluster needs.
    The figures come from a cost model that is fitted to the project's benchmarks; each
    has the greatest error of the fit.
    """
    from streaming.cli.actions.plan_size import print_size

    print_size(traffic, history_days, performance, scaling, form == "json", html)
