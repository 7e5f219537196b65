"""No frame costs more than twenty normal ones of its size.

Costs are processor time of reader and view, each frame a batch of its own, and are
compared with those of a healthy channel in the same process.
"""

from __future__ import annotations

import pytest

from tests.support.hostile import shapes
from tests.support.hostile.cost import cost
from tests.support.hostile.plays import SHAPES, times_normal
from tests.support.hostile.shapes import Play

pytestmark = pytest.mark.long

TIMES_NORMAL = 20
"""The promise of docs/guarantees.md."""


@pytest.mark.parametrize("shape", SHAPES)
def test_frame_made_to_hurt_costs_at_most_twenty_normal_ones(shape: str) -> None:
    """Compared with a normal frame that is no longer than it."""
    assert times_normal(SHAPES[shape]()) <= TIMES_NORMAL


def test_last_of_many_hostile_frames_costs_no_more_than_the_first() -> None:
    """Nothing grows with what was forgotten: evicting is linear."""
    play = shapes.new_history(500)
    early = Play(play.prepare[:41], play.prepare[41:61])
    assert cost(play) < 3 * cost(early)
