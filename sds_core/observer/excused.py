"""Findings that do not count because the monitor may have missed messages.

Excused findings suppress alerts on a view (docs/figures.md, 8). `Kind.excused` lists
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Excuse(NamedTuple):
    """Why a finding does not count.

    Attributes:
        reason: Reason of blindness: `tap_hole` or `audit_incomplete`.
        from_ms: Start of the period in which messages may be missing, event time, Unix
            ms.
        to_ms: Its end, inclusive.
    """

    reason: str
    from_ms: int
    to_ms: int


Excusing = Callable[[int, int], Excuse | None]
"""Returns the excuse for evidence with this start and finding time, Unix ms.

None if the evidence counts.
"""


Found = tuple[int, int, int]
"""Findings of one kind: start and finding time, both Unix ms, and their number."""


class ExcusedFindings(NamedTuple):
    """Findings of one kind in a verdict's window; some of the findings do not count.

    Attributes:
        excuse: Why findings do not count, with the period from the start of the first
            cause to the end of the last cause.
        excused: Number of findings that do not count, at least 1.
        counted: Number of findings that count.
        holds_back: Whether the alert's condition is false, but would be true with the
            excused findings.
    """

    kind: str
    excuse: Excuse
    excused: int
    counted: int
    holds_back: bool
    alert: str


def excused_of(
    kind: str, alert: str, found: Sequence[Found], limit: float, excusing: Excusing
) -> ExcusedFindings | None:
    """Return the findings of one kind; None if all findings count.

    The condition of the alert is true if more than `limit` findings count.
    """
    excuses: list[Excuse] = []
    excused = counted = 0
    for since_ms, found_ms, count in found:
        excuse = excusing(since_ms, found_ms)
        if excuse is None:
            counted += count
        else:
            excused += count
            excuses.append(excuse)
    if not excuses:
        return None
    span = Excuse(
        excuses[0].reason,
        min(one.from_ms for one in excuses),
        max(one.to_ms for one in excuses),
    )
    holds_back = counted <= limit < excused + counted
    return ExcusedFindings(kind, span, excused, counted, holds_back, alert)
