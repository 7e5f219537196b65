"""Common parts of all simulations: virtual time, a network, taps and a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np

from sds_core.simulation import scenario as scenarios
from sds_core.simulation.clock import Clock
from sds_core.simulation.links import Delays, Flags, Indices, Links, delay_draws
from sds_core.simulation.log import GapCause, Heartbeat, TapGap
from sds_core.simulation.scenario import BaseScenario
from sds_core.simulation.streams import Agenda, Draws, Streams

# Receivers of a tap's links: each tap has its own links, and is their only receiver, so
# the only index is 0.
_HERE = np.zeros(1, np.intp)

EntryT = TypeVar("EntryT")


class Sent(Protocol):
    """An object that a tap may record."""

    @property
    def at_ms(self) -> int:
        """Time of sending, Unix ms."""


SentT = TypeVar("SentT", bound=Sent)


class Tap(Generic[SentT]):
    """A tap, which records what it receives.

    Args:
        sighted: Function that is called for each record. The function's arguments are
            the event time (the time of the tap's clock), the tap's name, the sequence
            number, and the recorded object.
    """

    def __init__(
        self,
        settings: scenarios.Tap,
        participants: int,
        start_ms: int,
        streams: Streams,
        agenda: Agenda,
        sighted: Callable[[int, str, int, SentT], None],
        report: Callable[[Heartbeat | TapGap], None],
    ) -> None:
        self._settings = settings
        self._start_ms = start_ms
        self._clock = Clock.set_by(
            start_ms,
            settings.clock_offset_ms,
            settings.clock_drift_ppm,
            settings.clock_jumps,
        )
        name = f"tap {settings.name}"
        self._links = Links(settings, participants, 1, streams, name)
        self._replicated = Draws(streams.vector(name, "replicas").random)
        self._further_delays = delay_draws(
            settings.delay, streams.vector(name, "replicas", "delay")
        )
        self._kept = Draws(streams.vector(name, "records").random)
        self._agenda = agenda
        self._sighted = sighted
        self._report = report
        self._seq = 0
        self._heartbeats = 0
        agenda.add(start_ms + round(settings.start_s * 1_000), self._beat)
        for spans, cause in (
            (settings.blackouts, GapCause.DOWN),
            (settings.deaf, GapCause.DEAF),
        ):
            for span in spans:
                begin_ms = start_ms + round(span.from_s * 1_000)
                end_ms = start_ms + round(span.until_s * 1_000)
                agenda.add(begin_ms, partial(self._miss, end_ms, cause))

    def listen(self, sender: int, transmission: SentT) -> None:
        """Send a transmission to this tap over the link from the sender to the tap."""
        elapsed_ms = transmission.at_ms - self._start_ms
        arrives, delays_ms = self._links.carry(sender, _HERE, elapsed_ms)
        replicated = self._replicated.take(1)[0] < self._settings.replica_share
        further_ms = int(self._further_delays.take(1)[0])
        if arrives[0]:
            record = partial(self._record, transmission)
            first_ms = transmission.at_ms + int(delays_ms[0])
            self._agenda.add(first_ms, record)
            if replicated:
                self._agenda.add(first_ms + further_ms, record)

    def _record(self, transmission: SentT, now_ms: int) -> None:
        if not self._is_up(now_ms) or _any_holds(self._settings.deaf, self._at(now_ms)):
            return
        self._seq += 1
        if self._kept.take(1)[0] >= self._settings.record_loss:
            name = self._settings.name
            at_ms = self._clock.reading(now_ms)
            self._sighted(at_ms, name, self._seq, transmission)
        else:
            self._miss(now_ms + 1, GapCause.RECORD_LOST, now_ms)

    def _miss(self, end_ms: int, cause: GapCause, now_ms: int) -> None:
        from_ms, until_ms = map(self._clock.reading, (now_ms, end_ms))
        self._report(TapGap(from_ms, self._settings.name, until_ms, cause))

    def _beat(self, now_ms: int) -> None:
        if self._is_up(now_ms):
            at_ms = self._clock.reading(now_ms)
            self._report(Heartbeat(at_ms, self._settings.name, self._seq))
        self._heartbeats += 1
        settings = self._settings
        next_s = settings.start_s + self._heartbeats * settings.heartbeat_interval_s
        next_ms = self._start_ms + round(next_s * 1_000)
        self._agenda.add(max(next_ms, now_ms + 1), self._beat)

    def _is_up(self, now_ms: int) -> bool:
        at_ms = self._at(now_ms)
        return at_ms >= self._settings.start_s * 1_000 and not _any_holds(
            self._settings.blackouts, at_ms
        )

    def _at(self, now_ms: int) -> int:
        return now_ms - self._start_ms


def _any_holds(spans: tuple[scenarios.Span, ...], elapsed_ms: int) -> bool:
    return any(span.holds(elapsed_ms) for span in spans)


class Network:
    """Carries transmissions between participants; an index identifies a participant."""

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
        """Send a transmission to the receivers; `Links.carry` describes the result."""
        arrives, delays_ms = self._links.carry(sender, receivers, elapsed_ms)
        if elapsed_ms < self._lossless_ms:
            arrives = np.ones_like(arrives)
        for cut in self._partitions:
            if cut.span.holds(elapsed_ms):
                arrives &= cut.lets_through(sender, receivers)
        return arrives, delays_ms

    def reaches_taps(self, sender: int, elapsed_ms: int) -> bool:
        """Return whether partitions let frames of a participant through to the taps."""
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


class World(Generic[EntryT, SentT]):
    """Base of a simulation.

    `sighting` returns the log entry for a tap's record. The function is called with the
    same arguments as `sighted` of `Tap`.
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
        """Run the simulation to its end, and yield the log entries."""
        news = self._news
        for now_ms, action in self._agenda.until(self._end_ms):
            action(now_ms)
            if news:
                yield from news
                news.clear()

    def _next_number(self) -> int:
        self._sent += 1
        return self._sent - 1

    def _tell_taps(self, sender: int, sent: SentT, elapsed_ms: int) -> None:
        if self._network.reaches_taps(sender, elapsed_ms):
            for tap in self._taps:
                tap.listen(sender, sent)
