"""Progress of a job in the log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sds_core.observer.protocols import ROOT_KIND
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from streaming.cli.log import FIGURES, logger

Display = Callable[[Snapshot], None]
"""Displays the progress of a job; called about once a second."""

_LOG_EVERY_S = 10.0


@contextmanager
def logged_progress(
    line: Callable[[Snapshot], str], monotonic_s: Callable[[], float] = time.monotonic
) -> Iterator[Display]:
    """Log the progress every 10 s and at the block's end; a JSON log adds figures."""
    logged_s = float("-inf")
    pending: Snapshot | None = None

    def display(snapshot: Snapshot) -> None:
        nonlocal logged_s, pending
        pending = snapshot
        if monotonic_s() - logged_s >= _LOG_EVERY_S:
            logged_s, pending = monotonic_s(), None
            _log(line(snapshot), snapshot)

    try:
        yield display
    finally:
        if pending is not None:
            _log(line(pending), pending)


def _log(message: str, snapshot: Snapshot) -> None:
    channels = snapshot.views[ROOT_KIND.prefix].totals
    verdicts = Counter(totals.verdict for totals in channels.values())
    figures = {
        "records": snapshot.job.records,
        "records_behind": snapshot.job.records_behind,
        "lag_seconds": snapshot.job.event_time_lag_seconds,
        "channels": {verdict.value: verdicts[verdict] for verdict in Verdict},
    }
    logger.info("%s", message, extra={FIGURES: figures})
