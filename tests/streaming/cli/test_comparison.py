"""The table that a demo ends with."""

from __future__ import annotations

import io

from rich.console import Console

from sds_core.simulation.comparison import Comparison
from streaming.cli.comparison import show_comparison


def test_name_of_a_scenario_is_no_markup() -> None:
    """It stands above the table as its file has it."""
    console = Console(width=100, file=io.StringIO(), record=True)
    same = show_comparison(console, "[/]", [Comparison("", "lost", 1, 2)])
    assert not same
    title, *_ = console.export_text().splitlines()
    assert title.strip() == "[/], all channels together"
