"""Which incidents the monitor still follows (docs/figures.md, 12)."""

from __future__ import annotations

from sds_core.observer.incidents import ChannelIncident
from sds_core.observer.kinds import AnyKind
from sds_core.observer.lacking import is_followed
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import Snapshot


def follows(
    snapshot: Snapshot, found: ChannelIncident, kind: AnyKind = CHANNELS
) -> bool:
    """Whether frames may still end an incident.

    Args:
        snapshot: Has the channels and the clock.
        found: The incident.
        kind: Kind of its view.
    """
    incident = found.incident
    totals = snapshot.views[kind.prefix].totals.get(found.channel)
    # A channel that was forgotten and has returned is a new one.
    if totals is None or incident.found_ms < (totals.first_event_ms or 0):
        return False
    return incident.ended_ms is None and is_followed(
        incident.since_ms, snapshot.clock_ms, snapshot.observer
    )
