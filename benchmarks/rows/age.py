"""How old is what `/metrics` does not include yet, at several rates?"""

from __future__ import annotations

import time

from benchmarks.context import Context
from benchmarks.data import LIVE_BIG, SMALL, Shape, mix, records_of
from benchmarks.live import COSTS_S, FLAGS, say_ages, say_costs
from benchmarks.processes import monitor
from benchmarks.topics import Feed, at_rate

ROW = "age on /metrics"
MIX = "what operators have"
_WARM_UP_S = 15
_RATES = (10, 100, 1_000)


def age(context: Context) -> None:
    """Play 500 big frames a second in 40 channels, and 2,000 small ones."""
    channels = SMALL.channels
    _play(context, ROW, "500 big frames/s, 40 channels", 500, LIVE_BIG)
    what = f"2,000 small frames/s, {channels:,} channels"
    _play(context, ROW, what, 2_000, SMALL)


def age_of_mix(context: Context) -> None:
    """Play what operators have, at several rates."""
    for per_second in _RATES:
        shapes = mix(per_second)
        channels = sum(shape.channels for shape in shapes)
        what = f"{per_second:,} messages/s, {channels:,} channels"
        _play(context, MIX, what, per_second, *shapes)


def _play(
    context: Context, row: str, what: str, per_second: int, *shapes: Shape
) -> None:
    kafka = context.empty(f"age-{per_second}")
    feed = Feed(kafka, at_rate(records_of(*shapes), per_second))
    with monitor(kafka, *FLAGS) as job:
        job.follow()
        with feed.running():
            job.wait_for_frames(1)
            time.sleep(_WARM_UP_S)
            seconds = 15 if context.is_quick else 30
            say_ages(context, row, what, job, feed, seconds=seconds)
            say_costs(context, row, what, job, feed, seconds=COSTS_S)
