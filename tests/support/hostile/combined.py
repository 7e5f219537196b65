"""Shapes of hostile records that combine: each decides some parts of a record.

Two shapes that decide different parts stand in one record; two that decide the same
part take turns. `SHAPES` are single ones, `plays` joins any of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, count, islice
from typing import NamedTuple

from sds_core.mvds.payload import Message, Payload
from sds_core.mvds.payload import encode as encode_payload
from sds_core.observer.fingerprint import fingerprint
from sds_core.wire import (
    MAX_ID_CHARACTERS,
    BloomFilter,
    Dialect,
    Frame,
    HistoryEntry,
    encode,
)
from tests.support.hostile.shapes import CHANNEL, filter_of
from tests.support.written_segments import nim_segments

BATCH_RECORDS = 12
"""Records of one batch: about what a busy channel sends between two batches."""

PREPARING_BATCHES = 25
"""Longer than a tap's numbers are awaited. Limits on new ids slow the filling of the
memories, which are not full then: a longer attack costs more."""

_HISTORY = 500
_REQUESTS = 500
_PAYLOAD_IDS = 4_000
"""As many ids as a Waku relay carries in a payload."""

_LOW_BITS = 10
"""Low bits of fingerprints that collide. With 10 an id is found in a fifth of a
millisecond, and 20,000 rows begin in 64 places of a table of 65,536."""


class Record(NamedTuple):
    """A record of the topic.

    Attributes:
        at_ms: Record time, ms since the start.
        value: The frame; empty for a heartbeat.
        headers: Its headers.
    """

    at_ms: int
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass
class Draft:
    """A record that shapes may change before it is written.

    Attributes:
        number: How many records came before.
        value: The whole value; None for an SDS frame of the parts below.
    """

    number: int
    channel: str = CHANNEL
    sender: str = "mallory"
    message_id: str = ""
    dialect: Dialect = Dialect.SPEC
    lamport: int = 0
    history: Sequence[HistoryEntry] = ()
    requests: Sequence[HistoryEntry] = ()
    bloom: Callable[[Dialect], bytes] = lambda _: b""
    content: bytes = b"content"
    headers: dict[str, bytes] = field(default_factory=dict)
    value: bytes | None = None

    def written(self, at_ms: int) -> Record:
        """The record."""
        headers = tuple(self.headers.items())
        if self.value is not None:
            return Record(at_ms, self.value, headers)
        frame = Frame.build(
            self.dialect,
            message_id=self.message_id or f"own-{self.number:060}",
            channel_id=self.channel,
            sender_id=self.sender,
            lamport=self.lamport or 1_000_000 + self.number,
            causal_history=self.history,
            bloom_filter=self.bloom(self.dialect),
            repair_request=self.requests,
            content=self.content,
        )
        return Record(at_ms, encode(frame), headers)


class Shape(NamedTuple):
    """A way to make a record costly.

    Attributes:
        parts: Parts of a record that it decides.
        change: Changes a draft.
    """

    parts: frozenset[str]
    change: Callable[[Draft], None]


_FRAME = frozenset(
    ("channel", "sender", "id", "dialect", "history", "requests", "bloom", "content")
)


def _ids(number: int, many: int, length: int = 64) -> list[str]:
    """Ids that no other record names."""
    return [f"{number * 10_000 + one:0{length}x}" for one in range(many)]


def _entries(ids: Sequence[str], hint: bytes = b"") -> list[HistoryEntry]:
    return [HistoryEntry(one, hint) for one in ids]


def _history(draft: Draft) -> None:
    draft.history = _entries(_ids(draft.number, _HISTORY))


def _short_history(draft: Draft) -> None:
    draft.history = _entries(_ids(draft.number, _HISTORY, 8))


def _new_senders(draft: Draft) -> None:
    draft.history = [
        HistoryEntry(one, b"", f"s{one}") for one in _ids(draft.number, _HISTORY)
    ]


def _long_ids(draft: Draft) -> None:
    draft.history = _entries(_ids(draft.number, _HISTORY, MAX_ID_CHARACTERS))


def _hints(draft: Draft) -> None:
    hint = draft.number.to_bytes(4, "big") * 256
    draft.history = _entries(_ids(draft.number, _HISTORY), hint)


def _known_history(draft: Draft) -> None:
    """Names the same ids in another order, so that no run repeats."""
    ids = _ids(0, _HISTORY)
    random.Random(draft.number).shuffle(ids)
    draft.history = _entries(ids)


_COLLIDING_RECORDS = 60
"""They name more ids than are remembered, so each is new again when it returns."""


@cache
def _colliding() -> list[str]:
    ids = (f"c{one}" for one in count())
    found = (one for one in ids if not fingerprint(one) % (1 << _LOW_BITS))
    return list(islice(found, _COLLIDING_RECORDS * _HISTORY))


def _colliding_ids(draft: Draft) -> None:
    begin = draft.number % _COLLIDING_RECORDS * _HISTORY
    draft.history = _entries(_colliding()[begin : begin + _HISTORY])


def _requests(draft: Draft) -> None:
    # Not those of `_history`: each is new by itself.
    ids = _ids(draft.number + (1 << 30), _REQUESTS)
    draft.requests = [HistoryEntry(one) for one in ids]


def _empty_filter(draft: Draft) -> None:
    draft.bloom = lambda dialect: BloomFilter(dialect).to_wire()


def _full_filter(draft: Draft) -> None:
    def full(dialect: Dialect) -> bytes:
        made = BloomFilter(dialect)
        made.bits = bytearray(b"\xff" * len(made.bits))
        return made.to_wire()

    draft.bloom = full


def _odd_filter(draft: Draft) -> None:
    draft.dialect = Dialect.NIM
    size = 150_000 + draft.number
    draft.bloom = lambda _: filter_of(Dialect.NIM, size, 32)


def _changing_filter(draft: Draft) -> None:
    random_bytes = random.Random(draft.number).randbytes

    def changed(dialect: Dialect) -> bytes:
        made = BloomFilter(dialect)
        made.bits = bytearray(random_bytes(len(made.bits)))
        return made.to_wire()

    draft.bloom = changed


def _new_sender(draft: Draft) -> None:
    draft.sender = f"sender-{draft.number}"


def _known_senders(draft: Draft) -> None:
    draft.sender = f"listener-{draft.number % 100}"


def _longest_own_id(draft: Draft) -> None:
    draft.message_id = f"{draft.number:0{MAX_ID_CHARACTERS}}"


def _collision(draft: Draft) -> None:
    """One id with another Lamport timestamp in each frame."""
    draft.message_id = "the same"


def _duplicate(draft: Draft) -> None:
    """The same record of the same tap, again and again."""
    draft.headers |= {"observer": b"twice", "seq": b"7"}
    draft.message_id, draft.lamport = "again", 1_000


def _segment(draft: Draft) -> None:
    draft.content = nim_segments(draft.number, 2)[0]


def _sync(draft: Draft) -> None:
    """Of nim-sds, whose ids are remembered."""
    draft.dialect, draft.content = Dialect.NIM, b""


def _new_channel(draft: Draft) -> None:
    draft.channel = f"{CHANNEL}-{draft.number}"


def _nim(draft: Draft) -> None:
    draft.dialect = Dialect.NIM


def _numbered(draft: Draft, seq: int) -> None:
    draft.headers |= {"observer": b"tap", "seq": str(seq).encode()}


def _ascending(draft: Draft) -> None:
    _numbered(draft, draft.number * 50_000)


def _descending(draft: Draft) -> None:
    """Each batch jumps ahead, then goes back in steps."""
    batch, place = divmod(draft.number, BATCH_RECORDS)
    _numbered(draft, (batch + 1) * 90_000 - place * 2)


def _scattered(draft: Draft) -> None:
    batch, place = divmod(draft.number, BATCH_RECORDS)
    _numbered(draft, (batch + 1) * 90_000 - (place * 7_919 * 11) % 90_000)


def _new_tap(draft: Draft) -> None:
    draft.headers |= {"observer": f"tap-{draft.number}".encode(), "seq": b"1"}


def _heartbeat(draft: Draft) -> None:
    draft.value = b""
    draft.headers |= {
        "observer": b"beating",
        "kind": b"heartbeat",
        "seq": str(draft.number * 50_000).encode(),
    }


def _no_channel(draft: Draft) -> None:
    """A frame of 150 kB that is one in no dialect."""
    draft.value = b"\x0a\x01m" * 50_000


def _mvds(draft: Draft, value: Payload) -> None:
    peer = f"peer-{draft.number % 50}".encode()
    draft.headers |= {"protocol": b"mvds", "peer": peer, "to": b"victim"}
    draft.value = encode_payload(value)


def _keys(draft: Draft) -> tuple[bytes, ...]:
    first = draft.number * _PAYLOAD_IDS
    return tuple(
        (first + one).to_bytes(32, "little") for one in range(1, _PAYLOAD_IDS + 1)
    )


def _mvds_offers(draft: Draft) -> None:
    _mvds(draft, Payload(offers=_keys(draft)))


def _mvds_acks(draft: Draft) -> None:
    _mvds(draft, Payload(acks=_keys(draft)))


def _mvds_requests(draft: Draft) -> None:
    _mvds(draft, Payload(requests=_keys(draft)))


def _mvds_messages(draft: Draft) -> None:
    """Each message is of a group of its own."""
    _mvds(
        draft,
        Payload(
            messages=tuple(
                Message(one[:16], draft.number, b"") for one in _keys(draft)[:3_000]
            )
        ),
    )


def _shape(change: Callable[[Draft], None], *parts: str) -> Shape:
    return Shape(frozenset(parts), change)


SHAPES: dict[str, Shape] = {
    "plain": _shape(lambda _: None),
    "causal history of new ids": _shape(_history, "history"),
    "causal history of short new ids": _shape(_short_history, "history"),
    "causal history with new sender ids": _shape(_new_senders, "history"),
    "causal history of long ids": _shape(_long_ids, "history"),
    "causal history of ids with retrieval hints": _shape(_hints, "history"),
    "causal history of known ids in random order": _shape(_known_history, "history"),
    "causal history of ids with colliding fingerprints": _shape(
        _colliding_ids, "history"
    ),
    "requests for new ids": _shape(_requests, "requests"),
    "empty filter": _shape(_empty_filter, "bloom"),
    "full filter": _shape(_full_filter, "bloom"),
    "filter of another size": _shape(_odd_filter, "bloom", "dialect"),
    "filter that changes": _shape(_changing_filter, "bloom"),
    "new sender": _shape(_new_sender, "sender"),
    "one of many senders": _shape(_known_senders, "sender"),
    "longest id": _shape(_longest_own_id, "id"),
    "colliding messages": _shape(_collision, "id"),
    "duplicates": _shape(_duplicate, "id", "tap"),
    "segments": _shape(_segment, "content"),
    "syncs of nim": _shape(_sync, "content", "dialect"),
    "new channel": _shape(_new_channel, "channel"),
    "dialect of nim": _shape(_nim, "dialect"),
    "sequence numbers that ascend with gaps": _shape(_ascending, "tap"),
    "sequence numbers that descend": _shape(_descending, "tap"),
    "sequence numbers in random order": _shape(_scattered, "tap"),
    "new tap": _shape(_new_tap, "tap"),
    "heartbeats": Shape(_FRAME | {"tap"}, _heartbeat),
    "no channel": Shape(_FRAME, _no_channel),
    "offers of mvds": Shape(_FRAME, _mvds_offers),
    "acks of mvds": Shape(_FRAME, _mvds_acks),
    "requests of mvds": Shape(_FRAME, _mvds_requests),
    "messages of mvds": Shape(_FRAME, _mvds_messages),
}

TRIPLE = ("causal history of new ids", "requests for new ids", "empty filter")

Names = tuple[str, ...]


def pairs() -> list[Names]:
    """Names of every pair that stands in one record.

    Those that take turns cost about the mean of both.
    """
    return [
        (one, other)
        for one, other in combinations(SHAPES, 2)
        if SHAPES[one].parts
        and SHAPES[other].parts
        and not SHAPES[one].parts & SHAPES[other].parts
    ]


def dialect_of(names: Names) -> Dialect:
    """The dialect in which filters of these shapes can be searched."""
    is_nim = any("dialect" in SHAPES[name].parts for name in names)
    return Dialect.NIM if is_nim else Dialect.SPEC


def prelude(dialect: Dialect) -> list[Record]:
    """A hundred listeners and mallory, then messages that each of them waits for."""
    senders = [f"listener-{n}" for n in range(100)] + ["mallory"]
    records = []
    for place, sender in enumerate([*senders, *["speaker"] * 1_200]):
        draft = Draft(place - 10_000, sender=sender, dialect=dialect)
        draft.lamport = 20_000 + place
        records.append(draft.written(0 if place < len(senders) else 40_000))
    return records


def batch(number: int, names: Names) -> list[Record]:
    """Records of one batch; each batch is a second after the one before.

    Args:
        number: How many batches came before.
        names: Shapes. Those that decide other parts than the shapes before them join
            these; others take turns with them.
    """
    turns: list[list[Shape]] = []
    for name in names:
        shape = SHAPES[name]
        for turn in turns:
            if not any(shape.parts & one.parts for one in turn):
                turn.append(shape)
                break
        else:
            turns.append([shape])
    records = []
    for place in range(BATCH_RECORDS):
        draft = Draft(number * BATCH_RECORDS + place)
        for shape in turns[place % len(turns)]:
            shape.change(draft)
        records.append(draft.written(60_000 + number * 1_000 + place))
    return records
