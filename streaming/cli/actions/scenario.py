"""Scenarios of simulated traffic, as commands need them."""

from __future__ import annotations

import click
from msgspec.structs import replace

from connectors.simulator.scenario_files import (
    UnknownScenario,
    UnreadableScenario,
    load_scenario,
)
from connectors.simulator.simulations import AnyScenario
from sds_core.simulation.scenario import LONGEST_S


def read_scenario(name: str, duration_s: float | None = None) -> AnyScenario:
    """Read a scenario.

    Args:
        name: Name of a scenario that comes with sds-monitor, or of a TOML file.
        duration_s: Seconds in which messages are sent; None for the scenario's own.

    Raises:
        click.UsageError: There is no such scenario, it cannot be read, or the duration
            is too long.
    """
    try:
        scenario = load_scenario(name)
    except (UnknownScenario, UnreadableScenario) as error:
        raise click.UsageError(str(error)) from error
    if duration_s is None:
        return scenario
    if not duration_s <= LONGEST_S:
        message = f"--duration is {duration_s}: must be at most {LONGEST_S} s"
        raise click.UsageError(message)
    return replace(scenario, duration_s=duration_s)


def start_of(scenario: AnyScenario, speed: float, now_ms: int) -> int:
    """Return when simulated traffic must start, Unix ms, to end when its writing does.

    Slower than real time it starts now: no record may lie in the future. The result is
    a whole second, because some Lamport timestamps count seconds: the same seed then
    gives the same traffic.

    Args:
        scenario: The scenario.
        speed: Simulated seconds per second; 0 for as fast as possible.
        now_ms: Wall time, Unix ms.
    """
    takes_ms = round(scenario.total_ms / speed) if speed else 0
    start_ms = now_ms - max(0, scenario.total_ms - takes_ms)
    return start_ms // 1000 * 1000
