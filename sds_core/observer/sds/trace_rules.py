"""Texts with which a trace describes a channel view's conclusions (docs/figures.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sds_core.observer.tracing import Rule

RULES: Mapping[str, Rule] = {
    "gaps_lost": Rule(
        "gaps.lost",
        "6",
        "counts as lost: named, and by the deadline no frame showed that anybody but "
        "its sender had it",
    ),
    "undelivered": Rule(
        "deliveries.lost",
        "5",
        "counts as not delivered: still lacked after the deadline",
    ),
    "unacknowledged": Rule(
        "unacknowledged",
        "4",
        "counts as unacknowledged: another participant had an opportunity, and no "
        "frame showed the message by the deadline",
    ),
    "segmented_incomplete": Rule(
        "segmented.incomplete",
        "13",
        "its payload counts as incomplete: too few segments were seen",
    ),
    "gaps_tap_gap": Rule(
        "gaps.tap_gap",
        "6",
        "counts as missed by the taps only: no tap showed it, and another participant "
        "had it",
    ),
    "gaps_retracted": Rule(
        "gaps.retracted", "6", "arrived after it had counted as lost"
    ),
    "retracted": Rule(
        "deliveries.retracted", "5", "arrived after it had counted as not delivered"
    ),
    "gaps_recovered_late": Rule(
        "gaps.recovered_late",
        "6",
        "arrived after the repair window of the latest request",
    ),
    "missing": Rule("", "5", "counts as lacking the message: the deadline runs"),
    "recovered": Rule(
        "deliveries.recovered", "5", "delivered after a frame that lacked it"
    ),
    "gaps_repaired": Rule(
        "gaps.repaired", "6", "arrived within the repair window of a request"
    ),
    "gaps_late": Rule("gaps.late", "6", "arrived late, without a request"),
    "unwitnessed": Rule(
        "unwitnessed",
        "4",
        "not acknowledged, and no participant had an opportunity: no fault",
    ),
    "message_id_collision": Rule(
        "message_id_collisions",
        "2",
        "another message has the same id: other sender or Lamport timestamp",
    ),
    "repair_expired": Rule(
        "repair.expired", "7", "no response within the repair window"
    ),
    "request_early": Rule(
        "repair_timing.requests_early", "7", "the request came before T_req"
    ),
    "response_unexplained": Rule(
        "repair_timing.responses_unexplained",
        "7",
        "the time of the response fits T_resp of no participant",
    ),
    "acknowledged_in_time": Rule(
        "acknowledged_in_time", "4", "acknowledged before the deadline"
    ),
    "definite": Rule(
        "acknowledged.definite",
        "4",
        "acknowledged: the causal history of another participant names it",
    ),
    "probable": Rule(
        "acknowledged.probable",
        "4",
        "probably acknowledged: filters of enough participants hold it",
    ),
    "first_pass": Rule(
        "deliveries.first_pass", "5", "delivered, and no earlier frame lacked it"
    ),
    "gaps_opened": Rule(
        "gaps.opened", "6", "a gap: named, and missing for longer than the settle time"
    ),
    "gaps_before_start": Rule(
        "", "6", "named before the start: it never counts as a gap"
    ),
    "repair_answered": Rule("repair.answered", "7", "answers the repair request"),
    "repair_redundant": Rule(
        "repair.redundant", "7", "a further response to the repair request"
    ),
    "request_on_time": Rule(
        "repair_timing.requests_timed", "7", "the request did not come before T_req"
    ),
    "response_explained": Rule(
        "repair_timing.responses_timed", "7", "the time of the response fits T_resp"
    ),
    "rebroadcast_repair": Rule(
        "rebroadcasts.repair", "2", "broadcast again after a repair request"
    ),
    "rebroadcast_retry": Rule(
        "rebroadcasts.retry", "2", "broadcast again without a repair request"
    ),
    "segmented_complete": Rule(
        "segmented.complete", "13", "its payload is complete: enough segments were seen"
    ),
}
"""The meaning of each note of the view, the gravest first."""

UNDONE: Mapping[str, Sequence[str]] = {
    "gaps_lost": ("gaps_retracted",),
    "undelivered": ("retracted",),
    "missing": ("recovered", "undelivered", "retracted"),
    "gaps_opened": ("gaps_late", "gaps_repaired", "gaps_recovered_late", "gaps_lost"),
}
"""Notes that revoke a conclusion or replace it by a stronger one."""
