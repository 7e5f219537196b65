"""Prints the summary of a sweep: means of the figures of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from connectors.sweep_results import SweepRefused, read_sweep
from sds_core.planning.document import estimate_object
from sds_core.planning.errors import ModelMissing
from sds_core.planning.estimates import require_scipy
from sds_core.planning.grid import Cell
from sds_core.planning.outcome import Outcome
from sds_core.planning.words import with_interval
from sds_core.text import byte_size, counted, did_you_mean, number, shown
from streaming.cli.exit_codes import wrong_use
from streaming.cli.output import check_page, print_json, write_page
from streaming.cli.tables import print_line, print_table

_ALL_DIGITS = 17


def check_summary(figures: Sequence[str], html: Path | None) -> None:
    """Check the arguments of `print_summary` before the sweep starts.

    Raises:
        click.UsageError: `figures` has an unknown name, scipy is not installed, or the
            page cannot be written.
    """
    for name in figures:
        if name not in Outcome._fields:
            close = did_you_mean(name, Outcome._fields)
            message = (
                f"--figure {shown(name)} is not a figure{close}: use one of "
                f"{', '.join(Outcome._fields)}"
            )
            raise click.UsageError(message)
    if html is not None:
        check_page(html)
    with wrong_use(ModelMissing):
        require_scipy()


def print_summary(
    directory: Path, figures: Sequence[str], as_json: bool, html: Path | None
) -> None:
    """Print the means of some figures of `Outcome` for each plan, with 95 % intervals.

    Raises:
        click.UsageError: The directory has no results, or the page cannot be written.
    """
    with wrong_use(SweepRefused):
        results = read_sweep(directory)
    cells = list(results.grid.summary(results.outcomes, figures))
    runs = results.grid.seeds * len(results.grid.cells)
    if html is not None:
        # This import loads jinja and pygal, which tables do not need.
        from streaming.cli.actions.plan_report import sweep_report

        by_figure = {
            name: [(cell.figures[name], _estimate(name, cell)) for cell in cells]
            for name in figures
        }
        keys = results.grid.keys or ("plan",)
        of_cells = [cell.values or {"plan": "base"} for cell in cells]
        title = f"Sweep of {counted(len(cells), 'plan')}"
        write_page(sweep_report(title, keys, of_cells, by_figure), html)
    if as_json:
        document = {
            "schema": 1,
            "runs": runs,
            "finished": len(results.runs),
            "cells": [_document(cell) for cell in cells],
        }
        print_json(document)
        return
    console = Console()
    rows = (
        [
            *map(_text, cell.values.values()),
            number(cell.runs),
            *(_estimate(name, cell) for name in figures),
        ]
        for cell in cells
    )
    headings = (*results.grid.keys, "runs", *figures)
    print_table(console, headings, rows, words=0, is_whole=True)
    finished = f"{number(len(results.runs))} of {counted(runs, 'run')}"
    print_line(console, f"{finished}; means with the half width of their 95 % interval")


def _estimate(name: str, cell: Cell) -> str:
    return with_interval(cell.figures[name], byte_size if "bytes" in name else _text)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{float(f'{value:.3g}'):,.12g}"
    return str(value)


def _document(cell: Cell) -> dict[str, Any]:
    figures = {
        name: estimate_object(one, _ALL_DIGITS) for name, one in cell.figures.items()
    }
    return {"values": cell.values, "runs": cell.runs, "figures": figures}
