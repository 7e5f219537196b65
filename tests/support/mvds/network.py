"""A few nodes and a network that loses, delays and duplicates payloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from sds_core.mvds.events import Delivered, Event
from sds_core.mvds.node import Node
from sds_core.mvds.options import Options
from sds_core.mvds.payload import Payload, decode, encode

GROUP = b"g" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What happens to payloads.

    Attributes:
        loss: Probability that one is lost.
        copies: Probability that one arrives a second time, later.
        delay_epochs: Most epochs that one is late by; so payloads overtake each other.
    """

    loss: float = 0.0
    copies: float = 0.0
    delay_epochs: int = 0


CALM = Weather()


class Network:
    """Nodes that tick together. Payloads cross the network as bytes.

    Args:
        nodes: The nodes.
        weather: What happens to payloads; may be changed at any time.
        seed: Of what happens.

    Attributes:
        nodes: Node by peer id.
        events: Events by peer id.
        sent: Number of records sent, by field of the payload.
    """

    def __init__(
        self, nodes: Iterable[Node], weather: Weather = CALM, seed: int = 1
    ) -> None:
        self.nodes = {node.peer_id: node for node in nodes}
        self.weather = weather
        self.events: dict[bytes, list[Event]] = {peer: [] for peer in self.nodes}
        self.sent: Counter[str] = Counter()
        self._random = Random(seed)
        self._epoch = 0
        self._in_flight: list[tuple[int, bytes, bytes, bytes]] = []

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way and no node has anything to send."""
        return not self._in_flight and not any(
            node.records or node.pending_acks for node in self.nodes.values()
        )

    def delivered(self, peer: bytes) -> list[bytes]:
        """Ids of the messages that a node delivered, in order."""
        events = self.events[peer]
        return [one.message_id for one in events if isinstance(one, Delivered)]

    def run(self, epochs: int) -> None:
        """Let some epochs pass."""
        for _ in range(epochs):
            self.step()

    def run_until_quiet(self, most_epochs: int = 5_000) -> int:
        """Let epochs pass until nothing is left to send; returns how many.

        Raises:
            AssertionError: It did not become quiet.
        """
        for epoch in range(most_epochs):
            if self.is_quiet:
                return epoch
            self.step()
        message = f"not quiet after {most_epochs} epochs"
        raise AssertionError(message)

    def step(self) -> None:
        """Let all nodes tick once, and what is due arrive."""
        self._epoch += 1
        for peer, node in self.nodes.items():
            step = node.tick()
            self.events[peer] += step.events
            for receiver, payload in step.payloads.items():
                self._send(peer, receiver, payload)
        due = [one for one in self._in_flight if one[0] <= self._epoch]
        self._in_flight = [one for one in self._in_flight if one[0] > self._epoch]
        for _, sender, receiver, value in due:
            events = self.nodes[receiver].receive(sender, decode(value))
            self.events[receiver] += events

    def _send(self, sender: bytes, receiver: bytes, payload: Payload) -> None:
        for kind in ("acks", "offers", "requests", "messages"):
            if count := len(getattr(payload, kind)):
                self.sent[kind] += count
        value = encode(payload)
        for _ in range(2 if self._random.random() < self.weather.copies else 1):
            if self._random.random() >= self.weather.loss:
                late = self._random.randint(0, self.weather.delay_epochs)
                arrival = self._epoch + late
                self._in_flight.append((arrival, sender, receiver, value))


def group_of(
    peers: Iterable[bytes], options: Callable[[bytes], Options] = lambda _: Options()
) -> list[Node]:
    """Nodes that are all in one group; each has the options for its id."""
    ids = list(peers)
    nodes = [Node(peer, options(peer)) for peer in ids]
    for node in nodes:
        node.add_group(GROUP, [peer for peer in ids if peer != node.peer_id])
    return nodes


def pair(options: Options | None = None) -> tuple[Node, Node]:
    """Two nodes, `alice` and `bob`, in one group."""
    alice, bob = group_of([b"alice", b"bob"], lambda _: options or Options())
    return alice, bob
