"""Declares MVDS for the monitor: its protocol, and the kind of its views."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from sds_core.observer.causes import Cause, Surroundings
from sds_core.observer.incidents import GroupIncident, IncidentKind
from sds_core.observer.kinds import Grouping, Kind, Outlet, TrafficProtocol
from sds_core.observer.mvds.digest import ShardDigest, ShardDigester
from sds_core.observer.mvds.figures import GROUP_FIGURES
from sds_core.observer.mvds.frame import decode, fits_key, pair_name
from sds_core.observer.mvds.group_events import GroupEvent, MvdsMinute, explain
from sds_core.observer.mvds.limits import OTHER_GROUPS
from sds_core.observer.mvds.shard_state import BLOB_VERSION
from sds_core.observer.mvds.shard_view import ShardView
from sds_core.observer.mvds.split import split
from sds_core.observer.mvds.totals import (
    UNKNOWN_GROUP,
    GroupTotals,
    ShardTotals,
    groups_of,
    join,
)
from sds_core.observer.mvds.tracer import MvdsTracing
from sds_core.observer.verdict import Verdict
from sds_core.text import counted

LEAST = 5
"""Minimum number of unacknowledged pairs of message and receiver to report a cause."""


def causes_of(totals: GroupTotals, around: Surroundings) -> Sequence[Cause]:
    """Return the likely causes of a group's bad verdict."""
    unacknowledged = sum(totals.window.unacknowledged.values())
    if (
        unacknowledged < LEAST
        or totals.records_ack
        or totals.verdict is Verdict.BLIND
        # If capture gaps excuse evidence, the taps may have missed acknowledgements.
        or around.excused is not None
    ):
        return ()
    return (
        Cause(
            "no_acknowledgements",
            "no node of the group acknowledges: not one acknowledgement since the "
            f"first record, of {counted(totals.addressed, 'addressed message')}",
            "nobody acknowledges",
            (),
            {"unacknowledged": unacknowledged, "addressed": totals.addressed},
        ),
    )


SHARD_VIEWS: Kind[ShardDigest, ShardTotals, GroupEvent] = Kind(
    prefix="mvds",
    digest=ShardDigest,
    view=ShardView,
    totals=ShardTotals,
    blob_version=BLOB_VERSION,
    label_file="mvds-labels.json",
    in_channel_table=True,
    outlets={GroupIncident: Outlet.INCIDENTS, MvdsMinute: Outlet.MINUTES},
    figures=GROUP_FIGURES,
    grouping=Grouping(
        totals=GroupTotals,
        split=groups_of,
        join=join,
        name_of=attrgetter("group"),
        changed=attrgetter("changed"),
        leftovers=frozenset({UNKNOWN_GROUP, OTHER_GROUPS}),
    ),
    explain=explain,
    runbooks={IncidentKind.UNACKNOWLEDGED: "MvdsMessagesUnacknowledged"},
    causes=causes_of,
    personal=frozenset({IncidentKind.UNACKNOWLEDGED}),
)
"""The kind of the MVDS views. Each view tracks one shard of the message ids, but the
job publishes the totals of each group."""

MVDS: TrafficProtocol[Any] = TrafficProtocol(
    name="mvds",
    decode=decode,
    fits_key=fits_key,
    view_name=pair_name,
    new_digester=ShardDigester,
    kind=SHARD_VIEWS,
    split=split,
    tracing=MvdsTracing(),
)
"""The protocol Minimum Viable Data Synchronisation (docs/records.md)."""
