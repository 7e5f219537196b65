"""The counts of a forgotten channel that stay in sums over all channels."""

from __future__ import annotations

import msgspec

from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.summing import counted_part

_GAUGES = (
    "in_flight",
    "gaps_open",
    "participants",
    "participants_lately",
    "segmented_open",
)


def remains_of(totals: ChannelTotals) -> ChannelTotals:
    """Return the counts of a channel, and its first and last event time.

    What has not ended can no longer be observed. It ends as if it had been evicted
    (docs/figures.md, 2): messages in flight as unwitnessed, open gaps as tap gaps,
    messages whose segments are missing as incomplete.
    """
    return msgspec.structs.replace(
        counted_part(totals, _GAUGES),
        first_event_ms=totals.first_event_ms,
        last_event_ms=totals.last_event_ms,
        unwitnessed=totals.unwitnessed + totals.in_flight,
        gaps_tap_gap=totals.gaps_tap_gap + totals.gaps_open,
        segmented_incomplete=totals.segmented_incomplete + totals.segmented_open,
    )
