"""How old is what `/metrics` does not include yet, at several rates?"""

from __future__ import annotations

import time

from benchmarks.context import Context
from benchmarks.data import LIVE_BIG, SMALL, records_of
from benchmarks.live import FLAGS, follow
from benchmarks.processes import monitor
from benchmarks.topics import Feed, at_rate

ROW = "age on /metrics"
_WARM_UP_S = 15


def age(context: Context) -> None:
    """Play 50 and 500 big frames a second in 40 channels, and 2,000 small ones."""
    seconds = 20 if context.is_quick else 30
    big = LIVE_BIG.shortened(40) if context.is_quick else LIVE_BIG
    small = SMALL.shortened(40) if context.is_quick else SMALL
    plays = (
        ("50 big frames/s, 40 channels", big, 50),
        ("500 big frames/s, 40 channels", big, 500),
        (f"2,000 small frames/s, {small.channels:,} channels", small, 2_000),
    )
    for what, shape, per_second in plays:
        kafka = context.empty(f"age-{per_second}")
        feed = Feed(kafka, at_rate(records_of(shape), per_second))
        with monitor(kafka, *FLAGS) as job:
            job.follow()
            with feed.running():
                job.wait_for_frames(1)
                time.sleep(_WARM_UP_S)
                seen = follow(job, feed, seconds)
        seen.say_ages(context, ROW, what)
        seen.say_costs(context, ROW, what)
