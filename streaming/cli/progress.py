"""How a job stands, in the log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from streaming.cli.log import FIGURES, logger

Show = Callable[[Snapshot], None]
"""Shows how a job stands; to be called about once a second."""

_TELL_EVERY_S = 10.0


@contextmanager
def progress_lines(
    line: Callable[[Snapshot], str], monotonic_s: Callable[[], float] = time.monotonic
) -> Iterator[Show]:
    """Tells how far a job is: now and then, and at the end of the block.

    In JSON its figures stand beside the message.

    Args:
        line: A snapshot in words.
        monotonic_s: The clock by which some seconds have passed.
    """
    told_s = float("-inf")
    untold: Snapshot | None = None

    def show(snapshot: Snapshot) -> None:
        nonlocal told_s, untold
        untold = snapshot
        if monotonic_s() - told_s >= _TELL_EVERY_S:
            told_s, untold = monotonic_s(), None
            _tell(line(snapshot), snapshot)

    try:
        yield show
    finally:
        if untold is not None:
            _tell(line(untold), untold)


def _tell(message: str, snapshot: Snapshot) -> None:
    verdicts = Counter(totals.verdict for totals in snapshot.channels.values())
    figures = {
        "records": snapshot.job.records,
        "records_behind": snapshot.job.records_behind,
        "lag_seconds": snapshot.job.event_time_lag_seconds,
        "channels": {verdict.value: verdicts[verdict] for verdict in Verdict},
    }
    logger.info("%s", message, extra={FIGURES: figures})
