"""Snapshots with SDS channels, for tests of what reads a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot, Views

_OF_VIEWS = {field.name for field in fields(Views)}


def snapshot_of(
    channels: Mapping[str, ChannelTotals] | None = None,
    *,
    others: Mapping[str, Views[Any]] | None = None,
    **values: Any,
) -> Snapshot:
    """Return a snapshot, of a monitor that observes SDS at least.

    Args:
        channels: Totals by channel id.
        others: Views of other protocols, by prefix.
        values: Other attributes of the channels' `Views`, and of the `Snapshot`.
    """
    own: dict[str, Any] = {"kind": CHANNELS, "totals": channels or {}}
    own |= {name: values.pop(name) for name in _OF_VIEWS & values.keys()}
    views = {CHANNELS.prefix: Views(**own), **(others or {})}
    return Snapshot(views=views, **values)


def with_channels(snapshot: Snapshot, **values: Any) -> Snapshot:
    """Return a snapshot with other values in the `Views` of its channels."""
    channels = replace(snapshot.views[CHANNELS.prefix], **values)
    return replace(snapshot, views={**snapshot.views, CHANNELS.prefix: channels})


def with_others(snapshot: Snapshot, others: Mapping[str, Views[Any]]) -> Snapshot:
    """Return a snapshot with views of other protocols, by prefix."""
    return replace(snapshot, views={**snapshot.views, **others})
