"""The possible verdicts on a view."""

from __future__ import annotations

import enum


class Verdict(enum.StrEnum):
    """Verdict on one view, such as a channel; see section 8 of docs/figures.md."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILING = "failing"
    QUIET = "quiet"
    BLIND = "blind"
    WARMING_UP = "warming_up"
