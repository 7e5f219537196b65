"""The plays of hostile frames that are measured, and what a normal frame costs."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.hostile import cost, shapes
from tests.support.hostile.shapes import Play

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
    "a segment of a new payload": lambda: shapes.new_segments(64),
    "a long segment of a new payload": lambda: shapes.new_segments(192_000),
}


def times_normal(play: Play) -> float:
    """How many times as much as a normal frame of its size a frame costs."""
    size_bytes = max(len(frame.value) for frame in play.hurt)
    return cost.times(play, shapes.normal(normal_size(size_bytes)))


def normal_size(size_bytes: int) -> int:
    """The greatest measured size that is not above a frame's."""
    sizes = (588, shapes.FILTER_BYTES, 22_000, 150_000, 1_000_000, 3_900_000)
    return max(size for size in sizes if size <= max(size_bytes, sizes[0]))
