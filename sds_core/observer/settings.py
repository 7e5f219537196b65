"""Settings of the rules in docs/figures.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    """Settings with their defaults; comments name sections of docs/figures.md."""

    # Section 2: within this time, byte-identical frames without hashes count as one.
    replica_window_ms: int = 2_000
    # Section 4: messages and gaps are tracked for this time.
    horizon_ms: int = 3_600_000
    # Section 2: each table of a channel's view has at most this number of entries.
    remembered: int = 20_000
    # Section 2: for each kind of id, a filter is searched for at most this number of
    # the newest ids.
    searched: int = 1_000
    # Sections 2 and 5: of the messages that a participant may lack, the newest are
    # tracked: at most `awaited` per participant and `awaited_by_all` per channel.
    # Filters are tracked for at most `followed` participants per channel.
    awaited: int = 1_000
    awaited_by_all: int = 500_000
    followed: int = 2_000
    # Section 7: if a channel has more participants than this, its responses are not
    # timed.
    timed_participants: int = 1_000
    ack_deadline_ms: int = 120_000  # section 4
    # Section 4: an acknowledgement is probable only if the product of the witnesses'
    # false-positive rates is lower than this.
    probable_rate: float = 1e-6
    # Section 4: minimum number of witnesses of a probable acknowledgement. Small
    # channels need fewer.
    probable_witnesses: int = 2
    delivery_grace_ms: int = 5_000  # section 5
    delivery_deadline_ms: int = 300_000  # section 5
    warm_up_ms: int = 30_000  # section 6
    settle_ms: int = 2_000  # section 6
    gap_deadline_ms: int = 300_000  # section 6
    # Sections 2 and 7: the repair window is the sum of T_max, sweep and transport:
    # 120 + 10 + 5 s for js-waku, and 300 + 10 + 5 s for nim-sds.
    repair_window_spec_ms: int = 135_000
    repair_window_nim_ms: int = 315_000
    # Section 7: the SDS-R guide and js-waku use these values.
    t_min_ms: int = 30_000
    t_max_ms: int = 120_000
    sweep_ms: int = 10_000
    transport_ms: int = 5_000
    verdict_window_ms: int = 600_000  # section 8
    # Section 8: if one of these shares is exceeded, the channel is failing.
    unacknowledged_percent: int = 5
    undelivered_percent: int = 1
    tap_hole_ms: int = 15_000  # section 8
    # Section 9: participants and filters count as current if seen within this time.
    lately_ms: int = 600_000
    # Sections 8 and 9: a filter with a false-positive rate above this is too full.
    saturated_rate: float = 0.01
    # Section 9: length of a rate-limit epoch (64/WAKU2-NETWORK), aligned to Unix time.
    epoch_ms: int = 600_000
    # Section 9: maximum number of messages of a participant in an epoch. The value is
    # `rlnRelayUserMessageLimit` of 64/WAKU2-NETWORK (vacp2p/rfc-index@19cfc820).
    epoch_messages: int = 100
    # Section 13: after this time without a segment, a message's missing segments are no
    # longer expected, as in nim-segmentation.
    segment_idle_ms: int = 300_000
    # Section 11: a channel that is silent for this time is forgotten; 0 means never.
    # `--forget-days` sets the value.
    forget_ms: int = 0


DEFAULTS = ObserverSettings()
