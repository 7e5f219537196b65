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
"""Maximum number of runs in a grid. At six seconds a run, two cores need about 8 h."""

_Lists = dict[str, tuple[Any, ...]]


class _GridTable(Table, frozen=True, kw_only=True):
    base: dict[str, Any] = msgspec.field(default_factory=dict)
    grid: _Lists | Annotated[tuple[_Lists, ...], Meta(min_length=1)]
    seeds: Annotated[int, Meta(ge=1, le=MAX_RUNS)]
    receptions: Annotated[int, Meta(ge=1, le=MAX_RECEPTIONS)] = RECEPTIONS
    target_s: PositiveSeconds = 5.0


class Run(NamedTuple):
    """One simulation. `experiment.run` explains the attributes except `number`."""

    number: int
    plan: ChannelPlan
    seed: int
    receptions: int
    target_s: float

    @property
    def size(self) -> int:
        """Estimated duration, relative to other runs. Long runs are started first."""
        return self.plan.participants


class Cell(NamedTuple):
    """Results of one plan, from its finished runs."""

    values: dict[str, Any]
    runs: int
    figures: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class Grid:
    """Plans. Each plan is simulated once with each seed.

    Attributes:
        keys: Settings that differ between plans.
        cells: The plans, without repetitions.
        seeds: Number of seeds. The seeds are 1, 2 and so on.
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

        `base` has the settings that all plans share. `grid` maps settings to lists of
        values; each combination is a plan. `grid` can also be a list of such mappings;
        the grid then has the plans of all of them.

        Raises:
            TableError: The mapping is not a grid, the grid has more than `MAX_RUNS`
                runs, or a run is too large.
        """
        table = read(mapping, _GridTable)
        lists = (table.grid,) if isinstance(table.grid, dict) else table.grid
        for key in (key for one in lists for key, values in one.items() if not values):
            path = f"grid.{key}"
            raise TableError(path, "is an empty list: give at least one value")
        runs = table.seeds * sum(math.prod(map(len, one.values())) for one in lists)
        if runs > MAX_RUNS:
            problem = f"needs {runs:,} runs, but at most {MAX_RUNS:,} are allowed"
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
        """Yield all runs in order of plan and seed. Run n has plan n // `seeds`."""
        pairs = product(self.cells, range(1, self.seeds + 1))
        for number, (plan, seed) in enumerate(pairs):
            yield Run(number, plan, seed, self.receptions, self.target_s)

    def summary(
        self, outcomes: Mapping[int, Outcome], figures: Sequence[str]
    ) -> Iterator[Cell]:
        """Yield each plan's results, in the order of the plans.

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
