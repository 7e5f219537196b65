"""Synchronisations without a network."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sds_core.prolly.batched.client import BatchedClient
from sds_core.prolly.batched.server import BatchedServer
from sds_core.prolly.document import DocumentServer
from sds_core.prolly.frames import Frame
from sds_core.prolly.item import Item
from sds_core.prolly.outcome import DEFAULT_LIMITS, Client, Limits, Server
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.document_client import DocumentClient


class Protocol(NamedTuple):
    """One of the two protocols.

    Attributes:
        name: For the names of tests.
        client, server: Make a side of it.
    """

    name: str
    client: Callable[[ProllyTree, Limits], Client]
    server: Callable[[ProllyTree, Limits], Server]


def _batched_client(tree: ProllyTree, limits: Limits) -> Client:
    return BatchedClient(tree, random.Random(5).randbytes, limits=limits)


DOCUMENT = Protocol("document", DocumentClient, DocumentServer)
BATCHED = Protocol("batched", _batched_client, BatchedServer)
BOTH = (DOCUMENT, BATCHED)


class Course(NamedTuple):
    """What a synchronisation took.

    Attributes:
        frames: Frames of the server that the client received.
        rounds: Times that the client waited.
        size: Bytes in both directions.
    """

    frames: int
    rounds: int
    size: int


def synchronise(
    client: Client, server: Server, break_after: int | None = None
) -> Course:
    """Let a client and a server talk.

    Args:
        client: Starts a new connection.
        server: Answers on it.
        break_after: Number of the server's frames after which the connection breaks.
    """
    frames = rounds = size = 0
    waiting: deque[Frame] = deque(client.start())
    while client.outcome is None:
        assert waiting, "both sides wait for each other"
        rounds += 1
        answers = [answer for frame in waiting for answer in server.receive(frame)]
        size += _size(waiting) + _size(answers)
        waiting.clear()
        for answer in answers:
            if frames == break_after:
                return Course(frames, rounds, size)
            frames += 1
            waiting.extend(client.receive(answer))
    assert not waiting
    return Course(frames, rounds, size)


def found(
    protocol: Protocol,
    here: Iterable[Item],
    there: Iterable[Item],
    fan_out: int,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[Sequence[Item], Sequence[Item]]:
    """Return what a synchronisation of two sets finds: only here, only there."""
    client = protocol.client(ProllyTree(here, fan_out), limits)
    synchronise(client, protocol.server(ProllyTree(there, fan_out), limits))
    assert client.outcome is not None
    return client.outcome.only_here, client.outcome.only_there


def _size(frames: Iterable[Frame]) -> int:
    return sum(len(bytes(frame)) for frame in frames)
