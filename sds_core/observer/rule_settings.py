"""The settings of the rules as the rules read them: as numbers, not as objects."""

from __future__ import annotations

from functools import lru_cache

from sds_core.native import native
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect


@native
class RuleSettings:
    """See `ObserverSettings`."""

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
        self.replica_window_ms = settings.replica_window_ms
        self.horizon_ms = settings.horizon_ms
        self.remembered = settings.remembered
        self.searched = settings.searched
        self.awaited = settings.awaited
        self.awaited_by_all = settings.awaited_by_all
        self.followed = settings.followed
        self.timed_participants = settings.timed_participants
        self.ack_deadline_ms = settings.ack_deadline_ms
        self.probable_rate = settings.probable_rate
        self.probable_witnesses = settings.probable_witnesses
        self.delivery_grace_ms = settings.delivery_grace_ms
        self.delivery_deadline_ms = settings.delivery_deadline_ms
        self.warm_up_ms = settings.warm_up_ms
        self.settle_ms = settings.settle_ms
        self.gap_deadline_ms = settings.gap_deadline_ms
        self.repair_window_spec_ms = settings.repair_window_spec_ms
        self.repair_window_nim_ms = settings.repair_window_nim_ms
        self.t_min_ms = settings.t_min_ms
        self.t_max_ms = settings.t_max_ms
        self.sweep_ms = settings.sweep_ms
        self.transport_ms = settings.transport_ms
        self.verdict_window_ms = settings.verdict_window_ms
        self.unacknowledged_percent = settings.unacknowledged_percent
        self.undelivered_percent = settings.undelivered_percent
        self.tap_hole_ms = settings.tap_hole_ms
        self.lately_ms = settings.lately_ms
        self.saturated_rate = settings.saturated_rate
        self.epoch_ms = settings.epoch_ms
        self.epoch_messages = settings.epoch_messages
        self.segment_idle_ms = settings.segment_idle_ms
        self.forget_ms = settings.forget_ms

    def repair_window_ms(self, dialect: Dialect) -> int:
        """See `ObserverSettings`."""
        if dialect is Dialect.NIM:
            return self.repair_window_nim_ms
        return self.repair_window_spec_ms


rule_settings = lru_cache(maxsize=8)(RuleSettings)
