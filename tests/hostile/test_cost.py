"""No frame costs more than twenty normal ones of its size.

Costs are processor time of reader and view, each frame a batch of its own, and are
compared with those of a healthy channel in the same process.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.hostile import shapes
from tests.support.hostile.cost import cost, times_normal
from tests.support.hostile.shapes import Play

pytestmark = pytest.mark.slow

TIMES_NORMAL = 20
"""The promise of docs/guarantees.md."""

MESSAGES = 5_000
"""More than any limit on what one frame is searched for."""

SHAPES: dict[str, Callable[[], Play]] = {
    "a history of new ids": lambda: shapes.new_history(12_500),
    "a history as long as is read": lambda: shapes.new_history(500),
    "a history of new senders": lambda: shapes.new_history_of_new_senders(500),
    "requests for new ids": lambda: shapes.new_requests(16_000),
    "an empty filter": lambda: shapes.empty_filters(MESSAGES),
    "a filter of another size": lambda: shapes.changing_filters(MESSAGES),
    "a half full filter of another size": lambda: shapes.half_full_filters(MESSAGES),
    "many participants with empty filters": lambda: shapes.many_participants(
        3_000, MESSAGES
    ),
    "messages lost to many": lambda: shapes.lost_to_all(120, 1_000),
    "a filter while many gaps are open": lambda: shapes.open_gaps(20_000),
    "a long filter of one bit": lambda: shapes.one_bit_filter(3_900_000),
    "a response in a channel of many": lambda: shapes.answered_requests(5_000),
}


def normal_size(size_bytes: int) -> int:
    """The greatest measured size that is not above a frame's."""
    sizes = (588, shapes.FILTER_BYTES, 22_000, 150_000, 1_000_000, 3_900_000)
    return max(size for size in sizes if size <= max(size_bytes, sizes[0]))


@pytest.mark.parametrize("shape", SHAPES)
def test_frame_made_to_hurt_costs_at_most_twenty_normal_ones(shape: str) -> None:
    """Compared with a normal frame that is no longer than it."""
    play = SHAPES[shape]()
    size_bytes = max(len(frame.value) for frame in play.hurt)
    normal = shapes.normal(normal_size(size_bytes))
    assert times_normal(play, normal) <= TIMES_NORMAL


def test_last_of_many_hostile_frames_costs_no_more_than_the_first() -> None:
    """Nothing grows with what was forgotten: evicting is linear."""
    play = shapes.new_history(500)
    early = Play(play.prepare[:41], play.prepare[41:61])
    assert cost(play) < 3 * cost(early)
