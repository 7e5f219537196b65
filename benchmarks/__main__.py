"""Measures the job beside other ways to read the same topic: docs/performance.md.

    python -m benchmarks [--quick] [--only ROW ...]

A full run takes about half an hour on two idle cores, and longer the first time, when
the data is made; with --quick about ten minutes. It writes performance.json and
regenerates the page, unless other programs ran during a row: then it ends with exit
code 1 and names the rows. The run so far is `last-run.json` in the cache. With --only,
figures are printed and written nowhere; with --add too, they replace those rows of the
last run, which is then published.
"""

from __future__ import annotations

import datetime
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from benchmarks.context import Context, Row
from benchmarks.data import cache_dir
from benchmarks.disturbance import adopt_orphans, watched
from benchmarks.goals import print_goals
from benchmarks.guard import guard
from benchmarks.measured import PERFORMANCE
from benchmarks.results import (
    MOST_DISTURBED,
    Disturbed,
    Run,
    new_run,
    publish,
    read_run,
    write_run,
)
from benchmarks.rows.age import age, age_of_mix
from benchmarks.rows.catch_up import catch_up
from benchmarks.rows.channel import growth, open_and_close
from benchmarks.rows.drain import drain, shapes
from benchmarks.rows.floor import floor, start
from benchmarks.rows.groups import groups
from benchmarks.rows.hostile import hostile
from benchmarks.rows.touched import touched
from docs.make_performance import make_page

ROWS: dict[str, Row] = {
    "guard": guard,
    "open-and-close": open_and_close,
    "growth": growth,
    "groups": groups,
    "hostile": hostile,
    **{f"drain-{data}": partial(drain, data=data) for data in shapes(True)},
    "start": start,
    "floor": floor,
    "age": age,
    "mix": age_of_mix,
    "touched": touched,
    "catch-up": catch_up,
}


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Less data, and one repetition.")
@click.option(
    "--only",
    "wanted",
    multiple=True,
    metavar="ROW",
    help=f"Only this row; may be repeated. Rows: {', '.join(ROWS)}.",
)
@click.option(
    "--add",
    is_flag=True,
    help="With --only: put the rows into the last run, of this version and machine.",
)
@click.option("--fail-fast", is_flag=True, help="End at the first row that fails.")
def main(quick: bool, wanted: tuple[str, ...], add: bool, fail_fast: bool) -> None:
    """Run the rows, print their figures, and write the page."""
    if unknown := set(wanted) - ROWS.keys():
        message = f"no row {', '.join(sorted(unknown))}: there are {', '.join(ROWS)}"
        raise click.UsageError(message)
    if add and not wanted:
        message = "--add needs --only"
        raise click.UsageError(message)
    # So that an end of the run is one of the broker and of all contenders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    adopt_orphans()
    last = cache_dir() / "last-run.json"
    last.parent.mkdir(parents=True, exist_ok=True)
    base = _base(last, is_quick=quick) if add else None
    today = datetime.datetime.now(datetime.UTC).date().isoformat()  # noqa: TID251 - the day of the run
    run = new_run(today, is_quick=quick)
    begun_s = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="sds-monitor-bench-") as name,
        ExitStack() as stack,
    ):
        context = Context(run, stack, Path(name), quick)
        for row in wanted or ROWS:
            minutes = (time.monotonic() - begun_s) / 60
            click.echo(f"{row} ({minutes:.1f} min)", err=True)
            _measure(context, row, fail_fast=fail_fast)
            run.minutes = round((time.monotonic() - begun_s) / 60, 1)
            if not wanted:
                write_run(run, last)
    print_goals(run)
    if base is not None:
        run = added(base, run, wanted)
        write_run(run, last)
    if base is not None or not wanted:
        try:
            publish(run)
        except Disturbed as error:
            raise click.ClickException(str(error)) from error
        make_page()
    if run.problems:
        raise SystemExit(1)


def _measure(context: Context, row: str, *, fail_fast: bool) -> None:
    """Measure a row, and whether other programs ran meanwhile."""
    with watched() as others:
        try:
            ROWS[row](context)
        except Exception as error:
            # The other rows of a run of half an hour are worth having.
            if fail_fast:
                raise
            context.run.problems[row] = f"{type(error).__name__}: {error}"[:2_000]
            click.echo(f"  failed: {context.run.problems[row]}", err=True)
    click.echo(f"  other programs: {others.share:.1%} of the cores", err=True)
    if others.share > MOST_DISTURBED:
        context.run.disturbed[row] = round(others.share, 3)
        click.echo("  DISTURBED: measure this row again", err=True)


def _base(last: Path, *, is_quick: bool) -> Run:
    """Return the run that gets further rows: the last one, or the published one.

    Raises:
        click.UsageError: It is of another version, machine or form.
    """
    base, here = (
        read_run(last if last.exists() else PERFORMANCE),
        new_run("", is_quick=is_quick),
    )
    theirs, ours = (
        (one.version, one.machine, "short" if one.is_quick else "full")
        for one in (base, here)
    )
    if theirs != ours:
        message = f"the last run is of {theirs}, not of {ours}: run all rows"
        raise click.UsageError(message)
    return base


def added(run: Run, rows: Run, names: Sequence[str]) -> Run:
    """Return a run with the rows of another one in place of its own.

    Args:
        run: The run.
        rows: The other run.
        names: Names of its rows; those that failed are left out.
    """
    names = [name for name in names if name not in rows.problems]
    measured = {measure.row for measure in rows.measures}
    run.measures = [one for one in run.measures if one.row not in measured]
    run.measures += rows.measures
    run.data |= rows.data
    run.apart = sorted({*run.apart, *names})
    for name in names:
        run.problems.pop(name, None)
        run.disturbed.pop(name, None)
    run.disturbed |= rows.disturbed
    return run


if __name__ == "__main__":
    main()
