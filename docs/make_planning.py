"""Makes the tables of simulated channels in docs/planning.md.

    python -m docs.make_planning delivery
    python -m docs.make_planning targets
    python -m docs.make_planning false
    python -m docs.make_planning cost
    python -m docs.make_planning large
    python -m docs.make_planning what-if

The last one makes the sample of what-if. The others sweep their grid in `docs/grids`,
continue where they were ended, and draw the charts of their table; with `--charts` they
only draw, from the page. `delivery` takes ten minutes of CPU time, `targets` four,
`large` six, the others two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import click
import numpy as np
from click.testing import CliRunner

from connectors.sweep_results import read_sweep
from connectors.toml_file import read_toml
from docs.page_part import PagePart, table
from docs.planning_charts import drawn
from sds_core.planning.closed_forms import false_positive_rates
from sds_core.planning.experiment import Outcome
from sds_core.planning.grid import Cell, Grid
from sds_core.planning.words import with_interval
from sds_core.text import byte_size, counted, number
from sds_core.wire import DEFAULT_PARAMETERS
from streaming.cli import group
from streaming.cli.actions.plan_sweep import run_sweep
from streaming.settings import SessionSettings

GRIDS: Final = Path(__file__).with_name("grids")
_MET: Final = {
    "first_peer_in_time": 0.99,
    "misses_found_in_time": 0.9,
    "consistent_in_time": 0.99,
}
"""Shares from which a target counts as met; the targets name only that of misses."""

_FILTER_IDS: Final = (2_500, 5_000, 8_000, 10_000, 12_000, 15_000, 20_000, 30_000)
_NIM_MOST_IDS: Final = 12_000
"""A filter of nim-sds has no more ids: it rolls over."""
SAMPLE: Final = PagePart("planning.md", "make_planning what-if", "the sample")
_SAMPLE_CHANGES: Final = "--set participants=2x --set messages_per_day=2x"


class Table(NamedTuple):
    """A table of the page.

    Attributes:
        content: What it has, for its last mark.
        lines: Makes its lines of the cells of its grid, which have all figures.
    """

    content: str
    lines: Callable[[Grid, list[Cell]], Iterable[str]]

    def part(self, name: str) -> PagePart:
        """Return its part of the page."""
        return PagePart("planning.md", f"make_planning {name}", self.content)


def _pivot(
    heading: str,
    cells: Iterable[Cell],
    column: str,
    text: Callable[[Cell], str],
    head: Callable[[Any], str],
    label: Callable[[Mapping[str, Any]], str] = lambda values: _settings(values),
) -> Iterator[str]:
    """Yield a table with a column for each value of one setting.

    Args:
        heading: Head of the first column.
        cells: The cells.
        column: Setting of the columns.
        text: Makes the content of a cell.
        head: Makes the head of a column of its value.
        label: Makes the head of a row of the other settings.
    """
    rows: dict[str, dict[Any, str]] = {}
    for cell in cells:
        others = {key: one for key, one in cell.values.items() if key != column}
        rows.setdefault(label(others), {})[cell.values[column]] = text(cell)
    values = sorted({value for row in rows.values() for value in row})
    yield from table(
        [heading, *map(head, values)],
        (
            [name, *(row.get(value, "") for value in values)]
            for name, row in rows.items()
        ),
    )
    yield ""


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}` {_plain(value)}" for key, value in values.items())


def _loss(loss: float) -> str:
    return f"loss {100 * loss:g} %"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else f"{value:,g}"


def _of(figure: str, text: Callable[[float], str]) -> Callable[[Cell], str]:
    return lambda cell: _unit_once(with_interval(cell.figures[figure], text))


def _unit_once(text: str) -> str:
    """Return a mean and its interval with their unit behind both, if they share it."""
    return re.sub(r"(\S+) (\w+) ± (\S+) \2", r"\1 ± \3 \2", text)


def _percent(share: float) -> str:
    return f"{100 * share:.4g}"


_DELIVERY: Final = (
    ("Delivered in the end, percent", "eventual", _percent),
    ("Time to recover, 95th percentile, s", "recovery_p95_s", "{:.3g}".format),
    ("Bytes a day", "bytes_per_day", byte_size),
)


def _delivery(grid: Grid, cells: list[Cell]) -> Iterator[str]:
    usual = grid.cells[0]

    def label(values: Mapping[str, Any]) -> str:
        changed = {k: one for k, one in values.items() if one != usual.setting(k)}
        return _settings(changed) or "unchanged"

    for heading, figure, text in _DELIVERY:
        yield from _pivot(heading, cells, "loss", _of(figure, text), _loss, label)


def _large(_: Grid, cells: list[Cell]) -> Iterator[str]:
    for heading, figure, text in _DELIVERY:
        yield from _pivot(heading, cells, "loss", _of(figure, text), _loss)


def _targets(_: Grid, cells: list[Cell]) -> Iterator[str]:
    def text(cell: Cell) -> str:
        shares = {name: cell.figures[name].value for name in _MET}
        # Without a miss there is none to find.
        is_met = all(np.isnan(shares[x]) or shares[x] >= _MET[x] for x in shares)
        words = " / ".join(with_interval(cell.figures[x], _percent) for x in shares)
        return f"**{words}**" if is_met else words

    heading = "first peer reached / misses found / all consistent, percent"
    yield from _pivot(heading, cells, "loss", text, _loss)
    figure = _of("bytes_per_day", byte_size)
    yield from _pivot("bytes a day", cells, "loss", figure, _loss)


def _false(_: Grid, cells: list[Cell]) -> Iterator[str]:
    text = _of("exposed", _percent)
    yield from _pivot("messages exposed, percent", cells, "loss", text, _loss)
    most = max(cell.values["loss"] for cell in cells)
    chosen = [
        cell
        for cell in cells
        if cell.values["loss"] == most and cell.values["participants"] < 5
    ]
    heads = ["ids in the filters", "false positives, percent"]
    heads += [_settings(cell.values) for cell in chosen]
    rates = false_positive_rates(np.array(_FILTER_IDS, np.float64), DEFAULT_PARAMETERS)

    def row(ids: int, rate: float) -> Iterator[str]:
        yield number(ids)
        yield f"{100 * rate:.2g}"
        for cell in chosen:
            rolls = cell.values["profile"] == "nim_sds" and ids > _NIM_MOST_IDS
            share = cell.figures["exposed"].value * rate
            yield "rolls over" if rolls else f"{float(f'{1e6 * share:.2g}'):,.12g}"

    yield from table(
        heads, (row(ids, rate) for ids, rate in zip(_FILTER_IDS, rates, strict=True))
    )
    yield ""


def _cost(_: Grid, cells: list[Cell]) -> Iterator[str]:
    text = _of("bytes_per_message", byte_size)
    heading = "bytes of a message"
    yield from _pivot(heading, cells, "causal_history", text, "history {}".format)


TABLES: Final = {
    "delivery": Table("delivery against loss", _delivery),
    "large": Table("large groups", _large),
    "targets": Table("the targets of the field", _targets),
    "false": Table("false acknowledgements", _false),
    "cost": Table("the cost of a message", _cost),
}


def block(name: str, sweeps: Path) -> str:
    """Return a table's part of the page, from a finished sweep.

    Args:
        name: Name of the table and its grid.
        sweeps: Directory of the sweeps' directories.
    """
    part, results = TABLES[name].part(name), read_sweep(sweeps / name)
    base, seeds = read_toml(_file(name))["base"], results.grid.seeds
    cells = list(results.grid.summary(results.outcomes, Outcome._fields))
    about = f"`docs/grids/{name}.toml`: {_settings(base)}; {counted(seeds, 'seed')}."
    table = TABLES[name].lines(results.grid, cells)
    return "\n".join([part.begin, "", about, "", *table, part.end])


_SAMPLE_ROWS = 7
"""Lines of the second table that the sample shows."""


def sample() -> str:
    """Return the sample of `plan what-if`: its plan, which the page has, and output."""
    page = SAMPLE.path.read_text(encoding="utf-8")
    plan = re.findall(r"```toml\n(participants.*?)```", page, re.DOTALL)[0]
    with TemporaryDirectory() as directory:
        path = Path(directory) / "channel.toml"
        path.write_text(plan, encoding="utf-8")
        line = ["plan", "what-if", "--plan", str(path), *_SAMPLE_CHANGES.split()]
        result = CliRunner().invoke(group, line, catch_exceptions=False)
    printed = [text.rstrip() for text in result.stdout.splitlines()]
    (change,) = (at for at, text in enumerate(printed) if text.startswith("change "))
    # The changes have the figures of the table before.
    printed[change + _SAMPLE_ROWS : -1] = ["  ..."]
    lines = "\n".join(printed)
    words = f"With this file, `{_SAMPLE_CHANGES}` prints:"
    return f"{SAMPLE.begin}\n\n{words}\n\n```\n{lines}\n```\n\n{SAMPLE.end}"


def _file(name: str) -> Path:
    return GRIDS / f"{name}.toml"


@click.command(help=__doc__)
@click.argument("name", type=click.Choice([*TABLES, "what-if"]))
@click.option(
    "--sweeps",
    type=click.Path(path_type=Path),
    default=Path("build/planning"),
    help="Directory of the sweeps.",
)
@click.option("--charts", is_flag=True, help="Only draw the charts.")
def main(name: str, sweeps: Path, charts: bool) -> None:
    """Sweep, write the table and draw its charts."""
    if name == "what-if":
        SAMPLE.write(sample())
        return
    part = TABLES[name].part(name)
    if not charts:
        run_sweep(_file(name), sweeps / name, SessionSettings(shuffle_partitions=1))
        part.write(block(name, sweeps))
    for path, picture in drawn(name, part.current()):
        path.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
