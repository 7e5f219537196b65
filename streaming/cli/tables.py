"""Lines and tables of commands on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

_GAP = 2


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print an unbroken line, which people and programs can search."""
    console.print(Text(text, style), soft_wrap=True)


def print_table(
    console: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: int = 1,
    is_whole: bool = False,
) -> None:
    """Print a table: the first `words` columns have words, and the others have figures.

    Cells that are `is_whole` are not broken on a narrow terminal.
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
