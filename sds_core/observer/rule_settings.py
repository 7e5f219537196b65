"""Copies the settings to plain numbers.

Compiled rules read plain numbers without access to Python objects.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache

from sds_core.native import native
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect


@native
class RuleSettings:
    """The fields of `ObserverSettings`."""

    replica_window_ms: int
    horizon_ms: int
    remembered: int
    searched: int
    awaited: int
    awaited_by_all: int
    followed: int
    timed_participants: int
    ack_deadline_ms: int
    probable_rate: float
    probable_witnesses: int
    delivery_grace_ms: int
    delivery_deadline_ms: int
    warm_up_ms: int
    settle_ms: int
    gap_deadline_ms: int
    repair_window_spec_ms: int
    repair_window_nim_ms: int
    t_min_ms: int
    t_max_ms: int
    sweep_ms: int
    transport_ms: int
    verdict_window_ms: int
    unacknowledged_percent: int
    undelivered_percent: int
    tap_hole_ms: int
    lately_ms: int
    saturated_rate: float
    epoch_ms: int
    epoch_messages: int
    segment_idle_ms: int
    forget_ms: int

    def __init__(self, settings: ObserverSettings) -> None:
        for one in fields(settings):
            setattr(self, one.name, getattr(settings, one.name))

    def repair_window_ms(self, dialect: Dialect) -> int:
        """Time after a repair request in which a response still answers it, ms.

        `dialect` is the dialect of the request.
        """
        if dialect is Dialect.NIM:
            return self.repair_window_nim_ms
        return self.repair_window_spec_ms


rule_settings = lru_cache(maxsize=8)(RuleSettings)
