"""Messages in segments: docs/figures.md, 13."""

from __future__ import annotations

from sds_core.observer.figures import Figure, Share, counter, gauge, under

_ENDED = counter(
    "sds_segmented_messages_ended_total",
    "Segmented messages that ended, by outcome: complete if enough segments to restore "
    "the payload were seen, incomplete if too few segments were seen in time.",
    "outcome",
)
_SEGMENTS = counter(
    "sds_segments_total", "Distinct segments of messages, by kind.", "kind"
)

ENTRIES = under(
    "Segments",
    Figure(
        "segmented",
        "Segmented messages of which at least one segment was seen.",
        report=("segmented.begun",),
        series=(counter("sds_segmented_messages_total").of(),),
        heading="Messages",
    ),
    Share(
        key="segmented_complete_share",
        help="Segmented messages that became complete, of those that are not open.",
        part=("segmented_complete",),
        rest=("segmented_incomplete",),
        heading="Complete",
    ),
    Figure(
        "segmented_complete",
        "Segmented messages of which enough segments were seen.",
        report=("segmented.complete",),
        series=(_ENDED.of("complete"),),
    ),
    Figure(
        "segmented_incomplete",
        "Segmented messages of which too few segments were seen in time.",
        report=("segmented.incomplete",),
        series=(_ENDED.of("incomplete"),),
        heading="Incomplete",
    ),
    Figure(
        "segmented_open",
        "Segmented messages whose missing segments may still arrive.",
        report=("segmented.open",),
        series=(gauge("sds_segmented_messages_open").of(),),
        heading="Open",
    ),
    Figure(
        "segments_data",
        "Distinct data segments.",
        report=("segments.data",),
        series=(_SEGMENTS.of("data"),),
        heading="Data segments",
    ),
    Figure(
        "segments_parity",
        "Distinct parity segments.",
        report=("segments.parity",),
        series=(_SEGMENTS.of("parity"),),
        heading="Parity segments",
    ),
    Figure(
        "segments_disagreeing",
        "Segments that contradict an earlier segment or the hash of their payload.",
        report=("segments.disagreeing",),
        series=(counter("sds_segments_disagreeing_total").of(),),
        heading="Contradictions",
        grave=True,
    ),
)
