"""The compiled rules beside the same rules interpreted, on the same records.

    python -m tests.support.forms [--minutes 200] [--frames 166000]

Reads every scenario, cut to so many simulated minutes, and so many mutated frames of
the recording, once in each form. Both must give the same events, write the same states
and make the same report after every batch, to the byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from random import Random

import click
import msgspec

from connectors.kafka.producer import TopicRecord
from connectors.recording import load_recording
from connectors.simulator import scenario_names
from connectors.simulator.records import simulation_of
from connectors.simulator.scenario_files import load_scenario
from sds_core import compiled
from tests.support.accuracy.play import PARTITIONS, START_MS
from tests.support.fuzz.mutation import changed_bytes, changed_protobuf
from tests.support.monitor import Monitor, batches

_BATCH = 500
"""Records of a batch; every state is packed and opened again between two of them."""

_FORMS = ("compiled", "interpreted")


def lines(minutes: int, frames: int, most: int, seed: int) -> Iterator[str]:
    """Yields name, number of records and hash of the results of each source.

    Args:
        minutes: Most simulated minutes of a scenario.
        frames: Number of mutated frames.
        most: Most records of a scenario.
        seed: Seed of the simulations and of the mutations.
    """
    yield "form compiled" if compiled.is_compiled() else "form interpreted"
    for name in scenario_names():
        yield _line_of(name, list(islice(_simulated(name, minutes, seed), most)))
    yield _line_of("mutated", list(_mutated(frames, Random(seed))))


def differing(
    minutes: int, frames: int, most: int, seed: int = 1
) -> list[tuple[str, ...]]:
    """Return the lines that differ between the forms; see `lines`.

    Raises:
        subprocess.CalledProcessError: One form failed, or there is no compiled one.
    """
    command = [
        sys.executable, "-m", "tests.support.forms", "--one",
        f"--minutes={minutes}", f"--frames={frames}", f"--most={most}",
        f"--seed={seed}",
    ]  # fmt: skip
    running = [
        subprocess.Popen(
            command,
            env={**os.environ, compiled.SWITCH: form},
            stdout=subprocess.PIPE,
            text=True,
        )
        for form in _FORMS
    ]
    outputs = [process.communicate()[0] for process in running]
    for process, form in zip(running, _FORMS, strict=True):
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, [*command, form])
    heads, *rest = zip(*(output.splitlines() for output in outputs), strict=True)
    assert heads == tuple(f"form {form}" for form in _FORMS)
    for pair in rest:
        sys.stderr.write(f"{pair[0]}\n")
    return [pair for pair in rest if len(set(pair)) > 1]


def _simulated(name: str, minutes: int, seed: int) -> Iterator[TopicRecord]:
    simulation = simulation_of(load_scenario(name), seed, START_MS, PARTITIONS)
    end_ms = START_MS + minutes * 60_000
    return takewhile(lambda one: one.timestamp_ms <= end_ms, simulation.records)


def _mutated(count: int, random: Random) -> Iterator[TopicRecord]:
    """Yields frames of the recording, of which some bytes or fields are changed."""
    genuine = load_recording()
    for number in range(count):
        record = genuine[number % len(genuine)]
        value = record.value or b""
        if random.random() < 0.3:
            value = changed_bytes(random, value, random.choice(genuine).value or b"")
        else:
            value = changed_protobuf(random, value)
        yield replace(record, value=value)


def _line_of(name: str, records: Sequence[TopicRecord]) -> str:
    monitor, digest = Monitor(restarts=True), hashlib.sha256()
    for batch, clock_ms in batches(records, _BATCH):
        monitor.read(batch, clock_ms)
        for part in _parts(monitor):
            digest.update(part)
    report = json.dumps(monitor.report(with_detail=True), sort_keys=True)
    digest.update(report.encode())
    return f"{name} {len(records)} {digest.hexdigest()}"


def _parts(monitor: Monitor) -> Iterable[bytes]:
    for key, blob in sorted(monitor.states().items()):
        yield key.encode()
        yield blob
    yield msgspec.msgpack.encode(list(monitor.incidents.values()))
    yield msgspec.msgpack.encode(list(monitor.acknowledgements.values()))
    yield msgspec.msgpack.encode(list(monitor.minutes.values()))


@click.command(help=__doc__)
@click.option("--minutes", default=200, show_default=True)
@click.option("--frames", default=166_000, show_default=True)
@click.option(
    "--most",
    default=20_000,
    show_default=True,
    help="Most records of a scenario: `flood` has a hundred thousand in a minute.",
)
@click.option("--seed", default=1, show_default=True)
@click.option("--one", is_flag=True, help="Print the lines of this process's form.")
def main(minutes: int, frames: int, most: int, seed: int, one: bool) -> None:
    """Compare the forms; exit code 1 if they differ."""
    if one:
        for line in lines(minutes, frames, most, seed):
            print(line, flush=True)
        return
    found = differing(minutes, frames, most, seed)
    for pair in found:
        click.echo(f"differs: {' / '.join(pair)}")
    click.echo("the forms differ" if found else "the forms are alike, to the byte")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
