"""Connections that break at every possible point, and what is asked for again."""

from __future__ import annotations

import random

import pytest

from sds_core.prolly.batched.client import BatchedClient
from sds_core.prolly.batched.server import BatchedServer
from sds_core.prolly.document import DocumentServer
from sds_core.prolly.errors import UnexpectedMessage
from sds_core.prolly.frames import Frame, Kind, frame_of, message_in
from sds_core.prolly.item import Item
from sds_core.prolly.outcome import DEFAULT_LIMITS, Limits
from sds_core.prolly.proto import batched_sync_pb2 as bb
from sds_core.prolly.proto import waku2_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.document_client import DocumentClient
from tests.support.prolly.sessions import BOTH, DOCUMENT, Protocol, synchronise

ITEMS = [Item(10 * n, n.to_bytes(32, "little")) for n in range(1, 400)]
HERE = ProllyTree(ITEMS[:300:2], 3)
THERE = ProllyTree(ITEMS[::3], 3)
NARROW = Limits(frame_bytes=6_000)
"""Some requests are divided, so that connections break between their parts."""

protocols = pytest.mark.parametrize("protocol", BOTH, ids=lambda one: one.name)


def assert_found(client: DocumentClient | BatchedClient, there: ProllyTree) -> None:
    """The outcome is that of the sets."""
    assert client.outcome is not None
    assert list(client.outcome.only_here) == sorted(set(HERE) - set(there))
    assert list(client.outcome.only_there) == sorted(set(there) - set(HERE))


def frames_of(protocol: Protocol) -> int:
    """Frames of a whole session."""
    return synchronise(
        protocol.client(HERE, NARROW), protocol.server(THERE, NARROW)
    ).frames


@protocols
def test_wherever_it_breaks_the_outcome_is_the_same(protocol: Protocol) -> None:
    """Once, after each number of frames, and once more after each frame behind it."""
    number = frames_of(protocol)
    assert number >= 3
    for first in range(number):
        for second in (0, 1, 3):
            client = protocol.client(HERE, NARROW)
            for after in (first, second, None):
                if client.outcome is None:
                    synchronise(client, protocol.server(THERE, NARROW), after)
            assert_found(client, THERE)


@protocols
def test_a_server_that_has_changed_meanwhile_is_compared_as_it_is_now(
    protocol: Protocol,
) -> None:
    """Messages came, went, or all of them went, whenever the connection broke."""
    for later in (
        THERE.changed(insert=ITEMS[:9], delete=ITEMS[30:60]),
        THERE.changed(insert=[Item(9, bytes(32))]),
        ProllyTree(fan_out=3),
        HERE,
        ProllyTree(ITEMS, 3),
    ):
        for after in range(frames_of(protocol)):
            client = protocol.client(HERE, NARROW)
            synchronise(client, protocol.server(THERE, NARROW), after)
            synchronise(client, protocol.server(later, NARROW))
            assert_found(client, later)


def test_answers_of_the_connection_before_are_not_asked_for_again() -> None:
    """If the server still has the same tree."""
    number = frames_of(DOCUMENT)
    for after in range(number):
        client = DOCUMENT.client(HERE, NARROW)
        synchronise(client, DOCUMENT.server(THERE, NARROW), after)
        again = synchronise(client, DOCUMENT.server(THERE, NARROW))
        # The tails from the client's level upwards come on each connection.
        tails = max(1, THERE.root.level - HERE.root.level + 1)
        assert after + again.frames <= number + tails


def test_each_connection_has_a_salt_of_its_own() -> None:
    """A peer that found two nodes of one fingerprint finds others next time."""
    client = BatchedClient(ProllyTree(), random.Random(1).randbytes)
    (first,) = client.start()
    (second,) = client.start()
    openings = [message_in(first), message_in(second)]
    assert all(isinstance(one, bb.Open) for one in openings)
    assert openings[0].salt != openings[1].salt  # type: ignore[attr-defined]


@protocols
def test_answers_that_were_sent_to_the_connection_before_are_not_taken(
    protocol: Protocol,
) -> None:
    """The client has asked nothing yet."""
    server = protocol.server(THERE, DEFAULT_LIMITS)
    client = protocol.client(HERE, DEFAULT_LIMITS)
    late: list[Frame] = []
    for frame in client.start():
        late += server.receive(frame)
    other = protocol.client(HERE, DEFAULT_LIMITS)
    with pytest.raises(UnexpectedMessage):
        other.receive(late[0])
    assert other.outcome is None


@protocols
def test_frames_behind_the_outcome_are_refused(protocol: Protocol) -> None:
    """And the outcome stays as it was."""
    client = protocol.client(HERE, DEFAULT_LIMITS)
    synchronise(client, protocol.server(THERE, DEFAULT_LIMITS))
    before = client.outcome
    for frame in (
        frame_of(pb.GetNonBoundaryNodesResponse()),
        frame_of(pb.ExchangeRootResponse()),
        frame_of(bb.Items()),
        frame_of(bb.Step(level=1)),
        Frame(Kind.RECORDS_RESPONSE, b""),
    ):
        with pytest.raises(UnexpectedMessage):
            client.receive(frame)
    assert client.outcome is before


def test_requests_are_divided_so_that_answers_fit_a_frame() -> None:
    """The server would refuse to send more."""
    limits = Limits(frame_bytes=20_000)
    there = ProllyTree((Item(n, n.to_bytes(32, "little")) for n in range(1, 4_000)), 4)
    client = DocumentClient(ProllyTree(fan_out=4), limits)
    longest = 0

    class Measuring(DocumentServer):
        def receive(self, frame: Frame) -> list[Frame]:
            nonlocal longest
            answers = list(super().receive(frame))
            longest = max(longest, *(len(one.body) for one in answers))
            return answers

    synchronise(client, Measuring(there, limits))
    assert client.outcome is not None
    assert len(client.outcome.only_there) == len(there)
    assert longest < limits.frame_bytes


def test_a_batched_answer_of_many_messages_is_divided() -> None:
    """Each part can be received before the next one is made."""
    items = [Item(n, n.to_bytes(32, "little")) for n in range(1, 45_000)]
    client = BatchedClient(ProllyTree(), random.Random(1).randbytes)
    (opening,) = client.start()
    answers = iter(BatchedServer(ProllyTree(items)).receive(opening))
    sizes = []
    for answer in answers:
        assert client.outcome is None
        sizes.append(len(answer.body))
        client.receive(answer)
    assert len(sizes) > 2
    assert max(sizes) < 1_000_000
    assert client.outcome is not None
    assert list(client.outcome.only_there) == items
