"""Lines, tables and progress of commands on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from sds_core.text import counted, number
from streaming.cli.log import logger

_GAP = 2
_LOG_EVERY_S = 10.0


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print text without wrapping, so that people and programs can search the text."""
    console.print(Text(text, style), soft_wrap=True)


def print_table(
    console: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: int = 1,
    is_whole: bool = False,
) -> None:
    """Print a table with `words` left-aligned columns of text, then columns of figures.

    If `is_whole`, cells are not wrapped on a narrow terminal.
    """
    cells = list(rows)
    table = Table(box=None, padding=(0, _GAP), header_style="dim")
    for place, heading in enumerate(headings):
        table.add_column(
            Text(heading),
            justify="left" if place < words else "right",
            no_wrap=is_whole,
        )
    for row in cells:
        table.add_row(*map(Text, row))
    if is_whole:
        columns = zip(headings, *cells, strict=True)
        needed = sum(2 * _GAP + max(map(len, column)) for column in columns)
        console.width = max(console.width, needed)
    console.print(table)


@contextmanager
def shown_progress(
    unit: str, total: int, done: int = 0
) -> Iterator[Callable[[], object]]:
    """Show progress on standard error; yield a function that counts one finished unit.

    The count begins at `done` and ends at `total`. On a terminal, the progress is a
    bar. Otherwise, the log shows the count at most every 10 s.
    """
    if sys.stderr.isatty():
        columns = (f"{unit}s", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("", total=total, completed=done)
            yield partial(progress.advance, task)
        return
    logged_s = time.monotonic()

    def count() -> None:
        nonlocal done, logged_s
        done += 1
        if time.monotonic() - logged_s >= _LOG_EVERY_S:
            logged_s = time.monotonic()
            logger.info("%s of %s", number(done), counted(total, unit))

    yield count
