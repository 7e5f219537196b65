"""Kills every process of a real set-up again and again: `make chaos`."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from secrets import randbelow
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from docs.make_guarantees import Chaos, write_run
from tests.support.chaos.plan import Victim
from tests.support.chaos.play import Outcome
from tests.support.chaos.together import play_together

_MOST_LINES = 30


@click.command()
@click.option("--kills", type=click.IntRange(1), default=20, show_default=True)
@click.option("--seed", type=int, help="Of traffic and kills; a random one by default.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Plays at once, which share the kills; their seeds follow each other.",
)
@click.option(
    "--figures",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file for the figures of the run.",
)
def main(kills: int, seed: int | None, jobs: int, figures: Path | None) -> None:
    """Kill driver, JVM, workers, broker, mirror and audits, and compare the report.

    It must equal that of a job that nobody disturbed, and the simulator's truth. The
    exit code is 1 if it does not. The same seed kills the same victims after the same
    waits.
    """
    seed = randbelow(10**6) if seed is None else seed
    directory = Path(tempfile.mkdtemp(prefix="sds-monitor-chaos-"))
    click.echo(f"{kills} kills, seed {seed}, files in {directory}")
    begun = datetime.now(UTC)  # noqa: TID251 - the day of the run
    outcome = play_together(directory, seed, kills, jobs)
    _print(outcome)
    if figures is not None:
        write_run(_figures(outcome, seed, jobs, begun), figures)
    if outcome.differences:
        for line in outcome.differences[:_MOST_LINES]:
            click.echo(line)
        click.echo(f"again by: make chaos KILLS={kills} SEED={seed} JOBS={jobs}")
        raise SystemExit(1)
    shutil.rmtree(directory)


def _print(outcome: Outcome) -> None:
    table = Table("killed", "times", title="Chaos", title_justify="left")
    for victim in _killed():
        table.add_row(victim.value, str(outcome.kills[victim]))
    table.add_section()
    table.add_row("all", str(outcome.kills.total()))
    Console().print(table)
    click.echo(
        f"{outcome.seconds / 60:.1f} min, {outcome.stops} orderly stops of the broker, "
        f"{outcome.starts} starts of the job, first "
        f"batch after {_median(outcome):.1f} s, {outcome.records:,} records, "
        f"{len(outcome.differences)} differences"
    )


def _killed() -> list[Victim]:
    return [victim for victim in Victim if victim.is_killed]


def _median(outcome: Outcome) -> float:
    return median(outcome.recoveries_s or [0.0])


def _figures(outcome: Outcome, seed: int, jobs: int, begun: datetime) -> Chaos:
    return Chaos(
        kills=outcome.kills.total(),
        by_victim={victim.value: outcome.kills[victim] for victim in _killed()},
        stops=outcome.stops,
        minutes=round(outcome.seconds / 60, 1),
        starts=outcome.starts,
        first_batch_s=round(_median(outcome), 1),
        records=outcome.records,
        differences=len(outcome.differences),
        seed=seed,
        jobs=jobs,
        version=version("sds-monitor"),
        date=begun.date().isoformat(),
    )


if __name__ == "__main__":
    main()
