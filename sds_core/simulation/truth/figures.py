"""The figures of a channel, by their names in the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sds_core.message_channel.events import Cause
from sds_core.simulation.truth.acknowledgements import acknowledgements_in
from sds_core.simulation.truth.composition import capacity_in
from sds_core.simulation.truth.conclusions import Conclusions, repair_in
from sds_core.simulation.truth.deliveries import deliveries_in
from sds_core.simulation.truth.gaps import gaps_in
from sds_core.simulation.truth.tap_view import Copy, SeenFrame, TapView
from sds_core.wire import FrameKind

_CAUSES = (Cause.CONTENT, Cause.REPAIR, Cause.RETRY)


def figures_of(conclusions: Conclusions) -> dict[str, Any]:
    """Return what a correct monitor reports.

    `sender_side` is the exception: why the frames were really sent, which no monitor
    can know.
    """
    view, episodes = conclusions.view, conclusions.episodes
    rebroadcasts = [frame for frame in view.frames if frame.copy is Copy.REBROADCAST]
    repairs = sum(view.is_requested(frame) for frame in rebroadcasts)
    return {
        "frames": {kind.value: view.kinds[kind] for kind in FrameKind},
        "messages": len(view.messages),
        "replicas": view.replicas,
        "rebroadcasts": {
            "repair": repairs,
            "retry": len(rebroadcasts) - repairs,
        },
        "message_id_collisions": sum(
            frame.copy is Copy.COLLISION for frame in view.frames
        ),
        "participants": len(view.first_copies),
        "sender_side": {
            "first_copies": _real_causes(view.messages.values()),
            "rebroadcasts": _real_causes(rebroadcasts),
        },
        **acknowledgements_in(view, conclusions.end_ms),
        **deliveries_in(conclusions.deliveries),
        **gaps_in(conclusions.gaps),
        **repair_in(view, episodes),
        **capacity_in(
            view.sizes, [frame.composition.sizes for frame in episodes.responses]
        ),
    }


def totals_of(channels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums over channels; lists of single values have none."""
    totals = _numbers(figures_of(Conclusions(TapView([]), 0)))
    for figures in channels:
        totals = _sum(totals, figures)
    return totals


def _real_causes(frames: Iterable[SeenFrame]) -> dict[str, int]:
    causes = [frame.cause for frame in frames]
    return {cause.value: causes.count(cause) for cause in _CAUSES}


def _numbers(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _numbers(value) if isinstance(value, Mapping) else value
        for name, value in figures.items()
        if not isinstance(value, list)
    }


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Add the values that both trees have."""
    return {
        name: _sum(value, other[name])
        if isinstance(value, Mapping)
        else value + other[name]
        for name, value in one.items()
    }
