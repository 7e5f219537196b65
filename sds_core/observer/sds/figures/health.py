"""Figures of the verdict, and of events that make other figures unreliable.

They are described in docs/figures.md, sections 2 and 8.
"""

from __future__ import annotations

from sds_core.observer.figures import (
    Figure,
    counter,
    left_out_counter,
    verdict_entries,
)
from sds_core.observer.sds.limits import LeftOut

ENTRIES = (
    *verdict_entries(
        "channel", "sds_channel_verdict", "sds_verdict_since_timestamp_seconds"
    ),
    Figure(
        "message_id_collisions",
        "Frames that have a known message's id, but another sender or Lamport "
        "timestamp.",
        report=("message_id_collisions",),
        series=(counter("sds_message_id_collisions_total").of(),),
        group="Traffic",
        heading="Id collisions",
        grave=True,
    ),
    Figure(
        "remembered_evicted",
        "Entries that were removed early from a channel's memory, because a limit was "
        "reached.",
        series=(counter("sds_remembered_evicted_total").of(),),
    ),
    left_out_counter(
        "sds_left_out_total",
        "Entries that were discarded because of a limit; only large channels or "
        "hostile traffic reach these limits.",
        LeftOut,
    ),
)
