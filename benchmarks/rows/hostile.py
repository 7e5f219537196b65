"""Frames made to hurt, against normal ones of their size."""

from __future__ import annotations

from benchmarks.context import Context
from tests.support.hostile.plays import SHAPES, times_normal

ROW = "a frame made to hurt"


def hostile(context: Context) -> None:
    """Measure every shape of the hostile-traffic suite."""
    for name, play in SHAPES.items():
        context.say(ROW, name, "times a normal frame", times_normal(play()))
