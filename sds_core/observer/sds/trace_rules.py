"""Texts in which a trace states what a channel's view concludes (docs/figures.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sds_core.observer.tracing import Rule

RULES: Mapping[str, Rule] = {
    "gaps_lost": Rule(
        "gaps.lost",
        "6",
        "the message counts as lost: by the deadline, no tap saw the message, and no "
        "participant except its sender showed that it had the message",
    ),
    "undelivered": Rule(
        "deliveries.lost",
        "5",
        "the message counts as not delivered: the participant lacked it after the "
        "deadline",
    ),
    "unacknowledged": Rule(
        "unacknowledged",
        "4",
        "the message counts as unacknowledged: another participant had an "
        "opportunity to acknowledge it, but no frame showed the message by the "
        "deadline",
    ),
    "segmented_incomplete": Rule(
        "segmented.incomplete",
        "13",
        "the payload of the message counts as incomplete: taps saw too few segments",
    ),
    "gaps_tap_gap": Rule(
        "gaps.tap_gap",
        "6",
        "the message counts as missed only by the taps: another participant had the "
        "message, but no tap saw it by the deadline",
    ),
    "gaps_retracted": Rule(
        "gaps.retracted",
        "6",
        "the message arrived after it had counted as lost",
    ),
    "retracted": Rule(
        "deliveries.retracted",
        "5",
        "the message arrived after it had counted as not delivered",
    ),
    "gaps_recovered_late": Rule(
        "gaps.recovered_late",
        "6",
        "the message arrived after the repair window of the latest request",
    ),
    "missing": Rule(
        "",
        "5",
        "the participant counts as lacking the message, and the deadline begins",
    ),
    "recovered": Rule(
        "deliveries.recovered",
        "5",
        "the message was delivered, but an earlier frame of the participant lacked the "
        "message",
    ),
    "gaps_repaired": Rule(
        "gaps.repaired",
        "6",
        "the message arrived within the repair window of the latest request",
    ),
    "gaps_late": Rule(
        "gaps.late",
        "6",
        "the message arrived after the settle time, without a repair request",
    ),
    "unwitnessed": Rule(
        "unwitnessed",
        "4",
        "not acknowledged, but no fault: no participant had an opportunity to "
        "acknowledge it",
    ),
    "message_id_collision": Rule(
        "message_id_collisions",
        "2",
        "another message has the same id, but another sender or Lamport timestamp",
    ),
    "repair_expired": Rule(
        "repair.expired",
        "7",
        "the repair request got no response within the repair window",
    ),
    "request_early": Rule(
        "repair_timing.requests_early", "7", "the request came before T_req"
    ),
    "response_unexplained": Rule(
        "repair_timing.responses_unexplained",
        "7",
        "the time of the response fits no participant's T_resp",
    ),
    "acknowledged_in_time": Rule(
        "acknowledged_in_time", "4", "acknowledged before the deadline"
    ),
    "definite": Rule(
        "acknowledged.definite",
        "4",
        "acknowledged: the causal history of another participant names the message",
    ),
    "probable": Rule(
        "acknowledged.probable",
        "4",
        "probably acknowledged: filters of enough participants hold the message",
    ),
    "first_pass": Rule(
        "deliveries.first_pass",
        "5",
        "the message was delivered, and no earlier frame of the participant lacked "
        "the message",
    ),
    "gaps_opened": Rule(
        "gaps.opened",
        "6",
        "a gap: a causal history named the message, but no tap saw the message within "
        "the settle time",
    ),
    "gaps_before_start": Rule(
        "",
        "6",
        "a message that counts as sent before the start of the view is never a gap",
    ),
    "repair_answered": Rule(
        "repair.answered", "7", "the broadcast answers the repair request"
    ),
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
        "segmented.complete",
        "13",
        "the payload of the message is complete: taps saw enough segments",
    ),
}
"""For each kind of note in the view's journal, the conclusion that a trace shows.

The gravest conclusion is first.
"""

UNDONE: Mapping[str, Sequence[str]] = {
    "gaps_lost": ("gaps_retracted",),
    "undelivered": ("retracted",),
    "missing": ("recovered", "undelivered", "retracted"),
    "gaps_opened": ("gaps_late", "gaps_repaired", "gaps_recovered_late", "gaps_lost"),
}
"""For each kind of note, the kinds of later notes after which it no longer holds."""
