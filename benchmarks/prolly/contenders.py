"""The contenders in Python: both protocols of ours, and all hashes at once.

Each session passes its bytes through frames as a connection does, and takes processor
time of both sides.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Final, NamedTuple, TypeVar
from unittest.mock import patch

from benchmarks.prolly.workload import Workload
from sds_core.prolly.batched import client as batched_client
from sds_core.prolly.batched import lists as batched_lists
from sds_core.prolly.batched import server as batched_server
from sds_core.prolly.batched.client import BatchedClient
from sds_core.prolly.batched.server import BatchedServer
from sds_core.prolly.document import DocumentServer
from sds_core.prolly.frames import Frame, FrameReader
from sds_core.prolly.item import HASH_BYTES, KEY_BYTES, Item, pack, unpack
from sds_core.prolly.outcome import DEFAULT_LIMITS, Client, Outcome, Server
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.document_client import DocumentClient

_T = TypeVar("_T")

LONG_BYTES: Final = 16
"""Length of a fingerprint of negentropy."""

_HEAD_BYTES: Final = 5
_HASH_BITS: Final = HASH_BYTES * 8


class WrongResult(Exception):
    """A contender did not find the exact difference, so its figures do not count."""

    def __init__(self, contender: str, workload: Workload, outcome: Outcome) -> None:
        super().__init__(
            f"{contender}: found {len(outcome.only_here)} and "
            f"{len(outcome.only_there)} differences instead of "
            f"{len(workload.lacked_there)} and {len(workload.lacked_here)}"
        )


class Session(NamedTuple):
    """What a synchronisation took.

    Attributes:
        rounds: Times that the client waited for the server.
        sent, received: Bytes of the client.
        client_ms, server_ms: Processor time.
    """

    rounds: int
    sent: int
    received: int
    client_ms: float
    server_ms: float


def batched(here: ProllyTree, there: ProllyTree, workload: Workload) -> Session:
    """Run our own protocol.

    Raises:
        WrongResult: The result is not the exact difference.
    """
    rng = random.Random("salts")  # noqa: S311 - a benchmark
    client, made_ms = timed(lambda: BatchedClient(here, rng.randbytes))
    return _run("batched", client, BatchedServer(there), workload, made_ms)


def batched_long(here: ProllyTree, there: ProllyTree, workload: Workload) -> Session:
    """Run our own protocol with fingerprints as long as those of negentropy.

    Raises:
        WrongResult: The result is not the exact difference.
    """
    with ExitStack() as stack:
        for module in (batched_client, batched_server, batched_lists):
            changed = patch.object(module, "FINGERPRINT_BYTES", LONG_BYTES)
            stack.enter_context(changed)
        return batched(here, there, workload)


def document(here: ProllyTree, there: ProllyTree, workload: Workload) -> Session:
    """Run the document's protocol.

    Raises:
        WrongResult: The result is not the exact difference.
    """
    client = DocumentClient(here)
    return _run("document", client, DocumentServer(there), workload)


def all_keys(workload: Workload) -> Session:
    """Let the server send the keys of all its messages, which the client compares.

    Raises:
        WrongResult: The result is not the exact difference.
    """
    lacked = set(workload.lacked_here), set(workload.lacked_there)
    here, there = (
        b"".join(pack(item) for at, item in enumerate(workload.items) if at not in one)
        for one in lacked
    )
    received, server_ms = timed(lambda: bytes(_HEAD_BYTES) + there)
    outcome, client_ms = timed(lambda: _compared(here, received[_HEAD_BYTES:]))
    check("all hashes", workload, outcome)
    return Session(1, _HEAD_BYTES, len(received), client_ms, server_ms)


def least_bytes(differences: int) -> int:
    """Return the fewest bytes in which a side can learn so many unknown hashes.

    They are any set of so many of the 2**256 hashes: log2 of the binomial coefficient
    (2**256 over d) is 256 d - log2 d! bits, as far as it can be seen in bytes.
    """
    bits = _HASH_BITS * differences - math.lgamma(differences + 1) / math.log(2)
    return math.ceil(bits / 8)


def check(contender: str, workload: Workload, outcome: Outcome) -> None:
    """Compare a result with the exact difference.

    Raises:
        WrongResult: It is another one.
    """
    found = [*outcome.only_here, *outcome.only_there]
    if (
        set(outcome.only_here) != workload.only_here
        or set(outcome.only_there) != workload.only_there
        or len(found) != len(workload.lacked_here) + len(workload.lacked_there)
    ):
        raise WrongResult(contender, workload, outcome)


def timed(work: Callable[[], _T]) -> tuple[_T, float]:
    """Return the value of a function and the processor time that it took, in ms."""
    begin_ns = time.process_time_ns()
    value = work()
    return value, (time.process_time_ns() - begin_ns) / 1_000_000


def _run(
    contender: str,
    client: Client,
    server: Server,
    workload: Workload,
    client_ms: float = 0.0,
) -> Session:
    to_server = FrameReader(DEFAULT_LIMITS.frame_bytes)
    to_client = FrameReader(DEFAULT_LIMITS.frame_bytes)
    rounds = sent = received = 0
    server_ms = 0.0
    request, spent_ms = timed(lambda: _joined(client.start()))
    client_ms += spent_ms
    while request:
        rounds += 1
        sent += len(request)
        answer, spent_ms = timed(lambda: _passed(to_server, request, server.receive))  # noqa: B023 - called at once
        server_ms += spent_ms
        received += len(answer)
        request, spent_ms = timed(lambda: _passed(to_client, answer, client.receive))  # noqa: B023
        client_ms += spent_ms
    outcome = client.outcome
    check(contender, workload, Outcome([], []) if outcome is None else outcome)
    return Session(rounds, sent, received, client_ms, server_ms)


def _passed(
    reader: FrameReader, data: bytes, receive: Callable[[Frame], Iterable[Frame]]
) -> bytes:
    """Return a side's answer to bytes of the other."""
    return b"".join(_joined(receive(frame)) for frame in reader.feed(data))


def _joined(frames: Iterable[Frame]) -> bytes:
    return b"".join(map(bytes, frames))


def _compared(here: bytes, there: bytes) -> Outcome:
    ours, theirs = _keys(here), _keys(there)
    return Outcome(_items(ours - theirs), _items(theirs - ours))


def _keys(joined: bytes) -> set[bytes]:
    return {joined[at : at + KEY_BYTES] for at in range(0, len(joined), KEY_BYTES)}


def _items(keys: Iterable[bytes]) -> list[Item]:
    return sorted(map(unpack, keys))
