"""The figures of the groups of a view, minute by minute."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.mvds.group_events import MvdsMinute
from sds_core.observer.mvds.groups import Groups
from sds_core.observer.mvds.totals import GroupTotals, as_of
from sds_core.observer.mvds.window import Window

_ENCODER = msgspec.msgpack.Encoder()


def ended(groups: Groups, end_ms: int, emitted: dict[str, int]) -> Iterator[MvdsMinute]:
    """Yield the minutes of the groups whose figures have changed.

    Args:
        groups: The groups; their figures are as of the end of the minute.
        end_ms: End of the minute, Unix ms.
        emitted: Fingerprint of the figures of the minute emitted last, by group; it is
            brought up to date.
    """
    for name in groups.names():
        part = as_of(groups.copy_of(name), end_ms)
        figures = _fingerprint(part)
        if figures != emitted.get(name):
            emitted[name] = figures
            yield MvdsMinute(end_ms - MINUTE_MS, part, name)


def _fingerprint(totals: GroupTotals) -> int:
    """Fingerprint of the figures, without what belongs to the moment."""
    figures = msgspec.structs.replace(totals, clock_ms=0, observers=[], window=Window())
    return fingerprint(_ENCODER.encode(figures))
