"""A grid of planned channels: the simulations of `plan sweep`, and their results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from sds_core.planning.channel import ChannelPlan
from sds_core.planning.estimates import Estimate, estimated
from sds_core.planning.experiment import MAX_RECEPTIONS, RECEPTIONS, Outcome, check_size
from sds_core.reading import Table, TableError, read
from sds_core.simulation.scenario import PositiveSeconds

MAX_RUNS: Final = 10_000
"""Maximum number of runs in a grid.

If each run takes six seconds, two cores need about 8 h for this number of runs.
"""

_Lists = dict[str, tuple[Any, ...]]


class _GridTable(Table, frozen=True, kw_only=True):
    base: dict[str, Any] = msgspec.field(default_factory=dict)
    grid: _Lists | Annotated[tuple[_Lists, ...], Meta(min_length=1)]
    seeds: Annotated[int, Meta(ge=1, le=MAX_RUNS)]
    receptions: Annotated[int, Meta(ge=1, le=MAX_RECEPTIONS)] = RECEPTIONS
    target_s: PositiveSeconds = 5.0


class Run(NamedTuple):
    """One simulation of a grid.

    Attributes:
        number: Position of the run in `Grid.runs`.
        plan, seed, receptions, target_s: Arguments of `experiment.run`.
    """

    number: int
    plan: ChannelPlan
    seed: int
    receptions: int
    target_s: float

    @property
    def size(self) -> int:
        """Rough measure of the run's duration: the longest runs are started first."""
        return self.plan.participants


class Cell(NamedTuple):
    """Results of one plan of a grid, computed from the plan's finished runs.

    Attributes:
        values: Values of `Grid.keys` in the plan.
        runs: Number of finished runs.
        figures: Means over these runs, by the names of the figures.
    """

    values: dict[str, Any]
    runs: int
    figures: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class Grid:
    """Plans to simulate. Each plan has one run for each seed.

    Attributes:
        keys: Settings that differ between plans.
        cells: The plans; each plan occurs only once.
        seeds: Number of seeds. The seeds are the integers from 1 to this number.
        receptions, target_s: See `experiment.run`.
    """

    keys: tuple[str, ...]
    cells: tuple[ChannelPlan, ...]
    seeds: int
    receptions: int
    target_s: float

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Grid:
        """Read a grid from a mapping.

        The key `base` has the settings that all plans share. The key `grid` maps each
        other setting to a list of values, and each combination of values is a plan. If
        `grid` is a list of such mappings, each of these mappings adds its plans.

        Raises:
            TableError: The mapping is not a valid grid, the grid has more than
                `MAX_RUNS` runs, or a plan needs too large a run; see `check_size`.
        """
        table = read(mapping, _GridTable)
        lists = (table.grid,) if isinstance(table.grid, dict) else table.grid
        for key in (key for one in lists for key, values in one.items() if not values):
            path = f"grid.{key}"
            raise TableError(path, "is an empty list: give at least one value")
        runs = table.seeds * sum(math.prod(map(len, one.values())) for one in lists)
        if runs > MAX_RUNS:
            problem = (
                f"needs {runs:,} runs, but at most {MAX_RUNS:,} are allowed: give "
                "fewer values or seeds"
            )
            raise TableError("grid", problem)
        cells = {
            read(table.base | dict(zip(one, values, strict=True)), ChannelPlan): None
            for one in lists
            for values in product(*one.values())
        }
        for cell in cells:
            check_size(cell)
        keys = dict.fromkeys(key for one in lists for key in one)
        return cls(
            tuple(keys), tuple(cells), table.seeds, table.receptions, table.target_s
        )

    def runs(self) -> Iterator[Run]:
        """Yield all runs in the order of their plans, then of their seeds.

        The run with number n simulates the plan ``cells[n // seeds]``.
        """
        pairs = product(self.cells, range(1, self.seeds + 1))
        for number, (plan, seed) in enumerate(pairs):
            yield Run(number, plan, seed, self.receptions, self.target_s)

    def summary(
        self, outcomes: Mapping[int, Outcome], figures: Sequence[str]
    ) -> Iterator[Cell]:
        """Yield the results of each plan, in the order of `cells`.

        Raises:
            ModelMissing: scipy is not installed.
        """
        for place, plan in enumerate(self.cells):
            first = place * self.seeds
            numbers = range(first, first + self.seeds)
            done = [outcomes[number] for number in numbers if number in outcomes]
            means = {
                name: estimated([getattr(one, name) for one in done])
                for name in figures
            }
            yield Cell({key: plan.setting(key) for key in self.keys}, len(done), means)
