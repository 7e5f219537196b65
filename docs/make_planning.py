"""Makes the tables of simulated channels in docs/planning.md.

    python -m docs.make_planning delivery
    python -m docs.make_planning targets
    python -m docs.make_planning false
    python -m docs.make_planning cost

Each sweeps its grids in `docs/grids` and continues where it was ended. `delivery` takes
an hour of CPU time, two thirds of it for 1,000 participants; the others some minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import numpy as np

from connectors.sweep_results import read_sweep
from connectors.toml_file import read_toml
from docs.page_part import PagePart
from sds_core.planning.closed_forms import false_positive_rates
from sds_core.planning.estimates import Estimate
from sds_core.planning.experiment import Outcome
from sds_core.planning.grid import Cell, Grid
from sds_core.text import byte_size, number
from sds_core.wire import DEFAULT_PARAMETERS
from streaming.cli.actions.plan_sweep import run_sweep
from streaming.settings import SessionSettings

GRIDS: Final = Path(__file__).with_name("grids")
_FIRST, _FOUND, _CONSISTENT = TARGETS = (
    "first_peer_in_time",
    "misses_found_in_time",
    "consistent_in_time",
)
_MET: Final = {_FIRST: 0.99, _FOUND: 0.9, _CONSISTENT: 0.99}
"""Shares from which a target counts as met; the targets name only that of misses."""

_FILTER_IDS: Final = (2_500, 5_000, 8_000, 10_000, 12_000, 15_000, 20_000, 30_000)
_NIM_MOST_IDS: Final = 12_000
"""A filter of nim-sds has no more ids: it rolls over."""

Read = Callable[[str], tuple[Grid, list[Cell]]]
"""Returns the grid and the cells, with all figures, of a sweep's name."""


class Table(NamedTuple):
    """A table of the page.

    Attributes:
        content: What it has, for its last mark.
        sweeps: Names of its grids.
        lines: Makes its lines.
    """

    content: str
    sweeps: Sequence[str]
    lines: Callable[[Read], Iterable[str]]

    def part(self, name: str) -> PagePart:
        """Return its part of the page."""
        return PagePart("planning.md", f"make_planning {name}", self.content)


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|---{'|---' * (len(heads) - 1)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _pivot(
    cells: Iterable[Cell], column: str, text: Callable[[Cell], str]
) -> tuple[list[Any], dict[str, dict[Any, str]]]:
    """Return the values of a setting, and a text of each by the other settings."""
    rows: dict[str, dict[Any, str]] = {}
    columns: dict[Any, None] = {}
    for cell in cells:
        label = ", ".join(
            f"`{key}` {_plain(value)}"
            for key, value in cell.values.items()
            if key != column
        )
        columns[cell.values[column]] = None
        rows.setdefault(label, {})[cell.values[column]] = text(cell)
    return list(columns), rows


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else f"{value:,g}"


def _with(estimate: Estimate, text: Callable[[float], str], other: str = "-") -> str:
    """Return a mean with the half width of its interval, if it has one."""
    if np.isnan(estimate.value):
        return other
    half = (estimate.high - estimate.low) / 2
    is_known = np.isfinite(half) and half > 0
    return text(estimate.value) + (f" ± {text(half)}" if is_known else "")


def _percent(share: float) -> str:
    return f"{100 * share:.3g}"


def _about(grid: Grid, base: Mapping[str, Any]) -> str:
    settings = ", ".join(f"`{key}` {_plain(value)}" for key, value in base.items())
    return f"{settings}; {number(grid.seeds)} seeds."


def _delivery(read: Read) -> Iterator[str]:
    grid, cells = read("delivery")
    cells = cells + read("large")[1]
    usual = grid.cells[0]
    for heading, figure, text in (
        ("Delivered in the end, percent", "eventual", _percent),
        ("Time to recover, 95th percentile, s", "recovery_p95_s", "{:.3g}".format),
        ("Bytes a day", "bytes_per_day", byte_size),
    ):
        rows: dict[str, dict[float, str]] = {}
        for cell in cells:
            changed = [
                f"`{key}` {_plain(value)}"
                for key, value in cell.values.items()
                if key != "loss" and value != usual.setting(key)
            ]
            label = ", ".join(changed) or "as it is"
            estimate = cell.figures[figure]
            rows.setdefault(label, {})[cell.values["loss"]] = _with(estimate, text)
        losses = sorted({loss for row in rows.values() for loss in row})
        heads = [heading, *(f"loss {loss:.0%}" for loss in losses)]
        yield from _markdown(
            heads,
            (
                [label, *(row.get(loss, "") for loss in losses)]
                for label, row in rows.items()
            ),
        )


def _targets(read: Read) -> Iterator[str]:
    _, cells = read("targets")

    def text(cell: Cell) -> str:
        shares = [cell.figures[name].value for name in TARGETS]
        is_met = all(
            # Without a miss there is none to find.
            np.isnan(share) or share >= _MET[name]
            for name, share in zip(TARGETS, shares, strict=True)
        )
        words = " / ".join("-" if np.isnan(one) else _percent(one) for one in shares)
        return f"**{words}**" if is_met else words

    losses, rows = _pivot(cells, "loss", text)
    heads = [
        "first peer / misses found / consistent",
        *(f"loss {x:.0%}" for x in losses),
    ]
    yield from _markdown(
        heads, ([label, *(row[loss] for loss in losses)] for label, row in rows.items())
    )


def _false(read: Read) -> Iterator[str]:
    _, cells = read("false")
    losses, rows = _pivot(
        cells, "loss", lambda cell: _with(cell.figures["exposed"], _percent)
    )
    heads = ["messages exposed, percent", *(f"loss {loss:.0%}" for loss in losses)]
    yield from _markdown(
        heads, ([label, *(row[loss] for loss in losses)] for label, row in rows.items())
    )
    chosen = [
        cell
        for cell in cells
        if cell.values["loss"] == max(losses) and cell.values["participants"] < 5
    ]
    heads = [
        "ids in the filters",
        "false positives, percent",
        *(
            f"`{cell.values['profile']}`, {cell.values['participants']} participants, "
            f"loss {cell.values['loss']:.0%}"
            for cell in chosen
        ),
    ]
    rates = false_positive_rates(np.array(_FILTER_IDS, np.float64), DEFAULT_PARAMETERS)

    def row(ids: int, rate: float) -> Iterator[str]:
        yield number(ids)
        yield f"{100 * rate:.2g}"
        for cell in chosen:
            rolls = cell.values["profile"] == "nim_sds" and ids > _NIM_MOST_IDS
            share = cell.figures["exposed"].value * rate
            yield "rolls over" if rolls else f"{1e6 * share:,.2g}"

    yield from _markdown(
        heads,
        (list(row(ids, rate)) for ids, rate in zip(_FILTER_IDS, rates, strict=True)),
    )


def _cost(read: Read) -> Iterator[str]:
    _, cells = read("cost")
    sizes, rows = _pivot(
        cells,
        "causal_history",
        lambda cell: _with(cell.figures["bytes_per_message"], byte_size),
    )
    heads = ["bytes of a message", *(f"history {size}" for size in sizes)]
    yield from _markdown(
        heads, ([label, *(row[size] for size in sizes)] for label, row in rows.items())
    )


TABLES: Final = {
    "delivery": Table("delivery against loss", ["delivery", "large"], _delivery),
    "targets": Table("the targets of the field", ["targets"], _targets),
    "false": Table("false acknowledgements", ["false"], _false),
    "cost": Table("the cost of a message", ["cost"], _cost),
}


def block(name: str, sweeps: Path) -> str:
    """Return a table's part of the page, from finished sweeps.

    Args:
        name: Name of the table.
        sweeps: Directory of the sweeps' directories.
    """
    table = TABLES[name]

    def read(sweep: str) -> tuple[Grid, list[Cell]]:
        results = read_sweep(sweeps / sweep)
        cells = results.grid.summary(results.outcomes, Outcome._fields)
        return results.grid, list(cells)

    about = [
        f"`{sweep}.toml`: {_about(read(sweep)[0], read_toml(_file(sweep))['base'])}"
        for sweep in table.sweeps
    ]
    part = table.part(name)
    return "\n".join(
        [
            part.begin,
            "",
            *"  \n".join(about).split("\n"),
            "",
            *table.lines(read),
            part.end,
        ]
    )


def _file(sweep: str) -> Path:
    return GRIDS / f"{sweep}.toml"


@click.command(help=__doc__)
@click.argument("name", type=click.Choice(list(TABLES)))
@click.option(
    "--sweeps",
    type=click.Path(path_type=Path),
    default=Path("build/planning"),
    help="Directory of the sweeps.",
)
def main(name: str, sweeps: Path) -> None:
    """Sweep and write the table."""
    for sweep in TABLES[name].sweeps:
        run_sweep(_file(sweep), sweeps / sweep, SessionSettings(shuffle_partitions=1))
    TABLES[name].part(name).write(block(name, sweeps))


if __name__ == "__main__":
    main()
