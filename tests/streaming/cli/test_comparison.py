"""The table that a demo prints at its end."""

from __future__ import annotations

import io

from rich.console import Console

from sds_core.simulation.comparison import Comparison
from streaming.cli.actions.demo import show_comparison


def test_name_of_a_scenario_is_no_markup() -> None:
    """It is printed as in its file."""
    console = Console(width=100, file=io.StringIO(), record=True)
    same = show_comparison(console, "[/]", [Comparison("", "lost", 1, 2)])
    assert not same
    title, *_ = console.export_text().splitlines()
    assert title.strip() == "[/], all channels together"
