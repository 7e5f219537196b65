"""Measures how many frames per second the simulator makes.

    python -m benchmarks.simulator --help

There are three shapes, each of 200 channels and 100 participants in one process on one
core:

- `ten`: ten participants in each channel, so a frame has 9 receivers. There is so much
  traffic that messages overtake each other and wait for missing dependencies.
- `calm`: as `ten`, with a tenth of the messages per second.
- `all`: all participants in every channel, so a frame has 99 receivers.

With `--plan`, it simulates one channel of so many participants as `sds-monitor plan
sweep` does, with a message each 17 s, a loss of 10 % and the size of a usual run, and
prints runs a minute of CPU time.

Limits of the result: the time includes making the log entries, but not what a command
does with them. The garbage collector has Python's default settings; with
`--collect-seldom` it runs less often, because the participants' data is almost never
garbage and most of its runs find nothing.
"""

from __future__ import annotations

import gc
import platform
import time

import click

from sds_core.planning.channel import ChannelPlan
from sds_core.planning.experiment import run
from sds_core.simulation.log import Arrival, Transmission
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.simulator import simulate

# Participants of a channel, and mean time between its messages in seconds.
_SHAPES = {"ten": (10, 0.13), "calm": (10, 1.3), "all": (100, 0.15)}
_START_MS = 1_760_000_000_000


def scenario_of(shape: str, duration_s: float) -> Scenario:
    """Return the scenario of a shape."""
    participants, mean_interval_s = _SHAPES[shape]
    return Scenario.from_mapping(
        {
            "name": f"benchmark-{shape}",
            "description": "speed",
            "duration_s": duration_s,
            "participants": 100,
            "channels": [
                {
                    "name": "channel",
                    "count": 200,
                    "participants": participants,
                    "traffic": {"mean_interval_s": mean_interval_s},
                }
            ],
            "network": {"loss": 0.01},
        }
    )


@click.command(help=__doc__)
@click.option("--shape", type=click.Choice(sorted(_SHAPES)), default="ten")
@click.option("--duration", default=20.0, help="Virtual seconds.")
@click.option("--seed", default=1)
@click.option("--collect-seldom", is_flag=True, help="Raise the collector's threshold.")
@click.option("--plan", type=click.IntRange(2, 10_000), help="Participants of a plan.")
def main(
    shape: str, duration: float, seed: int, collect_seldom: bool, plan: int | None
) -> None:
    """Simulate and print figures."""
    if collect_seldom:
        gc.set_threshold(100_000, 50, 1_000)
    if plan is not None:
        _measure_plan(plan, seed)
        return
    frames = arrivals = frame_bytes = 0
    started, started_cpu = time.perf_counter(), time.process_time()
    for entry in simulate(scenario_of(shape, duration), seed, _START_MS):
        if isinstance(entry, Arrival):
            arrivals += 1
        elif isinstance(entry, Transmission):
            frames += 1
            frame_bytes += len(entry.value)
    wall_s = time.perf_counter() - started
    cpu_s = time.process_time() - started_cpu
    click.echo(f"{shape}: Python {platform.python_version()}, {platform.machine()}")
    click.echo(f"  {frames} frames ({frame_bytes / 1e6:.0f} MB), {arrivals} receptions")
    click.echo(f"  {duration:g} virtual s in {wall_s:.1f} s ({cpu_s:.1f} s of CPU)")
    click.echo(
        f"  {frames / wall_s:.0f} frames/s, {arrivals / wall_s:.0f} receptions/s"
    )


def _measure_plan(participants: int, seed: int) -> None:
    channel = ChannelPlan(participants=participants, messages_per_day=5_000, loss=0.1)
    started_s = time.process_time()
    outcome = run(channel, seed)
    cpu_s = time.process_time() - started_s
    click.echo(f"{participants} participants: {outcome.frames:.0f} frames")
    click.echo(f"  {cpu_s:.1f} s of CPU, {60 / cpu_s:.3g} runs a minute of CPU time")


if __name__ == "__main__":
    main()
