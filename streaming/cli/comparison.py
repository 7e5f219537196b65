"""Table at the end of a demo: the truth beside what the monitor found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sds_core.simulation.comparison import Comparison


def show_comparison(
    console: Console, title: str, comparisons: Sequence[Comparison]
) -> bool:
    """Print the table; returns whether every figure equals the truth."""
    table = Table(title=Text(f"{title}, all channels together", "table.title"))
    for heading, justify in (
        ("figure", "left"),
        ("truth", "right"),
        ("monitor", "right"),
        ("same?", "left"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for one in comparisons:
        if not one.channel:
            table.add_row(*_row(one))
    console.print(table)
    by_channel = [one for one in comparisons if one.channel]
    channels = {one.channel for one in by_channel}
    equal = sum(one.same for one in by_channel)
    console.print(
        f"by channel: {equal} of {len(by_channel)} figures of {len(channels)} "
        "channels are the same"
    )
    for one in by_channel:
        if not one.same:
            console.print(
                f"  {one.channel}: {one.figure} is {one.found}, truth {one.truth}",
                markup=False,
            )
    return all(one.same for one in comparisons)


def _row(one: Comparison) -> tuple[Any, ...]:
    same = "yes" if one.same else "[bold red]NO[/]"
    return one.figure, _number(one.truth), _number(one.found), same


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
