"""Draws the tables of docs/planning.md as they stand on the page.

So a chart has the figures of its table, and needs no sweep. The pictures load nothing;
their colours follow the reader's scheme, light or dark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from connectors.web import charts
from connectors.web.charts import Chart, Series
from connectors.web.drawing import draw
from sds_core.observer.figures import Scale
from sds_core.text import byte_size

IMAGES: Final = Path(__file__).with_name("images")

_STATIC = Path(charts.__file__).with_name("static")
_UNITS: Final = {"": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_FIGURE: Final = re.compile(r"([\d.,]+)(?: (B|kB|MB|GB|TB))?")
_WIDTH, _TOP, _LINE = 640, 30, 20
_HEIGHT = 230
_MARGIN = 28
"""Room for half of the last label."""


class Drawing(NamedTuple):
    """A picture of a table.

    Attributes:
        name: Name of its file.
        table: Number of the table within its part of the page.
        rows: Numbers of the rows to draw, at most five.
        scale: Of the values.
        unit: Returns a value as the axis has it.
        part: Which of the figures of a cell, between slashes.
    """

    name: str
    table: int
    rows: Sequence[int]
    scale: Scale = Scale.COUNT
    unit: Callable[[float], str] = "{:,.10g}".format
    part: int = 0


DRAWINGS: Final[Mapping[str, Sequence[Drawing]]] = {
    "delivery": (
        Drawing("delivered", 0, (0, 1, 9), Scale.PERCENT),
        Drawing("recovery", 1, (0, 1, 8, 9, 10), unit="{:g} s".format),
        Drawing("bytes", 2, (0, 1, 5, 6, 7), unit=byte_size),
    ),
    "targets": (Drawing("targets", 0, (1, 3, 2, 4), Scale.PERCENT, part=2),),
    "false": (Drawing("exposed", 0, (0, 3, 1, 4)),),
    "cost": (Drawing("cost", 0, (0, 1, 2, 3), unit=byte_size),),
}
"""Pictures by the name of their part of the page."""


def drawn(name: str, part: str) -> Iterator[tuple[Path, str]]:
    """Yield file and content of each picture of a part of the page.

    Args:
        name: Name of the part.
        part: Its text.
    """
    tables = list(_tables(part))
    for drawing in DRAWINGS.get(name, ()):
        (heading, *columns), *rows = tables[drawing.table]
        title = heading.split(" / ")[drawing.part].capitalize()
        series = [_series(*rows[row], part=drawing.part) for row in drawing.rows]
        chart = Chart(
            drawing.name, title, "", drawing.scale, columns, columns, series,
            drawing.unit,
        )  # fmt: skip
        yield IMAGES / f"planning-{drawing.name}.svg", picture(chart)


def _tables(part: str) -> Iterator[list[list[str]]]:
    """Yield the cells of each table, without the line below its head."""
    for text in re.findall(r"(?:^\|.*\n)+", part, re.MULTILINE):
        head, _, *rows = text.splitlines()
        yield [line.strip("|* ").split(" | ") for line in (head, *rows)]


def _series(row: str, *cells: str, part: int) -> Series:
    texts = [text.strip("*").split(" / ")[part] for text in cells]
    values, spans = [], []
    for text in texts:
        mean, _, half_width = text.partition(" ± ")
        unit = half_width.partition(" ")[2]
        value = _value(mean if " " in mean or not unit else f"{mean} {unit}")
        half = _value(half_width)
        values.append(None if math.isnan(value) else value)
        span = max(0.0, value - half), value + half
        spans.append(None if math.isnan(value + half) else span)
    return Series(row.replace("`", ""), values, texts, spans=spans)


def _value(text: str) -> float:
    """Return a figure; NaN of a dash, a question mark, and nothing."""
    found = _FIGURE.fullmatch(text)
    if found is None:
        return math.nan
    return float(found[1].replace(",", "")) * _UNITS[found[2] or ""]


def picture(chart: Chart) -> str:
    """Return a chart with its title and the names of its lines, as a file."""
    top = _TOP + _LINE * len(chart.series)
    names = "".join(
        f'<g class="color-{at}"><rect class="rect" x="12" width="14" height="4" '
        f'y="{_TOP + _LINE * at + 3}"/><text x="34" y="{_TOP + _LINE * at + 9}">'
        f"{escape(one.name)}</text></g>"
        for at, one in enumerate(chart.series)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + _MARGIN} '
        f'{top + _HEIGHT}" class="chart" role="img" aria-label="{escape(chart.title)}">'
        f"<style>{_style()}</style>"
        '<rect width="100%" height="100%" class="ground"/>'
        f'<text x="12" y="20" class="name">{escape(chart.title)}</text>{names}'
        f'<svg y="{top}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'overflow="visible">{draw(chart)}</svg></svg>\n'
    )


def _style() -> str:
    """Return the colours of the status page, and its rules for charts."""
    base, sheet = (
        (_STATIC / f"{name}.css").read_text("utf-8") for name in ("base", "charts")
    )
    colours = re.findall(r"(?<!\w)--(?:surface|line|text|soft|series-\d): [^;]+;", base)
    half = len(colours) // 2
    light, dark = "".join(colours[:half]), "".join(colours[half:])
    rules = re.findall(r"^\.(?:color-\d|chart [^{]*?) \{[^}]*\}", sheet, re.MULTILINE)
    return " ".join(
        (
            f":root {{ {light} font-family: sans-serif }}",
            f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
            *(" ".join(rule.split()) for rule in rules),
            ".ground { fill: var(--surface) } .chart .name { fill: var(--text) }",
            ".chart .name { font-size: 14px }",
        )
    )
