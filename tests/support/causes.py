"""A channel with a likely cause."""

from __future__ import annotations

from typing import Any

from sds_core.observer.sds.evidence import Evidence
from sds_core.observer.sds.suspects import Recipient, Suspects, Unrequested
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.verdict import Verdict

RECIPIENT = "b<o>b\u202e"
"""A stranger's name, which must be displayed safely."""


def explained_channel(clock_ms: int, **changes: Any) -> ChannelTotals:
    """Return a failing channel in which `RECIPIENT` alone lacks nine messages.

    Nobody requests repair there.
    """
    found = [(clock_ms - 400_000, clock_ms - 100_000, 9)]
    evidence = Evidence(
        99, 99, False, True, [], found, [], [], [], [], [(RECIPIENT, found)]
    )
    known: dict[str, Any] = {
        "first_event_ms": clock_ms - 7_200_000,
        "verdict": Verdict.FAILING,
        "verdict_reason": "undelivered",
        "evidence": evidence,
        "suspects": Suspects(
            recipient=Recipient(RECIPIENT, 9, 90), unrequested=Unrequested(9, 9, 1)
        ),
    }
    return ChannelTotals(**(known | changes))
