"""Finds the findings that do not count because the monitor may have missed messages.

These findings are excused: they cause no alerts on a view (docs/figures.md, 8).
`Kind.excused` returns them.
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
        to_ms: End of this period, inclusive.
    """

    reason: str
    from_ms: int
    to_ms: int


Excusing = Callable[[int, int], Excuse | None]
"""Returns the excuse for evidence; None if the evidence counts.

The arguments are the times at which the evidence began and was found, Unix ms.
"""


Found = tuple[int, int, int]
"""Findings of one kind: when they began, when they were found, both Unix ms, and their
number."""


class ExcusedFindings(NamedTuple):
    """Findings of one kind in the window of a verdict; some of them are excused.

    Attributes:
        excuse: The reason of the first excuse, and the period that covers all excuses.
        excused: Number of excused findings, at least 1.
        counted: Number of findings that count.
        holds_back: Whether the alert would fire if the excused findings counted, but
            does not fire.
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
    """Return the findings of one kind; None if no finding is excused.

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
