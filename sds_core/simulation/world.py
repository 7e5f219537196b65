"""What simulations of all protocols have: virtual time, a network, taps and a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np

from sds_core.simulation import scenario as scenarios
from sds_core.simulation.links import Delays, Flags, Indices, Links
from sds_core.simulation.log import Heartbeat, TapGap
from sds_core.simulation.scenario import BaseScenario
from sds_core.simulation.streams import Agenda, Streams
from sds_core.simulation.tap import SentT, Tap


class Network:
    """Carries transmissions between participants, identified by index.

    Args:
        settings: Settings of the links, and of partitions.
        participants: Number of participants.
        streams: Random streams of the simulation.
    """

    def __init__(
        self, settings: scenarios.Network, participants: int, streams: Streams
    ) -> None:
        self._links = Links(settings, participants, participants, streams, "network")
        self._lossless_ms = settings.lossless_until_s * 1_000
        self._partitions = [
            _Cut(partition, participants, streams, str(number))
            for number, partition in enumerate(settings.partitions)
        ]

    def carry(
        self, sender: int, receivers: Indices, elapsed_ms: int
    ) -> tuple[Flags, Delays]:
        """Send to some participants; see `Links.carry`."""
        arrives, delays_ms = self._links.carry(sender, receivers, elapsed_ms)
        if elapsed_ms < self._lossless_ms:
            arrives = np.ones_like(arrives)
        for cut in self._partitions:
            if cut.span.holds(elapsed_ms):
                arrives &= cut.lets_through(sender, receivers)
        return arrives, delays_ms

    def reaches_taps(self, sender: int, elapsed_ms: int) -> bool:
        """Return whether frames of a participant reach the taps despite partitions."""
        return not any(
            cut.span.holds(elapsed_ms) and cut.silences(sender)
            for cut in self._partitions
        )


class _Cut:
    def __init__(
        self,
        partition: scenarios.Partition,
        participants: int,
        streams: Streams,
        name: str,
    ) -> None:
        self.span = partition
        drawn = streams.vector("partition", name).permutation(participants)
        self._inside = np.zeros(participants, np.bool_)
        self._inside[drawn[: partition.participants]] = True
        self._outgoing = partition.direction != "incoming"
        self._incoming = partition.direction != "outgoing"

    def lets_through(self, sender: int, receivers: Indices) -> Flags:
        if self._inside[sender]:
            if self._outgoing:
                return self._inside[receivers]
        elif self._incoming:
            return ~self._inside[receivers]
        return np.ones(len(receivers), np.bool_)

    def silences(self, sender: int) -> bool:
        return self._outgoing and bool(self._inside[sender])


EntryT = TypeVar("EntryT")


class World(Generic[EntryT, SentT]):
    """Base of a simulation.

    Args:
        scenario: Settings of the simulation.
        count: Number of participants.
        seed: Seed of everything that is random.
        start_ms: Start, Unix ms.
        sighting: Makes the entry of a tap's record: of its event time by the tap's
            clock, the tap's name and number, and what was recorded.
    """

    def __init__(
        self,
        scenario: BaseScenario,
        count: int,
        seed: int,
        start_ms: int,
        sighting: Callable[[int, str, int, SentT], EntryT],
    ) -> None:
        self._start_ms = start_ms
        self._talk_end_ms = start_ms + scenario.duration_ms
        self._end_ms = start_ms + scenario.total_ms
        self._streams = streams = Streams(seed)
        self._agenda = Agenda()
        self._news: list[EntryT | Heartbeat | TapGap] = []
        self._log = self._news.append
        self._network = Network(scenario.network, count, streams)
        self._sent = 0

        def sighted(at_ms: int, tap: str, seq: int, sent: SentT) -> None:
            self._log(sighting(at_ms, tap, seq, sent))

        self._taps = [
            Tap(tap, count, start_ms, streams, self._agenda, sighted, self._log)
            for tap in scenario.taps
        ]

    def run(self) -> Iterator[EntryT | Heartbeat | TapGap]:
        """Do all that is due until the end; yields what happens."""
        news = self._news
        for now_ms, action in self._agenda.until(self._end_ms):
            action(now_ms)
            if news:
                yield from news
                news.clear()

    def _next_number(self) -> int:
        """Count a sending; returns its number, from 0."""
        self._sent += 1
        return self._sent - 1

    def _tell_taps(self, sender: int, sent: SentT, elapsed_ms: int) -> None:
        if self._network.reaches_taps(sender, elapsed_ms):
            for tap in self._taps:
                tap.listen(sender, sent)
