"""Settings of the rules in docs/figures.md."""

from __future__ import annotations

from dataclasses import dataclass

from sds_core.wire import Dialect


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    """Settings with their defaults; comments begin with sections of docs/figures.md."""

    replica_window_ms: int = 2_000  # 2: joins byte-identical copies without hashes
    horizon_ms: int = 3_600_000  # 4: messages and gaps are tracked for this time
    remembered: int = 20_000  # 2: maximum entries of each memory of a channel
    # 2: a filter is searched for at most this number of newest ids of each kind.
    searched: int = 1_000
    # 2 and 5: maximum numbers. `awaited` limits the newest messages that a participant
    # may lack. `awaited_by_all` limits their sum over a channel. `followed` limits the
    # participants whose filters are tracked.
    awaited: int = 1_000
    awaited_by_all: int = 500_000
    followed: int = 2_000
    timed_participants: int = 1_000  # 7: responses in larger channels are not timed
    ack_deadline_ms: int = 120_000  # 4
    probable_rate: float = 1e-6  # 4: joint false-positive rate, a ratio
    probable_witnesses: int = 2  # 4: participants; fewer in small channels
    delivery_grace_ms: int = 5_000  # 5
    delivery_deadline_ms: int = 300_000  # 5
    warm_up_ms: int = 30_000  # 6
    settle_ms: int = 2_000  # 6
    gap_deadline_ms: int = 300_000  # 6
    # 2 and 7: the window is T_max + sweep + transport, in seconds: 120 + 10 + 5 for
    # js-waku, and 300 + 10 + 5 for nim-sds.
    repair_window_spec_ms: int = 135_000
    repair_window_nim_ms: int = 315_000
    # 7: the SDS-R guide and js-waku use these values.
    t_min_ms: int = 30_000
    t_max_ms: int = 120_000
    sweep_ms: int = 10_000
    transport_ms: int = 5_000
    verdict_window_ms: int = 600_000  # 8
    unacknowledged_percent: int = 5  # 8: above this share, a channel fails
    undelivered_percent: int = 1  # 8: above this share, a channel fails
    tap_hole_ms: int = 15_000  # 8
    lately_ms: int = 600_000  # 9: window for current participants and filters
    saturated_rate: float = 0.01  # 8, 9: maximum false-positive rate, a ratio
    epoch_ms: int = 600_000  # 9: rate-limit epoch (64/WAKU2-NETWORK), Unix-aligned
    # 9: maximum messages of a participant in an epoch. The value is
    # `rlnRelayUserMessageLimit` of 64/WAKU2-NETWORK (vacp2p/rfc-index@19cfc820).
    epoch_messages: int = 100
    # 13: after this silence, a message's missing segments are no longer expected, as in
    # nim-segmentation.
    segment_idle_ms: int = 300_000
    # 11: silence after which a channel is forgotten; 0: no channel is forgotten.
    # `--forget-days` sets it.
    forget_ms: int = 0

    def repair_window_ms(self, dialect: Dialect) -> int:
        """Time in which a response answers a request of this dialect, ms."""
        if dialect is Dialect.NIM:
            return self.repair_window_nim_ms
        return self.repair_window_spec_ms


DEFAULTS = ObserverSettings()
