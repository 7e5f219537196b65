"""Synchronisations of Prolly trees: the stream of frames, and both sides of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from google.protobuf.message import Message

from sds_core.prolly.errors import SyncError
from sds_core.prolly.frames import Frame, FrameReader, Kind, frame_of, message_in
from sds_core.prolly.item import Item
from sds_core.prolly.outcome import Client, Limits, Outcome, Server
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from tests.support.fuzz.errors import check_text
from tests.support.fuzz.mutation import changed_bytes, changed_protobuf
from tests.support.fuzz.target import Target
from tests.support.prolly.sessions import BOTH, Protocol

_LIMITS = Limits(frame_bytes=20_000, nodes=2_000)
_ITEMS = [Item(1 + n // 3, n.to_bytes(32, "little")) for n in range(60)]
_HERE = ProllyTree(_ITEMS[::2], 3)
_THERE = ProllyTree(_ITEMS[5:40], 3)
_NOTHING = ProllyTree(fan_out=3)


def _answers(protocol: Protocol, here: ProllyTree, there: ProllyTree) -> list[bytes]:
    """All frames of the server in one session, as a stream after each of them."""
    client, server = protocol.client(here, _LIMITS), protocol.server(there, _LIMITS)
    stream, streams = b"", []
    waiting = list(client.start())
    while client.outcome is None:
        answers = [answer for frame in waiting for answer in server.receive(frame)]
        waiting = []
        for answer in answers:
            stream += bytes(answer)
            streams.append(stream)
            waiting += client.receive(answer)
    return streams


def _requests(protocol: Protocol, here: ProllyTree, there: ProllyTree) -> list[bytes]:
    """All frames of the client in one session, as a stream."""
    client, server = protocol.client(here, _LIMITS), protocol.server(there, _LIMITS)
    stream, waiting = b"", list(client.start())
    while waiting:
        stream += b"".join(map(bytes, waiting))
        answers = [answer for frame in waiting for answer in server.receive(frame)]
        waiting = [one for answer in answers for one in client.receive(answer)]
    return [stream]


def _sessions(
    of: Callable[[Protocol, ProllyTree, ProllyTree], list[bytes]],
) -> list[bytes]:
    pairs = [(_HERE, _THERE), (_NOTHING, _THERE), (_HERE, _NOTHING), (_HERE, _HERE)]
    return [one for protocol in BOTH for pair in pairs for one in of(protocol, *pair)]


def genuine_answers() -> list[bytes]:
    """Streams of servers."""
    refusal = bytes(frame_of(pb.Refusal(reason="no")))
    # A client that is refused accepts nothing.
    return [one for one in _sessions(_answers) if one != refusal]


def genuine_requests() -> list[bytes]:
    """Streams of clients."""
    return _sessions(_requests)


def _frames(stream: bytes) -> list[Frame]:
    return FrameReader(_LIMITS.frame_bytes).feed(stream)


def _changed_stream(random: Random, value: bytes, other: bytes) -> bytes:
    """A stream with a changed message; one in ten with changed bytes."""
    if random.random() < 0.1:
        return changed_bytes(random, value, other)
    try:
        frames, others = _frames(value), _frames(other)
    except SyncError:
        return changed_bytes(random, value, other)
    if not frames:
        return value + other
    place = random.randrange(len(frames))
    chance = random.random()
    if chance < 0.1 and others:
        frames.insert(place, random.choice(others))
    elif chance < 0.2:
        del frames[place]
    elif chance < 0.25:
        frames[place] = frames[place]._replace(kind=random.choice(list(Kind)))
    else:
        body = changed_protobuf(random, frames[place].body)
        frames[place] = frames[place]._replace(body=body)
    return b"".join(map(bytes, frames))


def _read(stream: bytes) -> list[Frame] | None:
    """The frames of a stream, also if it comes byte by byte; None if it is refused."""
    try:
        frames = _frames(stream)
    except SyncError as error:
        check_text(str(error))
        return None
    for frame in frames:
        assert len(frame.body) <= _LIMITS.frame_bytes
    return frames


def _given(side: Client | Server, frames: Iterable[Frame]) -> int:
    """How many frames a side takes; its answers can be read."""
    taken = 0
    for frame in frames:
        try:
            for answer in side.receive(frame):
                assert isinstance(message_in(answer), Message)
                assert len(answer.body) <= _LIMITS.frame_bytes
        except SyncError as error:
            check_text(str(error))
            break
        taken += 1
    return taken


def _check_outcome(outcome: Outcome) -> None:
    """What is only here is here, and what is only there is not, in order."""
    here, there = list(outcome.only_here), list(outcome.only_there)
    assert here == sorted(set(here))
    assert there == sorted(set(there))
    assert set(here) <= set(_HERE)
    assert not set(there) & set(_HERE)


def _check_answers(stream: bytes) -> bool:
    """Clients take any stream, end with an outcome that can be true, or an error."""
    frames = _read(stream)
    if frames is None:
        return False
    taken = 0
    before = _HERE.root
    for protocol in BOTH:
        for tree in (_HERE, _NOTHING):
            client = protocol.client(tree, _LIMITS)
            client.start()
            taken += _given(client, frames)
            if client.outcome is not None and tree is _HERE:
                _check_outcome(client.outcome)
    assert _HERE.root is before
    return taken > 0


def _check_requests(stream: bytes) -> bool:
    """Servers answer any stream, or refuse it."""
    frames = _read(stream)
    if frames is None:
        return False
    return sum(_given(one.server(_THERE, _LIMITS), frames) for one in BOTH) > 0


TARGETS = (
    Target(
        "sync-answers",
        genuine_answers,
        _changed_stream,
        _check_answers,
        tested=2_000,
        calls_per_byte=200,
    ),
    Target(
        "sync-requests",
        genuine_requests,
        _changed_stream,
        _check_requests,
        tested=2_000,
        calls_per_byte=200,
    ),
)
