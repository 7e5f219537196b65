"""Checks that rows of two jobs do not mix in a history."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from connectors.history.errors import NoHistory
from connectors.history.query import newest_minute_ms
from connectors.history.schema import tables_of
from connectors.kafka.offsets import TopicOffsets
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.text import iso_time
from streaming.batch_log import read_batch_log
from streaming.damage import DamagedCheckpoint
from streaming.settings import EARLIEST, LATEST, JobSettings


def find_mixed_rows(settings: JobSettings) -> Iterator[str]:
    """Yield a finding if a new checkpoint would read records that its history covers.

    Minutes in which only the earlier job found a change keep the row of the earlier
    job, so its totals would stand between the totals of the new job.

    Raises:
        connectors.history.errors.DamagedHistory: A file of the history is damaged.
        connectors.kafka.settings.KafkaUnreachable: No broker answered.
    """
    history, source = settings.history, settings.source
    try:
        is_new = read_batch_log(settings.checkpoint).planned is None
    except DamagedCheckpoint:
        # `find_in_checkpoint` reports the damage.
        return
    if history is None or not is_new or source.start == LATEST:
        return
    newest_ms = _newest_minute_ms(history.directory)
    if newest_ms is None:
        return
    since_ms = 0 if source.start == EARLIEST else int(source.start)
    with closing(TopicOffsets(source.kafka)) as offsets:
        begins = offsets.first_at_or_after(offsets.partitions(), since_ms)
    first_ms = min((at.timestamp_ms for at in begins.values()), default=sys.maxsize)
    if newest_ms > first_ms - MINUTE_MS:
        yield (
            f"history {history.directory} has minutes up to {iso_time(newest_ms)}, and "
            f"the new checkpoint begins with records of {iso_time(first_ms)}, so rows "
            "of two jobs would mix: give another directory as --history"
        )


def _newest_minute_ms(directory: Path) -> int | None:
    tables = [tables_of(kind) for kind in kinds_of(PROTOCOLS) if kind.has_findings]
    try:
        found = [newest_minute_ms(directory, sys.maxsize, one) for one in tables]
    except NoHistory:
        return None
    return max((one for one in found if one is not None), default=None)
