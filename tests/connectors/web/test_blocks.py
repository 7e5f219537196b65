"""Tables that are pictures: ranges on one scale, and cells of a grid."""

from __future__ import annotations

import math

from connectors.web.blocks import HeatMap, Range, Ranges


def test_ranges_share_a_scale() -> None:
    """An infinite end is at the edge; without a value nothing is drawn."""
    block = Ranges(
        "Time",
        [
            Range("a", 1, 2, 4, ""),
            Range("b", math.nan, 3, math.inf, ""),
            Range("d", -2, 1, 4, ""),
            Range("c", math.nan, math.nan, math.nan, "none"),
        ],
    )
    assert block.places == [(25, 50, 100), (0, 75, 100), (0, 25, 100), None]
    assert Ranges("Nothing", [Range("a", 0, 0, 0, "0")]).places == [(0, 0, 0)]


def test_cells_are_the_darker_the_greater_they_are() -> None:
    """Rows and columns are in the order of the cells; a missing one has a dash."""
    block = HeatMap.of(
        "Delivered",
        "Loss, by participants",
        {
            ("0 %", "2"): (1.0, "100 %"),
            ("0 %", "10"): (0.9, "90 %"),
            ("40 %", "2"): (0.5, "50 %"),
        },
    )
    assert block.columns == ["2", "10"]
    assert block.rows == [("0 %", [1.0, 0.9]), ("40 %", [0.5, None])]
    assert block.texts == [["100 %", "90 %"], ["50 %", "–"]]  # noqa: RUF001
    assert block.shades == [[9, 8], [0, 0]]
    assert HeatMap.of("One", "", {("a", "b"): (7.0, "7")}).shades == [[0]]
