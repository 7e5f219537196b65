"""Settings of the rules in docs/figures.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    """Settings with their defaults. Comments refer to sections of docs/figures.md."""

    # Section 2: if two byte-identical frames are at most this time apart, and at least
    # one has no Waku hash, the later frame is a replica.
    replica_window_ms: int = 2_000
    # Section 2: the retention window, in which messages, gaps and other entries are
    # tracked.
    horizon_ms: int = 3_600_000
    # Section 2: each table of a channel's view has at most this number of entries.
    remembered: int = 20_000
    # Section 2: each filter is searched for at most this number of unacknowledged
    # messages, and for at most this number of gaps, the newest first.
    searched: int = 1_000
    # Sections 2 and 5: for each participant, the view tracks the newest `awaited`
    # messages that the participant may lack. The numbers of all participants add up to
    # at most `awaited_by_all` per channel.
    # Filters are tracked for at most `followed` participants per channel.
    awaited: int = 1_000
    awaited_by_all: int = 500_000
    followed: int = 2_000
    # Section 7: if a channel has more participants than this, its responses are not
    # timed.
    timed_participants: int = 1_000
    ack_deadline_ms: int = 120_000  # section 4
    # Section 4: an acknowledgement is probable only if the product of the
    # false-positive rates of the witnesses' filters is lower than this.
    probable_rate: float = 1e-6
    # Section 4: minimum number of witnesses of a probable acknowledgement. If fewer
    # other participants are active, this lower number is the minimum, but at least 1.
    probable_witnesses: int = 2
    delivery_grace_ms: int = 5_000  # section 5
    delivery_deadline_ms: int = 300_000  # section 5
    warm_up_ms: int = 30_000  # section 6
    settle_ms: int = 2_000  # section 6
    gap_deadline_ms: int = 300_000  # section 6
    # Sections 2 and 7: repair windows, as the sum of T_max, sweep interval and time for
    # transport: 120 + 10 + 5 s for js-waku, and 300 + 10 + 5 s for nim-sds.
    repair_window_spec_ms: int = 135_000
    repair_window_nim_ms: int = 315_000
    # Section 7: the SDS-R guide and js-waku use these values.
    t_min_ms: int = 30_000
    t_max_ms: int = 120_000
    sweep_ms: int = 10_000
    transport_ms: int = 5_000
    verdict_window_ms: int = 600_000  # section 8
    # Section 8: if a larger share of the messages is unacknowledged, or a larger share
    # of the deliveries is lost, the channel is failing.
    unacknowledged_percent: int = 5
    undelivered_percent: int = 1
    tap_hole_ms: int = 15_000  # section 8
    # Section 9: a participant or a filter counts as current if it was seen within this
    # time.
    lately_ms: int = 600_000
    # Section 8: a filter with a false-positive rate above this is too full.
    saturated_rate: float = 0.01
    # Section 9: length of a rate-limit epoch (64/WAKU2-NETWORK), aligned to Unix time.
    epoch_ms: int = 600_000
    # Section 9: maximum number of messages that a participant may send in an epoch:
    # `rlnRelayUserMessageLimit` of 64/WAKU2-NETWORK (vacp2p/rfc-index@19cfc820).
    epoch_messages: int = 100
    # Section 13: if no segment of a message arrives for this time, its missing segments
    # are no longer expected. nim-segmentation does the same.
    segment_idle_ms: int = 300_000
    # Section 11: a channel that is silent for this time is forgotten; 0 means never.
    # `--forget-days` sets the value.
    forget_ms: int = 0


DEFAULTS = ObserverSettings()
