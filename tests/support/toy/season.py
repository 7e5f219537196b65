"""Records of the league."""

from __future__ import annotations

from collections.abc import Iterable

from sds_core.observer.record import RawRecord
from tests.support.frames import START_MS

MINUTE_MS = 60_000
BEGIN_MS = START_MS // MINUTE_MS * MINUTE_MS


def record(offset: int, at_s: int, league: str, match: str, points: int) -> RawRecord:
    """A match, some seconds after the begin."""
    value = f"{league}/{match}/{points}".encode()
    headers = [("protocol", b"league"), ("observer", b"tap")]
    return RawRecord(
        0, offset, BEGIN_MS + 1_000 * at_s, league.encode(), value, headers
    )


def season(count: int = 40, step_s: int = 7) -> list[RawRecord]:
    """Matches of two leagues; every fifth has no points, and gets some later."""
    found = []
    for n in range(count):
        league = "north" if n % 3 else "south"
        points = 0 if n % 5 == 0 else n
        found.append(record(n, n * step_s, league, f"m{n % 11}", points))
    return found


def clock_of(records: Iterable[RawRecord]) -> int:
    """The newest time of some records."""
    return max(one.timestamp_ms for one in records)
