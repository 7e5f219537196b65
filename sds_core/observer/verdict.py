"""The possible verdicts on a view."""

from __future__ import annotations

import enum


class Verdict(enum.StrEnum):
    """Health of one channel (docs/figures.md, 8)."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILING = "failing"
    QUIET = "quiet"
    BLIND = "blind"
    WARMING_UP = "warming_up"
