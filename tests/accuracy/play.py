"""One simulation: what happened, and what the monitor told of it on the way."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from connectors.simulator.records import simulated_records
from sds_core.message_channel.events import Cause
from sds_core.observer.incidents import IncidentKind
from sds_core.simulation.log import Entry, Presence, Sighting
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from sds_core.wire import Dialect
from tests.support.monitor import Monitor, batches

START_MS = 1_760_000_000_000
PARTITIONS = 4

Said = str
"""What the monitor called a rebroadcast: ``repair`` or ``retry``."""


class Witness(Truth):
    """Truth that also keeps what the figures are counted from.

    Attributes:
        sightings: In topic order.
        dialects: Of each participant, by channel and name.
    """

    def __init__(self, scenario: str, seed: int) -> None:
        super().__init__(scenario, seed)
        self.sightings: list[Sighting] = []
        self.dialects: dict[tuple[str, str], Dialect] = {}

    def add(self, entry: Entry) -> None:
        """Take the next entry of the log."""
        match entry:
            case Sighting():
                self.sightings.append(entry)
            case Presence(channel_id=channel, participant=who, profile=profile):
                self.dialects[channel, who] = profile.dialect
        super().add(entry)


@dataclass(slots=True)
class Play:
    """What happened in a simulation, and what the monitor told of it.

    The monitor read its records one by one, so that what it says at every moment is
    known, and to which record it says it.

    Attributes:
        truth: The truth's document.
        witness: Who saw it happen.
        monitor: After the last record.
        undelivered: Pairs that an incident ever named: channel, message id and
            participant.
        rebroadcasts: What the monitor called each, beside its real cause.
        verdicts_ms: By channel: event time spent under each verdict and reason.
    """

    truth: dict[str, Any]
    witness: Witness
    monitor: Monitor
    undelivered: set[tuple[str, str, str]] = field(default_factory=set)
    rebroadcasts: Counter[tuple[Said, Cause]] = field(default_factory=Counter)
    verdicts_ms: defaultdict[str, Counter[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )


def play(scenario: Scenario, seed: int) -> Play:
    """Simulate, and let the monitor read what the taps wrote."""
    witness = Witness(scenario.name, seed)
    records = list(simulated_records(scenario, seed, START_MS, PARTITIONS, witness))
    result = Play(witness.document(), witness, Monitor())
    sightings = iter(witness.sightings)
    before_ms = 0
    for batch, clock_ms in batches(records, 1):
        before = result.monitor.snapshot.channels
        for channel, totals in before.items():
            verdict = totals.verdict.value, totals.verdict_reason
            result.verdicts_ms[channel][verdict] += clock_ms - before_ms
        before_ms = clock_ms
        said_before = _rebroadcasts(result.monitor)
        told = result.monitor.read(batch, clock_ms)
        for (channel, kind, message_id), incident in told.items():
            if kind == IncidentKind.UNDELIVERED:
                result.undelivered.update(
                    (channel, message_id, who) for who in incident.lacking
                )
        if batch[0].key is not None:
            cause = next(sightings).transmission.cause
            for said in (_rebroadcasts(result.monitor) - said_before).elements():
                result.rebroadcasts[said, cause] += 1
    return result


def _rebroadcasts(monitor: Monitor) -> Counter[Said]:
    """How many rebroadcasts the monitor has called what so far."""
    said: Counter[Said] = Counter()
    for totals in monitor.snapshot.channels.values():
        said["repair"] += totals.rebroadcasts_repair
        said["retry"] += totals.rebroadcasts_retry
    return said
