"""What programs make of pages: a part between two marks, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple


def table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    head, *lines = (f"| {' | '.join(cells)} |" for cells in (heads, *rows))
    return [head, f"|{'---|' * len(heads)}", *lines]


def varying(
    heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], str]:
    """Return the lines of a table, and sentences about columns with one value.

    A dash stands for no value. A table of fewer than four rows keeps all columns; the
    sentences are then empty.
    """
    same = {}
    for place, cells in enumerate(zip(*rows, strict=True)):
        values = set(cells) - {"-"}
        if place and len(cells) > 3 and len(values) == 1:
            same[place] = values.pop()
    kept = [place for place in range(len(heads)) if place not in same]
    lines = table(
        [heads[place] for place in kept],
        ([row[place] for place in kept] for row in rows),
    )
    if not same:
        return lines, ""
    columns: dict[str, list[str]] = {}
    for place, value in same.items():
        columns.setdefault(value, []).append(f"*{heads[place]}*")
    texts = [f"Always {value}: {', '.join(of)}." for value, of in columns.items()]
    omitted = "The table omits columns with the same value (or `-`) in all rows."
    return lines, " ".join([omitted, *texts])


class PagePart(NamedTuple):
    """A part of a page, with its marks.

    Attributes:
        name: File name of the page in this directory.
        module: Module of this package that makes the part.
        content: What the part holds, for its last mark.
    """

    name: str
    module: str
    content: str

    @property
    def path(self) -> Path:
        """Path of the page."""
        return Path(__file__).with_name(self.name)

    @property
    def begin(self) -> str:
        """First mark."""
        return f"<!-- Made by .venv/bin/python -m docs.{self.module}. -->"

    @property
    def end(self) -> str:
        """Last mark."""
        return f"<!-- End of {self.content}. -->"

    def current(self) -> str:
        """Return the part as it stands on the page, with its marks.

        Raises:
            ValueError: The page does not have the marks.
        """
        page = self.path.read_text(encoding="utf-8")
        return page[page.index(self.begin) : page.index(self.end) + len(self.end)]

    def write(self, part: str) -> None:
        """Replace the part on the page.

        Args:
            part: The new part, with its marks.
        """
        page = self.path.read_text(encoding="utf-8")
        self.path.write_text(page.replace(self.current(), part), encoding="utf-8")
