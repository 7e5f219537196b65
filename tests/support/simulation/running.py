"""Runs a scenario, and finds entries in its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from sds_core.message_channel.events import Event
from sds_core.simulation.log import Entry, Happening
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.simulator import simulate

START_MS = 1_760_000_000_000
EntryT = TypeVar("EntryT")
EventT = TypeVar("EventT", bound=Event)


def run(mapping: Mapping[str, Any], seed: int = 1) -> list[Entry]:
    """Simulate all of a scenario."""
    return list(simulate(Scenario.from_mapping(mapping), seed, START_MS))


def of(kind: type[EntryT], log: Iterable[Entry]) -> list[EntryT]:
    """Return the entries of one kind."""
    return [entry for entry in log if isinstance(entry, kind)]


def told(kind: type[EventT], log: Iterable[Entry]) -> list[tuple[str, EventT]]:
    """Return the events of one kind, with who told them."""
    return [
        (entry.participant, entry.event)
        for entry in of(Happening, log)
        if isinstance(entry.event, kind)
    ]
