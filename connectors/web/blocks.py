"""Blocks of reports and of the page of forecasts: tables, ranges and heat maps.

For screen readers, each block shows its values as a table. Only `Lanes` do not, so
their events are in a separate `Table`. Some blocks also have a picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from markupsafe import Markup

from connectors.web.charts import Chart
from connectors.web.drawing import draw
from connectors.web.lanes import Lanes
from connectors.web.words import NOTHING

_SHADES = 9


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of each row is the name of the row.

    Attributes:
        words: Number of columns at the left that contain words instead of figures.
        bars: For each row, a share in [0, 1] that an additional last cell shows as a
            bar; empty for no bars.
        links: For each row, the address to which its first cell links; empty for no
            links.
        anchor: Prefix of the row ids, which end in the row number; empty for no ids.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    words: int = 1
    bars: Sequence[float] = ()
    links: Sequence[str] = ()
    anchor: str = ""
    kind: Literal["table"] = "table"


@dataclass(frozen=True, slots=True)
class Range:
    """A value with its interval.

    Attributes:
        low, high: Ends of the interval. If the value has no interval, each end is equal
            to the value.
        mid: The value, not negative; NaN if it is unknown.
        text: The value and its interval as a text with unit.
    """

    name: str
    low: float
    mid: float
    high: float
    text: str


@dataclass(frozen=True)
class Ranges:
    """The ranges of a figure in several variants, on a common scale from 0."""

    title: str
    ranges: Sequence[Range]
    note: str = ""
    kind: Literal["ranges"] = "ranges"

    @cached_property
    def places(self) -> list[tuple[float, ...] | None]:
        """Places of each range's `low`, `mid` and `high`, in percent of the width.

        None for a range whose `mid` is unknown. An end that is infinite, unknown or
        below 0 is at the edge.
        """
        known = [x for one in self.ranges for x in (one.mid, one.high)]
        most = max(filter(math.isfinite, known), default=0) or 1

        def percent(value: float, otherwise: float) -> float:
            return max(0, 100 * value / most) if math.isfinite(value) else otherwise

        return [
            (percent(one.low, 0), percent(one.mid, 100), percent(one.high, 100))
            if not math.isnan(one.mid)
            else None
            for one in self.ranges
        ]


@dataclass(frozen=True)
class HeatMap:
    """A table in which a cell with a greater value is darker.

    Attributes:
        corner: Meaning of the rows and columns, such as "loss, by participants".
        rows: Name and values of each row; None for a missing value.
        texts: The values with their unit, in the same shape as `rows`.
    """

    title: str
    corner: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float | None]]]
    texts: Sequence[Sequence[str]]
    note: str = ""
    kind: Literal["heat"] = "heat"

    @classmethod
    def of(
        cls,
        title: str,
        corner: str,
        cells: Mapping[tuple[str, str], tuple[float, str]],
        note: str = "",
    ) -> HeatMap:
        """Return a heat map with the rows and columns in the order of `cells`.

        A key of `cells` is the name of a row and of a column; its entry is the cell's
        value and text. A cell may be missing, and a value may be NaN.
        """
        columns = list(dict.fromkeys(column for _, column in cells))
        names = list(dict.fromkeys(row for row, _ in cells))
        nothing = math.nan, NOTHING
        grid = [[cells.get((row, one), nothing) for one in columns] for row in names]
        values = [[v if math.isfinite(v) else None for v, _ in row] for row in grid]
        texts = [[text for _, text in row] for row in grid]
        rows = list(zip(names, values, strict=True))
        return cls(title, corner, columns, rows, texts, note)

    @cached_property
    def shades(self) -> list[list[int]]:
        """Shade of each cell, in [0, `_SHADES`]; 0 for the least or a missing value."""
        known = [v for _, values in self.rows for v in values if v is not None]
        least, most = min(known, default=0), max(known, default=0)
        span = (most - least) or 1
        return [
            [
                0 if v is None else math.ceil(_SHADES * (v - least) / span)
                for v in values
            ]
            for _, values in self.rows
        ]


Block = Chart | Table | Ranges | HeatMap | Lanes


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report. On wide screens, the blocks of a section are side by side.

    Attributes:
        small: Whether the blocks are small charts of the same kind.
    """

    title: str
    blocks: Sequence[Block]
    note: str = ""
    small: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A report; the templates escape its texts.

    Attributes:
        lead: Sentences at the top of the report: the most important results.
        foot: Text at the end: the source of the figures.
    """

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]
    foot: str


def pictured(blocks: Sequence[Block]) -> list[tuple[Block, Markup | None]]:
    """Return each block with its picture; None unless it is a chart with values."""
    return [
        (
            block,
            draw(block) if isinstance(block, Chart) and not block.is_empty else None,
        )
        for block in blocks
    ]
