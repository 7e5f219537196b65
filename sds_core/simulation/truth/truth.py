"""The whole truth about a simulation, as one document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sds_core.message_channel.events import Cause, Received
from sds_core.simulation.log import (
    Arrival,
    Entry,
    Happening,
    Heartbeat,
    Presence,
    Sighting,
    TapGap,
    Transmission,
)
from sds_core.simulation.truth.acknowledgements import acknowledgements_in
from sds_core.simulation.truth.composition import Composition, Compositions, capacity_in
from sds_core.simulation.truth.conclusions import Conclusions, repair_in
from sds_core.simulation.truth.deliveries import deliveries_in
from sds_core.simulation.truth.gaps import gaps_in
from sds_core.simulation.truth.messages import Messages, Story
from sds_core.simulation.truth.tap_view import Copy, SeenFrame, ShownRecord, TapView
from sds_core.wire import FrameKind

_CAUSES = (Cause.CONTENT, Cause.REPAIR, Cause.RETRY)

SCHEMA = 1


def figures_of(conclusions: Conclusions) -> dict[str, Any]:
    """Return the figures of a channel that a correct monitor reports.

    In addition, `sender_side` counts frames by their real cause, which no monitor can
    know.
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
    """Return the sum of each figure over all channels; lists are omitted."""
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
    return {
        name: _sum(value, other[name])
        if isinstance(value, Mapping)
        else value + other[name]
        for name, value in one.items()
    }


class Truth:
    """Processes log entries in order, and returns what a correct monitor reports.

    The caller must pass exactly the sightings whose records are in the topic, in the
    topic's order. `Truth` assumes that each heartbeat is written to all partitions.
    """

    def __init__(self, scenario: str, seed: int) -> None:
        self._scenario = scenario
        self._seed = seed
        self._compositions = Compositions()
        self._messages = Messages()
        self._composed: dict[int, Composition] = {}
        self._shown: defaultdict[str, list[ShownRecord]] = defaultdict(list)
        self._gaps: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._beat_ms = 0
        self._first_ms: int | None = None
        self._last_ms: int | None = None

    def add(self, entry: Entry) -> None:
        """Process the next entry of the log."""
        match entry:
            # `Arrival` and `Happening` are first, because they are most frequent. After
            # an `Arrival`, its effects follow as entries of their own (`Happening`).
            case Arrival():
                self._messages.arrived(entry)
            case Happening():
                self._happened(entry)
            case Transmission():
                self._composed[entry.number] = self._compositions.of(entry)
                self._messages.transmitted(entry)
            case Sighting():
                self._sighted(entry)
            case Presence():
                self._compositions.joined(entry)
                self._messages.moved(entry)
            case Heartbeat():
                self._recorded(entry.at_ms)
                self._gaps.setdefault(entry.tap, [])
                self._beat_ms = max(self._beat_ms, entry.at_ms)
            case TapGap():
                span = {
                    "from_ms": entry.at_ms,
                    "until_ms": entry.until_ms,
                    "cause": entry.cause.value,
                }
                self._gaps[entry.tap].append(span)

    def concluded(self) -> dict[str, Conclusions]:
        """Return the conclusions of a correct monitor, by channel."""
        # The end is the greatest time of all records, because heartbeats also advance
        # the clock.
        end_ms = self._last_ms or 0
        return {
            channel_id: Conclusions(TapView(records), end_ms)
            for channel_id, records in self._shown.items()
        }

    def stories(self, channel_id: str) -> Mapping[str, Story]:
        """Return what happened to each message of a channel, by id."""
        return self._messages.stories(channel_id)

    def document(self) -> dict[str, Any]:
        """Return the truth as JSON values, with sorted keys.

        `channels` and `totals` hold the figures that a correct monitor reports. For
        each channel and message id, `messages` holds facts that no report can contain:
        what happened to the message, and what recorded frames show. For each tap,
        `taps` holds the periods in which the tap recorded nothing, as times of the
        tap's clock.
        """
        concluded = self.concluded()
        nothing = Conclusions(TapView([]), self._last_ms or 0)
        channels = {
            channel_id: figures_of(conclusions)
            for channel_id, conclusions in concluded.items()
        }
        return _sorted(
            {
                "schema": SCHEMA,
                "scenario": self._scenario,
                "seed": self._seed,
                "window": {"first_event": self._first_ms, "last_event": self._last_ms},
                "totals": totals_of(channels.values()),
                "channels": channels,
                "taps": {tap: {"gaps": gaps} for tap, gaps in self._gaps.items()},
                "messages": {
                    channel_id: {
                        message_id: story
                        | concluded.get(channel_id, nothing).document_of(message_id)
                        for message_id, story in stories.items()
                    }
                    for channel_id, stories in self._messages.document()
                },
            }
        )

    def _sighted(self, sighting: Sighting) -> None:
        transmission = sighting.transmission
        self._recorded(sighting.at_ms)
        self._messages.sighted(sighting)
        shown = self._shown[transmission.channel_id]
        before_ms = shown[-1].clock_ms if shown else 0
        shown.append(
            ShownRecord(
                sighting.at_ms,
                max(before_ms, self._beat_ms, sighting.at_ms),
                transmission.number,
                transmission.cause,
                self._composed[transmission.number],
            )
        )

    def _happened(self, happening: Happening) -> None:
        if isinstance(happening.event, Received):
            # From now on, the id is in the participant's filter.
            received = self._compositions.received_by(
                happening.channel_id, happening.participant
            )
            received.add(happening.event.message_id)
        self._messages.happened(happening)

    def _recorded(self, at_ms: int) -> None:
        self._first_ms = at_ms if self._first_ms is None else min(self._first_ms, at_ms)
        self._last_ms = at_ms if self._last_ms is None else max(self._last_ms, at_ms)


def _sorted(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _sorted(value) if isinstance(value, Mapping) else value
        for name, value in sorted(tree.items())
    }
