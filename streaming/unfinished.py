"""A batch that cannot be processed is planned again in smaller parts.

Spark repeats a batch that was planned and not committed, as it was planned. If the
machine cannot process it, because its memory is too small, say, every start would fail
in the same way. So a batch that was repeated once in vain is planned again, with an
eighth of its records, which loses nothing: nothing of it was committed. The batches
after it grow again.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import msgspec

from sds_core.text import counted
from streaming.batch_log import BatchLog
from streaming.settings import SlowStart

_log = logging.getLogger("sds-monitor")

_PARTS = 8
"""A batch that is planned again has this part of its records. Few starts lead to one
that can be processed, also if each fails after a minute."""


class Unfinished(msgspec.Struct, frozen=True):
    """The batch that the newest start found planned and not committed.

    Attributes:
        batch: Its number.
        starts: Number of starts in a row that found it so.
        slow_start: How batches are planned since one was planned again; None if none
            was.
    """

    batch: int
    starts: int
    slow_start: SlowStart | None = None


def next_unfinished(log: BatchLog, before: Unfinished | None) -> Unfinished | None:
    """Return what a start has to know of a batch that was not committed.

    Args:
        log: Newest batches of the checkpoint.
        before: What the start before has stored.
    """
    if log.planned is None or log.planned == log.committed:
        return before
    is_same = before is not None and before.batch == log.planned
    starts = 1 + (before.starts if before is not None and is_same else 0)
    slow_start = None if before is None else before.slow_start
    if starts > 1 and log.planned_records > 1:
        slow_start = SlowStart(
            0 if log.position is None else log.position.records,
            log.planned_records // _PARTS or 1,
            log.begin,
        )
    return Unfinished(log.planned, starts, slow_start)


def plan_again(checkpoint: Path, log: BatchLog, unfinished: Unfinished | None) -> None:
    """Remove the plan of a batch that was repeated in vain, if it can be made smaller.

    Args:
        checkpoint: Directory of the checkpoint, locked by the caller.
        log: Its newest batches.
        unfinished: What `next_unfinished` returned for them; it is stored already.
    """
    if log.planned == log.committed or unfinished is None or unfinished.starts < 2:
        return
    if log.planned_records < 2 or unfinished.slow_start is None:
        return
    if log.committed is None:
        # State that belongs to no batch would be damage to the next start.
        shutil.rmtree(checkpoint / "state", ignore_errors=True)
    (checkpoint / "offsets" / str(log.planned)).unlink()
    _log.warning(
        "batch %d with %s was begun %d times and never finished: it is planned again "
        "with %s at most",
        log.planned,
        counted(log.planned_records, "record"),
        unfinished.starts,
        counted(unfinished.slow_start.rows, "record"),
    )
