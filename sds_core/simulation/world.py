"""What simulations of all protocols have: virtual time, a network, taps and a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from sds_core.simulation.agenda import Agenda
from sds_core.simulation.log import Heartbeat, TapGap
from sds_core.simulation.network import Network
from sds_core.simulation.scenario import BaseScenario
from sds_core.simulation.streams import Streams
from sds_core.simulation.tap import SentT, Tap

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
