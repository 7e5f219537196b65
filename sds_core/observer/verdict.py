"""The verdict on one view: how well what it follows fares."""

from __future__ import annotations

import enum


class Verdict(enum.StrEnum):
    """Health of one channel (observer model, section 8)."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILING = "failing"
    QUIET = "quiet"
    BLIND = "blind"
    WARMING_UP = "warming_up"
