"""Divides a batch into smaller batches if it cannot be processed.

If a batch was planned but not committed, Spark repeats it at the next start, exactly as
planned. If this repetition fails too, every further start would fail in the same way.
The job therefore plans a new batch with an eighth of the records. Nothing of the failed
batch was committed, so nothing is lost.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import msgspec

from sds_core.text import counted
from streaming.batch_log import BatchLog
from streaming.settings import Part, Parts

_log = logging.getLogger("sds-monitor")

_PARTS = 8
"""If a batch is planned again, its number of records is divided by this number."""


class Unfinished(msgspec.Struct, frozen=True):
    """A batch that was planned but not committed.

    `starts` is how many consecutive starts of the job have found the batch uncommitted.
    """

    batch: int
    starts: int
    parts: Parts | None = None


def next_unfinished(log: BatchLog, before: Unfinished | None) -> Unfinished | None:
    """Return the batch that this start of the job finds uncommitted.

    `before` is the result that the previous start stored. If all planned batches are
    committed, `before` is returned.
    """
    if log.planned is None or log.planned == log.committed:
        return before
    starts, parts = 1, None
    if before is not None:
        parts = before.parts
        if before.batch == log.planned:
            starts += before.starts
    if starts > 1 and log.planned_records > 1:
        read = 0 if log.position is None else log.position.records
        known = () if parts is None else parts.parts
        part = Part(read + log.planned_records, log.planned_records // _PARTS or 1)
        parts = Parts((*(one for one in known if one.until > read), part), log.begin)
    return Unfinished(log.planned, starts, parts)


def plan_again(checkpoint: Path, log: BatchLog, unfinished: Unfinished | None) -> None:
    """Remove the plan of a batch that failed twice, so that a smaller one is planned.

    If the batch has only one record, the plan stays. The caller must have locked the
    checkpoint, and must have stored the result of `next_unfinished`.
    """
    if log.planned == log.committed or unfinished is None or unfinished.starts < 2:
        return
    if log.planned_records < 2 or unfinished.parts is None:
        return
    if log.committed is None:
        # The state must be removed before the plan. If the plan were removed first, and
        # the process were then killed, a state without a planned batch would remain.
        # Such a state counts as damage.
        shutil.rmtree(checkpoint / "state", ignore_errors=True)
    (checkpoint / "offsets" / str(log.planned)).unlink()
    _log.warning(
        "batch %d (%s) was started %d times and never finished: the job plans the "
        "batch again with at most %s",
        log.planned,
        counted(log.planned_records, "record"),
        unfinished.starts,
        counted(unfinished.parts.parts[-1].rows, "record"),
    )
