"""Messages in segments: docs/figures.md, 13."""

from __future__ import annotations

from sds_core.observer.figures import Figure, Share, counter, gauge, under

_ENDED = counter(
    "sds_segmented_messages_ended_total",
    "Segmented messages whose payload can be put together, and those of which too few "
    "segments came.",
    "outcome",
)
_SEGMENTS = counter(
    "sds_segments_total", "Segments of messages, each once, by kind.", "kind"
)

ENTRIES = under(
    "Segments",
    Figure(
        "segmented",
        "Messages of which at least one segment was seen.",
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
        "Segmented messages whose missing segments may still come.",
        report=("segmented.open",),
        series=(gauge("sds_segmented_messages_open").of(),),
        heading="Open",
    ),
    Figure(
        "segments_data",
        "Data segments, each once.",
        report=("segments.data",),
        series=(_SEGMENTS.of("data"),),
        heading="Data segments",
    ),
    Figure(
        "segments_parity",
        "Parity segments, each once.",
        report=("segments.parity",),
        series=(_SEGMENTS.of("parity"),),
        heading="Parity segments",
    ),
    Figure(
        "segments_disagreeing",
        "Segments that contradict their payload's hash, or earlier ones of their "
        "message.",
        report=("segments.disagreeing",),
        series=(counter("sds_segments_disagreeing_total").of(),),
        heading="Contradictions",
        grave=True,
    ),
)
