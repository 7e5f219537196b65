"""Simulates nodes of MVDS on one network, in virtual time.

`sds_core.mvds` implements the nodes. The simulator is each node's application: it calls
the node's `tick` in each epoch, and `receive` for each payload that arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Final

import numpy as np

from sds_core.mvds.backoff import DEFAULT, Backoff, deployed_exponential, linear
from sds_core.mvds.events import Acknowledged, Delivered, Event
from sds_core.mvds.node import Node
from sds_core.mvds.options import Options
from sds_core.mvds.payload import ID_BYTES, Message, Payload, encode, message_id
from sds_core.simulation.mvds.log import (
    AckArrived,
    Made,
    MvdsEntry,
    PayloadSighting,
    Reached,
    Sending,
)
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.world import World

_PEER_BYTES: Final = 8


def simulate_mvds(
    scenario: MvdsScenario, seed: int, start_ms: int
) -> Iterator[MvdsEntry]:
    """Yield a log entry for each event, in order of simulation time.

    The same arguments give the same entries.
    """
    yield from _Simulation(scenario, seed, start_ms).run()


class _Simulation(World[MvdsEntry, Sending]):
    def __init__(self, scenario: MvdsScenario, seed: int, start_ms: int) -> None:
        count = scenario.nodes
        super().__init__(scenario, count, seed, start_ms, PayloadSighting)
        streams = self._streams
        self._scenario = scenario
        ids = streams.scalar("ids")
        self._ids = [ids.randbytes(_PEER_BYTES) for _ in range(count)]
        self._groups = [ids.randbytes(ID_BYTES) for _ in range(scenario.groups)]
        self._places = {peer: place for place, peer in enumerate(self._ids)}
        self._nodes = [self._node(place) for place in range(count)]
        self._made: set[bytes] = set()
        phases = streams.scalar("phases").sample(range(scenario.epoch_ms), count)
        for place, phase_ms in enumerate(phases):
            self._agenda.add(start_ms + phase_ms, partial(self._tick, place))
        for place in range(scenario.senders):
            for group_id in self._groups:
                random = streams.scalar("messages", str(place), group_id.hex())
                self._plan_message(place, group_id, random, start_ms)

    def _node(self, place: int) -> Node:
        options = Options(
            mode=self._scenario.mode,
            backoff=self._backoff(place),
            forward=self._scenario.forward,
        )
        node = Node(self._ids[place], options)
        peers = [peer for peer in self._ids if peer != node.peer_id]
        for group_id in self._groups:
            node.add_group(group_id, peers)
        return node

    def _backoff(self, place: int) -> Backoff:
        match self._scenario.backoff:
            case "linear":
                return linear
            case "deployed":
                return deployed_exponential(self._streams.scalar("waits", str(place)))
            case _:
                return DEFAULT

    def _plan_message(
        self, place: int, group_id: bytes, random: Random, after_ms: int
    ) -> None:
        mean_ms = self._scenario.interval_s * 1_000
        at_ms = after_ms + max(1, round(random.expovariate(1 / mean_ms)))
        if at_ms < self._talk_end_ms:
            make = partial(self._make, place, group_id, random)
            self._agenda.add(at_ms, make)

    def _make(self, place: int, group_id: bytes, random: Random, now_ms: int) -> None:
        node = self._nodes[place]
        body = random.randbytes(self._scenario.payload_bytes)
        timestamp = now_ms // 1_000
        # Short bodies repeat. Two messages of a group with the same body and timestamp
        # would have the same id.
        while message_id(Message(group_id, timestamp, body)) in self._made:
            timestamp += 1
        made = node.append(group_id, body, timestamp)
        self._made.add(made)
        self._log(Made(now_ms, node.peer_id.hex(), made, group_id))
        self._plan_message(place, group_id, random, now_ms)

    def _tick(self, place: int, now_ms: int) -> None:
        step = self._nodes[place].tick()
        self._happened(place, step.events, now_ms)
        for peer, payload in step.payloads.items():
            self._send(place, self._places[peer], payload, now_ms)
        again_ms = now_ms + self._scenario.epoch_ms
        self._agenda.add(again_ms, partial(self._tick, place))

    def _send(self, sender: int, receiver: int, payload: Payload, now_ms: int) -> None:
        names = (self._ids[sender].hex(), self._ids[receiver].hex())
        value = encode(payload)
        sending = Sending(self._next_number(), now_ms, *names, payload, value)
        self._log(sending)
        elapsed_ms = now_ms - self._start_ms
        there = np.full(1, receiver, np.intp)
        arrives, delays_ms = self._network.carry(sender, there, elapsed_ms)
        if arrives[0]:
            take = partial(self._take, sender, receiver, payload)
            self._agenda.add(now_ms + int(delays_ms[0]), take)
        self._tell_taps(sender, sending, elapsed_ms)

    def _take(self, sender: int, receiver: int, payload: Payload, now_ms: int) -> None:
        events = self._nodes[receiver].receive(self._ids[sender], payload)
        acks = set(payload.acks)
        for event in events:
            if isinstance(event, Acknowledged) and event.message_id in acks:
                name = event.peer.hex()
                self._log(AckArrived(now_ms, name, event.message_id))
        self._happened(receiver, events, now_ms)

    def _happened(self, place: int, events: list[Event], now_ms: int) -> None:
        for event in events:
            if isinstance(event, Delivered):
                name = self._ids[place].hex()
                self._log(Reached(now_ms, name, event.message_id))
