"""Fuzzes the decoders of everything that comes from outside: `make fuzz`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from secrets import randbelow

import click
from rich.console import Console
from rich.table import Table

from docs.make_guarantees import Fuzz, FuzzAsan, write_run
from streaming.cli.values import Number
from tests.support.fuzz.guided import run_guided
from tests.support.fuzz.running import Finding, Tally, check
from tests.support.fuzz.slices import run_all
from tests.support.fuzz.targets import TARGETS

_FOUND = Path("artifacts/fuzz")
_AGAIN = ".venv/bin/python -m tests.support.fuzz --input"


@click.command()
@click.option("--minutes", type=Number(0), default=1.0, show_default=True)
@click.option("--seed", type=int, help="Of all inputs; a random one by default.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; one for each core.")
@click.option(
    "--target",
    "names",
    type=click.Choice(list(TARGETS)),
    multiple=True,
    help="Only this decoder; may be repeated.",
)
@click.option(
    "--input",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Check only this file; the name of its directory is that of the decoder.",
)
@click.option(
    "--figures",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file for the figures of the run.",
)
@click.option("--guided", is_flag=True, help="By coverage, with Atheris.")
@click.option("--asan", is_flag=True, help="The figures are those of `make fuzz-asan`.")
def main(
    minutes: float,
    seed: int | None,
    jobs: int | None,
    names: tuple[str, ...],
    path: Path | None,
    figures: Path | None,
    guided: bool,
    asan: bool,
) -> None:
    """Give decoders inputs that are genuine but for some changes.

    Only declared errors may leave a decoder, within limits of calls and memory, and
    what it accepts must round-trip. An input that breaks this is written to a file
    below artifacts/fuzz, and the exit code is 1.
    """
    if path is not None:
        _check_file(path)
        return
    seed = randbelow(10**6) if seed is None else seed
    jobs = jobs or len(os.sched_getaffinity(0))
    chosen = names or tuple(TARGETS)
    if guided:
        raise SystemExit(bool(run_guided(chosen, 60 * minutes, jobs)))
    click.echo(f"seed {seed}, {minutes:g} min, {jobs} processes")
    begun = datetime.now(UTC)  # noqa: TID251 - the day of the run
    begun_s = time.monotonic()
    tallies = run_all(chosen, seed, 60 * minutes, jobs, report)
    passed_s = time.monotonic() - begun_s
    _print(tallies, passed_s)
    if figures is not None:
        kind = FuzzAsan if asan else Fuzz
        run = _figures(kind, tallies, minutes, passed_s, seed, begun)
        write_run(run, figures)
    if any(tally.findings for tally in tallies.values()):
        raise SystemExit(1)


def _check_file(path: Path) -> None:
    name = path.absolute().parent.name
    if name not in TARGETS:
        message = f"{path} is in no directory of a decoder: {', '.join(TARGETS)}"
        raise click.UsageError(message)
    for costs in (-1, 0, 1):
        found = check(TARGETS[name], path.read_bytes(), costs)
        if isinstance(found, Finding):
            click.echo(found.text)
            raise SystemExit(1)
    click.echo(f"{name}: {'accepted' if found else 'refused'}")


def report(finding: Finding) -> None:
    """Save the input of a finding, and print how to check it again."""
    directory = _FOUND / finding.target
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / sha256(finding.data).hexdigest()[:12]
    path.write_bytes(finding.data)
    click.echo(f"{finding.target}: {finding.place}: {finding.summary}")
    click.echo(f"again by: {_AGAIN} {path}")


def _print(tallies: Mapping[str, Tally], seconds: float) -> None:
    table = Table("decoder", title="Fuzzing", title_justify="left")
    for heading in ("inputs", "accepted", "inputs per s of CPU", "findings"):
        table.add_column(heading, justify="right")
    for name, tally in tallies.items():
        table.add_row(
            name,
            f"{tally.inputs:,}",
            f"{tally.accepted / max(1, tally.inputs):.0%}",
            f"{tally.inputs / max(0.001, tally.cpu_s):,.0f}",
            str(len(tally.findings)),
        )
    Console().print(table)
    inputs = sum(tally.inputs for tally in tallies.values())
    findings = sum(len(tally.findings) for tally in tallies.values())
    click.echo(f"{seconds / 60:.1f} min, {inputs:,} inputs, {findings} findings")


def _figures(
    kind: type[Fuzz],
    tallies: Mapping[str, Tally],
    given_minutes: float,
    seconds: float,
    seed: int,
    begun: datetime,
) -> Fuzz:
    return kind(
        minutes=round(seconds / 60, 1),
        cpu_minutes=round(sum(one.cpu_s for one in tallies.values()) / 60, 1),
        inputs=sum(one.inputs for one in tallies.values()),
        by_target={name: one.inputs for name, one in tallies.items()},
        findings=sum(len(one.findings) for one in tallies.values()),
        seed=seed,
        version=version("sds-monitor"),
        date=begun.date().isoformat(),
        given_minutes=given_minutes,
    )


if __name__ == "__main__":
    main()
