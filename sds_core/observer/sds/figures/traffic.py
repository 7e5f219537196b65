"""Figures of frames, copies and messages: docs/figures.md, 2."""

from __future__ import annotations

from collections.abc import Iterator

from sds_core.metrics import MetricKind, Sample
from sds_core.observer.figures import Family, Figure, Line, counter, under
from sds_core.observer.sds.totals import ChannelTotals

_FRAME_KINDS = ("content", "sync", "ephemeral")
_DIALECTS = ("spec", "nim")


def _frames(totals: ChannelTotals) -> Iterator[Sample]:
    for kind in _FRAME_KINDS:
        for dialect in _DIALECTS:
            yield (kind, dialect), totals.frames.get(f"{kind}.{dialect}", 0)


_FRAMES = Family(
    "sds_frames_total",
    MetricKind.COUNTER,
    "Frames seen, including rebroadcasts but not replicas.",
    ("kind", "dialect"),
    samples=_frames,
)
_REBROADCASTS = counter(
    "sds_rebroadcasts_total",
    "Rebroadcasts of messages, after a repair request or as a retry.",
    "cause",
)

ENTRIES = under(
    "Traffic",
    _FRAMES,
    Figure(
        "frames_all",
        "Frames of all kinds, including rebroadcasts but not replicas.",
        heading="Frames",
    ),
    Figure(
        "replicas",
        "Copies of broadcasts; the first copy of each broadcast does not count.",
        report=("replicas",),
        series=(counter("sds_replicas_total").of(),),
        heading="Replicas",
    ),
    Figure(
        "rebroadcasts_repair",
        "Messages broadcast again after a repair request.",
        report=("rebroadcasts.repair",),
        series=(_REBROADCASTS.of("repair"),),
        heading="Sent again: repair",
    ),
    Figure(
        "rebroadcasts_retry",
        "Messages broadcast again without a recent repair request.",
        report=("rebroadcasts.retry",),
        series=(_REBROADCASTS.of("retry"),),
        heading="Sent again: retry",
    ),
    Figure(
        "messages",
        "Distinct content messages.",
        report=("messages",),
        series=(counter("sds_messages_total").of(),),
        group="Acknowledgement",
        heading="Messages",
        column=1,
        line=Line("traffic", "messages"),
    ),
    *(
        Figure(
            f"frames_{kind}",
            f"Frames of kind {kind}, including rebroadcasts but not replicas.",
            report=(f"frames.{kind}",),
            line=Line("traffic", f"{kind} frames"),
        )
        for kind in _FRAME_KINDS
    ),
)
