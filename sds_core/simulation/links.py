"""Decides whether a transmission arrives over a link, and when."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sds_core.simulation.delays import Delay
from sds_core.simulation.scenario import Bursts, Link
from sds_core.simulation.streams import Draws, Streams

Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
Delays = NDArray[np.int64]


class Links:
    """Links from senders to receivers, with equal settings and independent draws.

    Each transmission draws a loss and a delay for each receiver, even if the receiver
    is offline. So the draws do not depend on which participants are present.

    An index identifies a sender or a receiver. `name` is the purpose that selects the
    random streams (`Streams`).
    """

    def __init__(
        self, link: Link, senders: int, receivers: int, streams: Streams, name: str
    ) -> None:
        self._loss = link.loss
        chances = streams.vector(name, "loss")
        self._chances = Draws(chances.random)
        self._delays = delay_draws(link.delay, streams.vector(name, "delay"))
        self._bursty: BurstyLinks | None = None
        if link.bursts is not None:
            states = streams.vector(name, "bursts")
            self._bursty = BurstyLinks(link.bursts, senders, receivers, states)

    def carry(
        self, sender: int, receivers: Indices, elapsed_ms: int
    ) -> tuple[Flags, Delays]:
        """Send a transmission over the links from a sender to some receivers.

        `elapsed_ms` is the time since the simulation's start. It must not decrease from
        call to call. The results are two arrays with one value per receiver: whether
        the transmission arrives, and its delay in ms, at least 1.
        """
        count = len(receivers)
        loss: float | NDArray[np.float64] = self._loss
        if self._bursty is not None:
            bad = self._bursty.are_bad(sender, receivers, elapsed_ms)
            loss = np.where(bad, self._bursty.loss, loss)
        return self._chances.take(count) >= loss, self._delays.take(count)


def delay_draws(delay: Delay, generator: Generator) -> Draws[np.int64]:
    """Return a source of random delays in whole ms. Each is at least 1."""

    def whole_ms(count: int) -> Delays:
        drawn = np.rint(delay.draw(generator, count)).astype(np.int64)
        return np.maximum(drawn, 1)

    return Draws(whole_ms)


class BurstyLinks:
    """Tracks which links are in the bad state of the Gilbert-Elliott model.

    A link's state is a Markov chain in continuous time. The state is drawn only when
    the link carries a transmission. The probability of the bad state follows exactly
    from the state that was drawn previously and the time since then.
    """

    def __init__(
        self, bursts: Bursts, senders: int, receivers: int, generator: Generator
    ) -> None:
        self.loss = bursts.loss
        total_s = bursts.mean_good_s + bursts.mean_bad_s
        self._share_bad = bursts.mean_bad_s / total_s
        rate_per_s = 1 / bursts.mean_good_s + 1 / bursts.mean_bad_s
        self._decay_per_ms = -rate_per_s / 1_000
        shape = (senders, receivers)
        self._bad = generator.random(shape) < self._share_bad
        self._known_ms = np.zeros(shape, np.int64)
        self._chances = Draws(generator.random)

    def are_bad(self, sender: int, receivers: Indices, elapsed_ms: int) -> Flags:
        """Return for each receiver whether the link to it is in the bad state.

        `elapsed_ms` is the time since the simulation's start.
        """
        known_ms, bad = self._known_ms[sender], self._bad[sender]
        since_ms = elapsed_ms - known_ms[receivers]
        # How much the previously drawn state affects the new state: from 0 (not at all)
        # to 1 (the state stays).
        memory = np.exp(self._decay_per_ms * since_ms)
        chance = self._share_bad + (bad[receivers] - self._share_bad) * memory
        now_bad: Flags = self._chances.take(len(receivers)) < chance
        bad[receivers] = now_bad
        known_ms[receivers] = elapsed_ms
        return now_bad
