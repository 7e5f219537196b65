"""``sds-monitor plan size``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from streaming.cli import commands
from streaming.cli.plan_options import html_option, tables_or_json_option
from streaming.cli.settings import Panel, setting
from streaming.cli.values import EXISTING_FILE, Duration, Number

_ABOVE_ZERO = partial(Number, 0, min_open=True)
_LONGER_THAN_ZERO = partial(Duration, min=0, min_open=True)


@commands.command(
    "size",
    "sds-monitor plan size --channel-count 1000 --participants 20 "
    "--messages-per-second 100",
)
@setting(
    "--channel-count",
    "channels",
    type=click.IntRange(1, 1_000_000),
    required=True,
    panel=Panel.TRAFFIC,
    help="Number of channels, each with the same traffic.",
)
@setting(
    "--messages-per-second",
    "frames_per_s",
    type=_ABOVE_ZERO(max=100_000),
    required=True,
    panel=Panel.TRAFFIC,
    help="Frames per second of all channels together, including sync messages.",
)
@setting(
    "--participants",
    type=click.IntRange(1, 10_000),
    default=5,
    panel=Panel.TRAFFIC,
    help="Participants of each channel.",
)
@setting(
    "--memory-hours",
    "hours",
    type=_LONGER_THAN_ZERO("h", max=24 * 31),
    default=1.0,
    panel=Panel.TIME,
    help="How long a channel remembers messages: the retention window.",
)
@setting(
    "--frame-bytes",
    type=_ABOVE_ZERO(max=32 * 2**20),
    panel=Panel.TRAFFIC,
    show_default="mean size of measured frames with a filter",
    help="Mean size of a frame.",
)
@setting(
    "--trigger",
    "trigger_s",
    type=_LONGER_THAN_ZERO("s", max=3_600),
    default=1.0,
    panel=Panel.TIME,
    help="Time between two batches, as for `run`.",
)
@setting(
    "--history-days",
    type=Duration("d", 1, 36_500, is_whole=True),
    default=30,
    panel=Panel.STORAGE,
    help="Retention of the history, as for `run`.",
)
@setting(
    "--performance",
    type=EXISTING_FILE,
    metavar="FILE",
    panel=Panel.SOURCE,
    show_default="as shipped",
    help="File with the results of `make bench` on your machine.",
)
@setting(
    "--scaling",
    type=EXISTING_FILE,
    metavar="FILE",
    panel=Panel.SOURCE,
    show_default="as shipped",
    help="File with the results of the other benchmarks.",
)
@tables_or_json_option
@html_option
def size_command(**options: Any) -> None:
    """Estimate what the monitor needs: cores, memory, state and disk.

    The command prints the largest load for one machine, and how many executors a
    cluster needs. The figures come from a cost model that is fitted to the benchmarks
    of the project. The command also prints the greatest error of each figure.
    """
    from streaming.cli.actions.plan_size import print_size

    print_size(**options)
