"""The network between participants: links, and partitions that cut some of them."""

from __future__ import annotations

import numpy as np

from sds_core.simulation import scenario as scenarios
from sds_core.simulation.links import Delays, Flags, Indices, Links
from sds_core.simulation.streams import Streams


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
        self._partitions = [
            _Cut(partition, participants, streams, str(number))
            for number, partition in enumerate(settings.partitions)
        ]

    def carry(
        self, sender: int, receivers: Indices, elapsed_ms: int
    ) -> tuple[Flags, Delays]:
        """Send to some participants; see `Links.carry`."""
        arrives, delays_ms = self._links.carry(sender, receivers, elapsed_ms)
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
