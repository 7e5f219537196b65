"""Writes the figures of performance.json into docs/performance.md.

``python -m docs.make_performance [FIGURES]``: `make bench` writes the former and calls
this; with the file of another run, its figures replace those in performance.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from statistics import median

import click

from benchmarks.goals import HEAD, cells
from benchmarks.results import Disturbed, Measure, Run, publish, read_run
from benchmarks.rows import drain
from docs.page_part import PagePart, table

PART = PagePart("performance.md", "make_performance", "the figures")


def block(run: Run) -> str:
    """Return the figures of a run, with the marks around them."""
    parts = [_about(run), _goals(run), _drains(run), *_others(run)]
    if run.problems:
        lines = "\n".join(f"- `{row}`: {why}" for row, why in run.problems.items())
        parts.append(f"## Rows that failed\n\n{lines}\n")
    return "\n".join([PART.begin, "", *parts, PART.end])


def make_page() -> None:
    """Write the figures of performance.json into the page."""
    PART.write(block(read_run()))


def _about(run: Run) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    lines = [
        f"sds-monitor {run.version}, {run.date}, {run.minutes:g} minutes.",
        f"{run.machine}; load average before the run: {run.load:g}.",
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
    lines += [
        f"**Disturbed by other programs: {row}, {share:.0%} of the cores.**"
        for row, share in run.disturbed.items()
    ]
    return "\n".join(lines) + "\n"


def _goals(run: Run) -> str:
    lines = [
        "## Goals",
        "",
        "The goals are for two cores. Ratios compare CPU times per frame.",
        "",
    ]
    rows = [*cells(run)]
    numbers = {why: str(number + 1) for number, why in enumerate(_reasons(rows))}
    lines += table(HEAD, ([*row, numbers.get(why, "")] for *row, why in rows))
    lines += ["", *(f"{number}. {why}" for why, number in numbers.items())]
    return "\n".join(lines) + "\n"


def _reasons(rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    """Return why goals were missed, each reason once."""
    return dict.fromkeys(why for *_, why in rows if why)


def _drains(run: Run) -> str:
    """Return the contenders, by data set, with the ratio of each to the job."""
    lines = ["## Reading a topic that holds everything already", ""]
    rates = {(one.row, one.what): one for one in run.measures}
    data = dict.fromkeys(row for row, _ in rates if row.endswith(", CPU"))
    for by_cpu in data:
        row = by_cpu.removesuffix(", CPU")
        lines += [f"*{row.removeprefix('drain ').capitalize()}*:", ""]
        contenders = (
            (
                one.what,
                _value(one),
                f"{median(run.ratios(by_cpu, one.what, drain.JOB)):.2f}x",
                _value(rates[row, one.what]),
            )
            for one in run.measures
            if one.row == by_cpu
        )
        head = (
            "contender",
            "CPU time, µs per record",
            "multiple of this job's CPU time",
            "records/s",
        )
        lines += [*table(head, contenders), ""]
    return "\n".join(lines)


def _others(run: Run) -> Iterator[str]:
    rest = [one for one in run.measures if not one.row.startswith(_ELSEWHERE)]
    rest.sort(key=lambda one: one.row)
    for row, measures in groupby(rest, key=lambda one: one.row):
        lines = [f"## {row[0].upper()}{row[1:]}", "", *_measured(list(measures))]
        yield "\n".join(lines)


_ELSEWHERE = ("drain ", "guard")
"""Rows with tables of their own, and those that only CI reads."""

_LOAD = ("age p50", "age p95", "batch", "CPU", "memory")
"""Figures that some rows have of each load."""


def _measured(measures: list[Measure]) -> Iterator[str]:
    """Yield the lines of a row: loads side by side, then all else."""
    loads: dict[str, dict[str, str]] = {}
    for one in measures:
        load, _, figure = one.what.rpartition(", ")
        if figure in _LOAD:
            loads.setdefault(load, {})[figure] = f"{_value(one)} {one.unit}"
    if loads:
        rows = ([load, *(of.get(x, "-") for x in _LOAD)] for load, of in loads.items())
        yield from table(("load", *_LOAD), rows)
        yield ""
    rest = [one for one in measures if one.what.rpartition(", ")[2] not in _LOAD]
    units = {one.unit for one in rest}
    # A unit that all have stands in the head.
    common = units.pop() if len(units) == 1 else ""
    # So does what all names begin with.
    begins = {one.what.partition(": ")[0] for one in rest}
    what = begins.pop() if len(rest) > 1 and len(begins) == 1 else ""
    cells = (
        (
            one.what.removeprefix(f"{what}: "),
            f"{_value(one)} {'' if common else one.unit}".strip(),
        )
        for one in rest
    )
    if rest:
        head = (what or "what", f"measured{f', {common}' * bool(common)}")
        yield from table(head, cells)
        yield ""


def _value(measure: Measure) -> str:
    """Return the median, and the spread if there are several values."""
    text = _number(measure.median)
    if len(measure.values) > 1:
        text += f" ({_number(min(measure.values))} to {_number(max(measure.values))})"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@click.command()
@click.argument(
    "figures",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
def main(figures: Path | None) -> None:
    """Make the page, after taking the figures of a run if a file is given."""
    if figures is not None:
        try:
            publish(read_run(figures))
        except Disturbed as error:
            raise click.ClickException(str(error)) from error
    make_page()


if __name__ == "__main__":
    main()
