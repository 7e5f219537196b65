"""One simulation: what happened, and what the monitor reported during it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from connectors.simulator.records import simulated_records
from sds_core.message_channel.events import Cause
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.sds.totals import ChannelTotals
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
    """Truth that also stores what the figures are computed from.

    Attributes:
        sightings: In topic order.
        dialects: Of each participant, by channel and name.
    """

    def __init__(self, scenario: str, seed: int) -> None:
        super().__init__(scenario, seed)
        self.sightings: list[Sighting] = []
        self.dialects: dict[tuple[str, str], Dialect] = {}

    def add(self, entry: Entry) -> None:
        """Add the next entry of the log."""
        match entry:
            case Sighting():
                self.sightings.append(entry)
            case Presence(channel_id=channel, participant=who, profile=profile):
                self.dialects[channel, who] = profile.dialect
        super().add(entry)


@dataclass(frozen=True, slots=True)
class Play:
    """What happened in a simulation, and what the monitor reported during it.

    Attributes:
        truth: The truth's document.
        witness: Who saw it happen.
        monitor: After the last record.
        undelivered: Pairs that an incident ever named: channel, message id and
            participant.
        rebroadcasts: What the monitor called each, beside its real cause.
        verdicts_ms: Event time of all channels under each verdict and its reason.
    """

    truth: dict[str, Any]
    witness: Witness
    monitor: Monitor
    undelivered: set[tuple[str, str, str]] = field(default_factory=set)
    rebroadcasts: Counter[tuple[Said, Cause]] = field(default_factory=Counter)
    verdicts_ms: Counter[tuple[str, str]] = field(default_factory=Counter)


def play(scenario: Scenario, seed: int, start_ms: int = START_MS) -> Play:
    """Simulate, and let the monitor read what the taps write.

    It reads record by record: so is known what it says at every moment, and of what.
    """
    witness = Witness(scenario.name, seed)
    records = list(simulated_records(scenario, seed, start_ms, PARTITIONS, witness))
    monitor = Monitor()
    result = Play(witness.document(), witness, monitor)
    sightings = iter(witness.sightings)
    before_ms = 0
    verdicts: list[tuple[str, str]] = []
    said: Counter[Said] = Counter()
    for batch, clock_ms in batches(records, 1):
        for verdict in verdicts:
            result.verdicts_ms[verdict] += clock_ms - before_ms
        told = monitor.read(batch, clock_ms)
        channels = monitor.snapshot.channels.values()
        before_ms = clock_ms
        verdicts = [(one.verdict.value, one.verdict_reason) for one in channels]
        for (channel, kind, message_id), incident in told.items():
            if kind == IncidentKind.UNDELIVERED:
                result.undelivered.update(
                    (channel, message_id, who) for who in incident.lacking
                )
        before, said = said, _said(channels)
        if batch[0].key is not None:
            cause = next(sightings).transmission.cause
            for one in (said - before).elements():
                result.rebroadcasts[one, cause] += 1
    return result


def _said(channels: Iterable[ChannelTotals]) -> Counter[Said]:
    """Count the rebroadcasts by the cause that the monitor has reported so far."""
    said: Counter[Said] = Counter()
    for totals in channels:
        said["repair"] += totals.rebroadcasts_repair
        said["retry"] += totals.rebroadcasts_retry
    return said
