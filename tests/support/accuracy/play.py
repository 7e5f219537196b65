"""One simulation: what happened, and what the monitor reported during it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


class Lack(NamedTuple):
    """What the monitor said of a participant that a message was lost to.

    Attributes:
        since_ms: Time of the first frame that showed that the participant lacked it.
        found_ms: The clock when the monitor first called it lost to the participant.
    """

    since_ms: int
    found_ms: int


class VerdictSpan(NamedTuple):
    """Event time during which a channel had one verdict for one reason, Unix ms."""

    channel: str
    verdict: str
    reason: str
    from_ms: int
    to_ms: int


class Witness(Truth):
    """Truth that also stores what the figures are computed from.

    Attributes:
        sightings: In topic order.
        dialects: Of each participant, by channel and name.
        moves: When each participant came or left, by channel and name, in order.
    """

    def __init__(self, scenario: str, seed: int) -> None:
        super().__init__(scenario, seed)
        self.sightings: list[Sighting] = []
        self.dialects: dict[tuple[str, str], Dialect] = {}
        self.moves: defaultdict[tuple[str, str], list[tuple[int, bool]]] = defaultdict(
            list
        )

    def add(self, entry: Entry) -> None:
        """Add the next entry of the log."""
        match entry:
            case Sighting():
                self.sightings.append(entry)
            case Presence(channel_id=channel, participant=who, profile=profile):
                self.dialects[channel, who] = profile.dialect
                self.moves[channel, who].append((entry.at_ms, entry.present))
        super().add(entry)


@dataclass(frozen=True, slots=True)
class Play:
    """What happened in a simulation, and what the monitor reported during it.

    Attributes:
        truth: The truth's document.
        witness: Who saw it happen.
        monitor: After the last record.
        undelivered: Pairs that an incident ever named: by channel, message id and
            participant.
        rebroadcasts: What the monitor called each, beside its real cause.
        verdicts: Verdicts of all channels, as long as each held.
    """

    truth: dict[str, Any]
    witness: Witness
    monitor: Monitor
    undelivered: dict[tuple[str, str, str], Lack] = field(default_factory=dict)
    rebroadcasts: Counter[tuple[Said, Cause]] = field(default_factory=Counter)
    verdicts: list[VerdictSpan] = field(default_factory=list)


def play(scenario: Scenario, seed: int, start_ms: int = START_MS) -> Play:
    """Simulate, and let the monitor read what the taps write.

    It reads record by record: so is known what it says at every moment, and of what.
    """
    witness = Witness(scenario.name, seed)
    records = list(simulated_records(scenario, seed, start_ms, PARTITIONS, witness))
    monitor = Monitor()
    result = Play(witness.document(), witness, monitor)
    sightings = iter(witness.sightings)
    running: dict[str, VerdictSpan] = {}
    said: Counter[Said] = Counter()
    clock_ms = 0
    for batch, clock_ms in batches(records, 1):
        told = monitor.read(batch, clock_ms)
        views = monitor.snapshot.views["sds"].totals
        channels = views.values()
        for name, one in views.items():
            now = one.verdict.value, one.verdict_reason
            before = running.get(name)
            if before is None or before[1:3] != now:
                if before is not None:
                    result.verdicts.append(before._replace(to_ms=clock_ms))
                running[name] = VerdictSpan(name, *now, clock_ms, clock_ms)
        for (channel, kind, message_id), incident in told.items():
            if kind == IncidentKind.UNDELIVERED:
                for who, since_ms in incident.lacking.items():
                    key = channel, message_id, who
                    result.undelivered.setdefault(key, Lack(since_ms, clock_ms))
        earlier, said = said, _said(channels)
        if batch[0].key is not None:
            cause = next(sightings).transmission.cause
            for called in (said - earlier).elements():
                result.rebroadcasts[called, cause] += 1
    result.verdicts.extend(one._replace(to_ms=clock_ms) for one in running.values())
    return result


def _said(channels: Iterable[ChannelTotals]) -> Counter[Said]:
    """Count the rebroadcasts by the cause that the monitor has reported so far."""
    said: Counter[Said] = Counter()
    for totals in channels:
        said["repair"] += totals.rebroadcasts_repair
        said["retry"] += totals.rebroadcasts_retry
    return said
