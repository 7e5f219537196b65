"""The verdict, and effects that make figures unreliable: docs/figures.md, 2, 8."""

from __future__ import annotations

from sds_core.observer.figures import (
    Figure,
    Unit,
    counter,
    gauge,
    left_out_counter,
    verdict_gauge,
)
from sds_core.observer.sds.limits import LeftOut

ENTRIES = (
    verdict_gauge(
        "sds_channel_verdict",
        "1 for the verdict that the channel has, 0 for the others.",
    ),
    Figure(
        "verdict",
        "Health of the channel, without regard to its taps.",
        Unit.WORD,
        report=("verdict",),
    ),
    Figure(
        "verdict_reason",
        "Reason of the verdict; if several reasons hold, the first.",
        Unit.WORD,
        report=("reason",),
    ),
    Figure(
        "verdict_since_ms",
        "Event time at which the channel's verdict began.",
        Unit.TIME,
        series=(gauge("sds_verdict_since_timestamp_seconds").of(),),
    ),
    Figure(
        "message_id_collisions",
        "Frames with a known message id but another sender or Lamport timestamp.",
        report=("message_id_collisions",),
        series=(counter("sds_message_id_collisions_total").of(),),
        group="Traffic",
        heading="Id collisions",
        grave=True,
    ),
    Figure(
        "remembered_evicted",
        "Entries that a limit removed early from a channel's memory.",
        series=(counter("sds_remembered_evicted_total").of(),),
    ),
    left_out_counter(
        "sds_left_out_total",
        "Entries that limits discarded; only hostile traffic reaches these limits.",
        LeftOut,
    ),
)
