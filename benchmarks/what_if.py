"""Compares what `plan what-if` predicts of changed settings with what then happens.

    python -m benchmarks.what_if --help

A simulated channel is monitored, and its history gives a plan. For each change,
what-if predicts the figures from that plan; then the channel is simulated with the
change and monitored too. The table has the error of each prediction, and in brackets
half the width of its 95 % interval, both as shares of the figure.

Limits of the result: everything is simulated, and what the history does not store, such
as intervals and delays, is assumed as it is. What happens is one simulation of
four days, so it has a deviation of its own.
"""

from __future__ import annotations

import math
from multiprocessing import get_context

import click

from sds_core.planning.channel import ChannelPlan
from tests.support.planning.watched import (
    COMPARED,
    Prediction,
    measured_of,
    predictions,
)

CHANNELS = {
    "5 participants, 4,320 messages a day, 5 % loss": ChannelPlan(
        participants=5, messages_per_day=4_320, loss=0.05
    ),
    "10 participants, 1,000 messages a day, 10 % loss": ChannelPlan(
        participants=10, messages_per_day=1_000, loss=0.1
    ),
}
CHANGES = (
    {"causal_history": "2"},
    {"causal_history": "50"},
    {"participants": "2x"},
    {"messages_per_day": "2x"},
    {"loss": "0.15"},
    {"sync_interval_s": "60"},
    {"retransmission_interval_s": "10"},
    {"t_max_s": "60"},
    {"sds_r": "off"},
)
_SEED = 1_001

_Task = tuple[str, ChannelPlan, int, int, int]


def _row(task: _Task) -> tuple[str, int, dict[str, Prediction]]:
    name, before, number, hours, seeds = task
    found = predictions(
        before,
        CHANNELS[name],
        CHANGES[number],
        hours=hours,
        seeds=range(1, seeds + 1),
        receptions=30_000,
    )
    return name, number, found


def _cell(one: Prediction) -> str:
    if math.isnan(one.error):
        return "none"
    half = (one.predicted.high - one.predicted.value) / one.truth
    return f"{one.error:+.1%} ({half:.1%})"


@click.command(help=__doc__)
@click.option("--hours", default=96, help="Length of each monitored simulation.")
@click.option("--seeds", default=24, help="Runs of what-if for each change.")
def main(hours: int, seeds: int) -> None:
    """Print a table of errors, and the greatest of them."""
    before = {
        name: measured_of(plan, hours, _SEED).plan for name, plan in CHANNELS.items()
    }
    tasks = [
        (name, plan, number, hours, seeds)
        for name, plan in before.items()
        for number in range(len(CHANGES))
    ]
    click.echo(f"| channel, change | {' | '.join(COMPARED)} |")
    click.echo(f"|---|{'---|' * len(COMPARED)}")
    greatest = dict.fromkeys(COMPARED, 0.0)
    with get_context("spawn").Pool() as pool:
        for name, number, found in pool.imap(_row, tasks):
            ((key, value),) = CHANGES[number].items()
            cells = " | ".join(_cell(found[figure]) for figure in COMPARED)
            click.echo(f"| {name}: {key} = {value} | {cells} |")
            for figure, one in found.items():
                # max ignores NaN as its second argument.
                greatest[figure] = max(greatest[figure], abs(one.error))
    cells = " | ".join(f"{value:.1%}" for value in greatest.values())
    click.echo(f"| greatest | {cells} |")


if __name__ == "__main__":
    main()
