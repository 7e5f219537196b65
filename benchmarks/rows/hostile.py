"""Hostile records, against genuine frames of their size."""

from __future__ import annotations

from benchmarks.context import Context
from benchmarks.hostile_cost import times_genuine
from tests.support.hostile.combined import SHAPES, TRIPLE, Names, pairs

ROW = "a hostile record"

_DEAREST = 8
"""Shapes that are measured in pairs too; `python -m benchmarks.hostile_cost` measures
every pair."""


def hostile(context: Context) -> None:
    """Measure every shape, and pairs of the dearest ones."""
    costs = {name: _say(context, (name,)) for name in SHAPES}
    dearest = set(sorted(costs, key=costs.__getitem__)[-_DEAREST:])
    for names in [TRIPLE, *pairs()]:
        if names == TRIPLE or dearest.issuperset(names):
            _say(context, names)


def _say(context: Context, names: Names) -> float:
    value = times_genuine(names)
    context.say(ROW, " + ".join(names), "multiples of a normal frame's CPU time", value)
    return value
