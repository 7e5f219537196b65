"""Measures the job beside other ways to read the same topic: docs/performance.md.

    python -m benchmarks [--quick] [--only ROW ...]

A full run takes about half an hour on two idle cores, and as long again the first time,
when the data is made; with --quick about ten minutes. It writes docs/performance.json
and makes the page anew; a run with --only prints its figures and leaves both alone,
unless --add puts them there, for a row that failed.
The rows that are done so far are in `last-run.json` in the cache.
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
from benchmarks.goals import print_goals
from benchmarks.guard import guard
from benchmarks.results import Run, new_run, read_run, write_run
from benchmarks.rows.age import age
from benchmarks.rows.catch_up import catch_up
from benchmarks.rows.channel import growth, open_and_close
from benchmarks.rows.drain import drain, sets
from benchmarks.rows.floor import floor
from benchmarks.rows.groups import groups
from benchmarks.rows.hostile import hostile
from benchmarks.rows.touched import touched
from docs.make_performance import make_page


def _rows(is_quick: bool) -> dict[str, Row]:
    drains: dict[str, Row] = {
        f"drain-{one.name}": partial(drain, wanted=one) for one in sets(is_quick)
    }
    return {
        "guard": guard,
        "open-and-close": open_and_close,
        "growth": growth,
        "groups": groups,
        "hostile": hostile,
        **drains,
        "floor": floor,
        "age": age,
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
    help=f"Only this row; may be repeated. Rows: {', '.join(_rows(True))}.",
)
@click.option(
    "--add",
    is_flag=True,
    help="With --only: put the rows into the page's run, of this version and machine.",
)
@click.option("--fail-fast", is_flag=True, help="End at the first row that fails.")
def main(quick: bool, wanted: tuple[str, ...], add: bool, fail_fast: bool) -> None:
    """Run the rows, print their figures, and write the page."""
    rows = _rows(quick)
    if unknown := set(wanted) - rows.keys():
        message = f"no row {', '.join(sorted(unknown))}: there are {', '.join(rows)}"
        raise click.UsageError(message)
    # So that an end of the run is one of the broker and of all contenders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    begun_s = time.monotonic()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()  # noqa: TID251 - the day of the run
    run = new_run(today, is_quick=quick)
    unfinished = cache_dir() / "last-run.json"
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="sds-monitor-bench-") as name,
        ExitStack() as stack,
    ):
        context = Context(run, stack, Path(name), quick)
        for row, measure in rows.items():
            if wanted and row not in wanted:
                continue
            minutes = (time.monotonic() - begun_s) / 60
            click.echo(f"{row} ({minutes:.1f} min)", err=True)
            try:
                measure(context)
            except Exception as error:
                # The other rows of a run of half an hour are worth having.
                if fail_fast:
                    raise
                run.problems[row] = f"{type(error).__name__}: {error}"[:2_000]
                click.echo(f"  failed: {run.problems[row]}", err=True)
            run.minutes = round((time.monotonic() - begun_s) / 60, 1)
            write_run(run, unfinished)
    if add:
        run = _added(run, [row for row in wanted if row not in run.problems])
    if add or not wanted:
        write_run(run)
        make_page()
    print_goals(run)
    if run.problems:
        raise SystemExit(1)


def _added(rows: Run, names: Sequence[str]) -> Run:
    """Return the page's run with the rows of another one in place of its own.

    Args:
        rows: The other run.
        names: Its rows that did not fail.
    """
    run = read_run()
    ours, others = (run.version, run.machine), (rows.version, rows.machine)
    if ours != others:
        message = f"the page's run is of {ours}, not of {others}: make it anew"
        raise click.UsageError(message)
    measured = {measure.row for measure in rows.measures}
    run.measures = [one for one in run.measures if one.row not in measured]
    run.measures += rows.measures
    run.data |= rows.data
    run.apart = sorted({*run.apart, *names})
    for name in names:
        run.problems.pop(name, None)
    return run


if __name__ == "__main__":
    main()
