"""Writes simulated traffic to a topic."""

from __future__ import annotations

import gc
import time
from pathlib import Path

import click
from msgspec.structs import replace

from connectors.kafka.producer import Acknowledgements, write
from connectors.kafka.settings import InvalidTopic, KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.simulator.records import AnyScenario, simulation_of
from connectors.simulator.scenario_files import UnreadableScenario, load_scenario
from sds_core.simulation.scenario import LONGEST_S
from streaming.cli.exit_codes import wrong_use
from streaming.cli.output import wall_ms, with_progress, write_json
from streaming.cli.writing import ending_requested


def simulate(
    kafka: KafkaSettings,
    partitions: int,
    scenario: str,
    seed: int,
    duration: float | None,
    speed: float,
    truth: Path | None,
) -> None:
    """Simulate a scenario, and write its records to a topic.

    A `speed` of 0 means as fast as possible.

    Raises:
        click.ClickException: The scenario or the topic is invalid, or the file `truth`
            cannot be written.
        KafkaUnreachable: Kafka did not acknowledge every record.
    """
    played = read_scenario(scenario, duration)
    if truth is not None and not truth.parent.is_dir():
        message = (
            f"--truth: the directory {truth.parent} does not exist: create it first"
        )
        raise click.UsageError(message)
    # A simulation keeps a hundred thousand small objects in memory, but few of them
    # form reference cycles. If Python collects garbage rarely, the simulation takes a
    # fifth less time.
    gc.set_threshold(100_000, 50, 1_000)
    with wrong_use(InvalidTopic):
        partitions = ensure_frames_topic(kafka, partitions)
    start_ms = start_of(played, speed, wall_ms())
    simulation = simulation_of(played, seed, start_ms, partitions)
    length_s = played.total_ms / 1000
    takes = f"{length_s / speed:,.0f} s" if speed else "a while"
    click.echo(
        f"writing {length_s:,.0f} s of scenario {played.name}, seed {seed}, "
        f"to {kafka.topic}; takes {takes}, Ctrl-C ends it"
    )
    begin_s = time.monotonic()
    acknowledged = Acknowledgements()
    shown = with_progress(simulation.records, lambda: acknowledged.count)
    with ending_requested(acknowledged) as ending:
        written = write(shown, kafka, speed, ending, acknowledged)
    click.echo(
        f"{written:,} records of scenario {played.name}, seed {seed}, "
        f"written to {kafka.topic} in {time.monotonic() - begin_s:.1f} s"
    )
    if truth is not None:
        write_json(simulation.truth.document(), truth, "truth")


def read_scenario(name: str, duration_s: float | None = None) -> AnyScenario:
    """Read a scenario: `name` is one that comes with sds-monitor, or a TOML file.

    Raises:
        click.UsageError: The scenario does not exist or cannot be read, or the duration
            is too long.
    """
    with wrong_use(UnreadableScenario):
        scenario = load_scenario(name)
    if duration_s is None:
        return scenario
    if not duration_s <= LONGEST_S:
        message = f"--duration is {duration_s} s, but must be at most {LONGEST_S} s"
        raise click.UsageError(message)
    return replace(scenario, duration_s=duration_s)


def start_of(scenario: AnyScenario, speed: float, now_ms: int) -> int:
    """Return when the simulated traffic starts, Unix ms.

    The start is usually in the past, so that the last record is written at its own
    record time. If `speed` is less than 1, the traffic starts now; otherwise, the first
    records would have times in the future. The start is a whole second, because some
    Lamport timestamps count seconds: with fractions of a second, the traffic of the
    same seed could differ.
    """
    total_ms = scenario.total_ms
    takes_ms = round(min(total_ms, total_ms / speed)) if speed else 0
    start_ms = now_ms - (total_ms - takes_ms)
    return start_ms // 1000 * 1000
