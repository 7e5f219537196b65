"""Figures of repair and its timing: docs/figures.md, 7."""

from __future__ import annotations

from sds_core.observer.figures import (
    Figure,
    Line,
    Percentile,
    Share,
    Unit,
    counter,
    histogram,
    under,
)

_EPISODES = counter(
    "sds_repair_episodes_total", "Repair episodes that ended, by outcome.", "outcome"
)
_RESPONSES = counter(
    "sds_repair_responses_total", "Responses to repair requests.", "redundant"
)
_TIMING = counter(
    "sds_repair_timing_total",
    "Checked repair requests and responses, by whether they conform to the times that "
    "SDS-R derives from hashes; of a participant's requests for the same id, only the "
    "first is checked.",
    "step",
    "conformant",
)

ENTRIES = under(
    "Repair",
    Figure(
        "repair_requests",
        "Repair requests; each message id that a frame requests counts once.",
        report=("repair.requests",),
        series=(counter("sds_repair_requests_total").of(),),
        heading="Requests",
    ),
    Figure(
        "repair_requests_for_received",
        "Repair requests for an id that the requester's own bloom filter holds.",
        report=("repair.requests_for_received",),
        series=(counter("sds_repair_requests_for_received_total").of(),),
    ),
    Share(
        key="answered",
        help="Repair episodes that ended with a response, of all that ended.",
        part=("repair_answered",),
        rest=("repair_expired",),
        heading="Answered",
        column=10,
    ),
    Figure(
        "repair_answered",
        "Repair episodes that ended with a response.",
        report=("repair.answered",),
        series=(_EPISODES.of("answered"), _RESPONSES.of("false")),
        heading="Episodes answered",
        line=Line("repair", "answered"),
    ),
    Figure(
        "repair_expired",
        "Repair episodes that ended without a response.",
        report=("repair.expired",),
        series=(_EPISODES.of("expired"),),
        heading="Expired",
        line=Line("repair", "expired"),
    ),
    Figure(
        "repair_responses",
        "Messages broadcast in response to a repair request.",
        report=("repair.responses",),
        heading="Responses",
    ),
    Share(
        key="redundant",
        help="Unneeded extra repair answers: those after the first to an episode, of "
        "all responses.",
        part=("repair_redundant",),
        rest=("repair_answered",),
        heading="Unneeded answers",
        more_is_better=False,
        column=11,
    ),
    Figure(
        "repair_redundant",
        "Responses to repair requests after the first.",
        report=("repair.redundant",),
        series=(_RESPONSES.of("true"),),
        line=Line("repair", "redundant"),
    ),
    Figure(
        "repair_response",
        "Time from the first request of a repair episode to its answer.",
        Unit.DURATIONS,
        report=("repair_response_ms",),
        series=(histogram("sds_repair_response_seconds").of(),),
        heading="Response",
        key="repair",
        percentiles=(Percentile(50), Percentile(95)),
    ),
    Figure(
        "requests_timed",
        "First requests of a participant for an id whose time could be checked.",
        report=("repair_timing.requests_timed",),
    ),
    Figure(
        "requests_on_time",
        "First requests of a participant for an id that were not early.",
        series=(_TIMING.of("request", "true"),),
    ),
    Figure(
        "requests_early",
        "First requests of a participant for an id that came before their time.",
        report=("repair_timing.requests_early",),
        series=(_TIMING.of("request", "false"),),
    ),
    Figure(
        "responses_timed",
        "Responses whose time could be checked.",
        report=("repair_timing.responses_timed",),
    ),
    Figure(
        "responses_explained",
        "Responses that came at the time of some participant.",
        series=(_TIMING.of("response", "true"),),
    ),
    Figure(
        "responses_unexplained",
        "Responses that came at the time of no participant.",
        report=("repair_timing.responses_unexplained",),
        series=(_TIMING.of("response", "false"),),
    ),
)
