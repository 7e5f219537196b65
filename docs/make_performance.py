"""Writes the figures of docs/performance.json into docs/performance.md.

``python -m docs.make_performance [FIGURES]``: `make bench` writes the former and calls
this; with the file of another run, its figures replace those in docs/performance.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click

from benchmarks.goals import cells
from benchmarks.results import Measure, Run, read_run, write_run
from benchmarks.rows import drain

PAGE = Path(__file__).with_name("performance.md")

BEGIN = "<!-- Made by .venv/bin/python -m docs.make_performance. -->"
END = "<!-- End of the figures. -->"


def block(run: Run) -> str:
    """Return the figures of a run, with the marks around them."""
    parts = [_about(run), _goals(run), _drains(run), *_others(run)]
    if run.problems:
        lines = "\n".join(f"- `{row}`: {why}" for row, why in run.problems.items())
        parts.append(f"## Rows that failed\n\n{lines}\n")
    return "\n".join([BEGIN, "", *parts, END])


def current(page: str) -> str:
    """Return the figures of a page, with their marks.

    Raises:
        ValueError: The page does not have the marks.
    """
    return page[page.index(BEGIN) : page.index(END) + len(END)]


def make_page() -> None:
    """Write the figures of docs/performance.json into the page."""
    page = PAGE.read_text(encoding="utf-8")
    page = page.replace(current(page), block(read_run()))
    PAGE.write_text(page, encoding="utf-8")


def _about(run: Run) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    lines = [
        f"sds-monitor {run.version}, {run.date}, {run.minutes:g} minutes.",
        f"{run.machine}; load before the run {run.load:g}.",
        f"{versions}.",
    ]
    lines += [f"Data set *{name}*: {words}." for name, words in run.data.items()]
    if run.is_quick:
        lines.insert(
            0,
            "**These figures are from the short form: less data, one repetition. "
            "They show that the run works, not how fast the job is.**",
        )
    if run.apart:
        lines.append(f"Measured in a run of their own: {', '.join(run.apart)}.")
    if run.load > 0.5:
        lines.append("**Other programs ran on the machine.**")
    return "\n".join(lines) + "\n"


def _goals(run: Run) -> str:
    lines = ["## Goals", "", "On two cores.", ""]
    lines += _table(("what", "goal", "aim", "this run", ""), cells(run))
    return "\n".join(lines) + "\n"


def _drains(run: Run) -> str:
    """Return the contenders, by data set, with the ratio of the job to each."""
    lines = ["## Reading a topic that holds everything already", ""]
    names = [measure.row for measure in run.measures]
    for row in dict.fromkeys(names):
        if not row.startswith("drain ") or "processor" in row:
            continue
        lines += [f"*{row.removeprefix('drain ').capitalize()}*:", ""]
        lines += _table(
            ("contender", "records/s", "this job", "processor, µs", "this job"),
            _contenders(run, row),
        )
        lines.append("")
    return "\n".join(lines)


def _contenders(run: Run, row: str) -> Iterator[tuple[str, ...]]:
    by_cpu = f"{row}, processor"
    spent = {one.what: one for one in run.measures if one.row == by_cpu}
    for one in run.measures:
        if one.row == row:
            ratio = run.ratio(row, drain.JOB, one.what) or 0.0
            cpu_ratio = run.ratio(by_cpu, one.what, drain.JOB) or 0.0
            yield (
                one.what,
                _value(one),
                f"{ratio:.2f}x",
                _value(spent[one.what]),
                f"{cpu_ratio:.2f}x",
            )


def _others(run: Run) -> Iterator[str]:
    rest = [one for one in run.measures if not one.row.startswith("drain ")]
    rest.sort(key=lambda one: one.row)
    for row, measures in groupby(rest, key=lambda one: one.row):
        lines = [f"## {row[0].upper()}{row[1:]}", ""]
        cells = ((one.what, f"{_value(one)} {one.unit}") for one in measures)
        yield "\n".join([*lines, *_table(("what", "measured"), cells), ""])


def _value(measure: Measure) -> str:
    """Return the median, and the spread if there are several values."""
    text = _number(measure.median)
    if len(measure.values) > 1:
        text += f" ({_number(min(measure.values))} to {_number(max(measure.values))})"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return lines


@click.command()
@click.argument(
    "figures",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
def main(figures: Path | None) -> None:
    """Make the page, after taking the figures of a run if a file is given."""
    if figures is not None:
        write_run(read_run(figures))
    make_page()


if __name__ == "__main__":
    main()
