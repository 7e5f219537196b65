"""Determines which findings are excused: the monitor may have missed messages.

An excused finding does not count, so it causes no alert (docs/figures.md, 8).
`Kind.excused` returns the excused findings of a view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Excuse(NamedTuple):
    """Why a finding does not count.

    Attributes:
        reason: Why messages may be missing: `tap_hole` or `audit_incomplete`.
        from_ms: Start of the period in which messages may be missing, event time, Unix
            ms.
        to_ms: End of this period, inclusive.
    """

    reason: str
    from_ms: int
    to_ms: int


Excusing = Callable[[int, int], Excuse | None]
"""Function that returns the excuse for a finding; None if the finding counts.

Arguments: the time at which the finding's evidence began, and the time at which the
finding was made, both Unix ms.
"""


Found = tuple[int, int, int]
"""Findings of one kind that began at the same time and were made at the same time.

The parts are the time at which their evidence began, Unix ms, the time at which they
were made, Unix ms, and the number of findings.
"""


class ExcusedFindings(NamedTuple):
    """The findings of one kind in a verdict's time window, some of them excused.

    Attributes:
        excuse: Summary of the excuses of all excused findings: the reason of the first
            excuse, and a period that contains the periods of all excuses.
        excused: Number of excused findings, at least 1.
        counted: Number of findings that count.
        holds_back: Whether `alert` does not fire, but would fire if the excused
            findings counted too.
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
    """Return how many findings of one kind are excused; None if none is.

    The alert fires if more than `limit` findings count.
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
