"""The state of each message id and of its peers, as objects and in encoded form."""

from __future__ import annotations

from typing import cast

import msgspec

from sds_core.native import Int64Rows, native
from sds_core.observer.columns import integers
from sds_core.observer.mvds.limits import MOST_PAIRS, MOST_PEERS
from sds_core.observer.table import RISING, SIGNED, UNSIGNED, Codec, PackedTable, Table

NO_DEADLINE = 0

NO_PLACE = -1
"""The index returned for a peer that a limit drops."""


class Peer(msgspec.Struct, array_like=True):
    """What is known about one message at one peer. Times are in Unix ms.

    Attributes:
        print: Fingerprint of the peer's id.
        holds: Whether the peer has the message, because it sent an ACK, OFFER or
            MESSAGE of it.
        acked: Whether the peer sent an ACK of the message to any peer.
        sends: Number of MESSAGEs that the peer was sent before its first ACK.
        sent_clock_ms: Clock at the first MESSAGE to the peer; 0 if none was sent.
        sent_ms: Event time of the first MESSAGE to the peer.
        due_ms: Deadline of the ACK by the clock; 0 if no ACK is expected.
        missed_ms: Deadline that passed without the ACK, if the ACK is still missing;
            otherwise 0.
    """

    print: int
    holds: bool = False
    acked: bool = False
    sends: int = 0
    sent_clock_ms: int = 0
    sent_ms: int = 0
    due_ms: int = NO_DEADLINE
    missed_ms: int = NO_DEADLINE


class Pair(msgspec.Struct, array_like=True):
    """What one peer sent to another peer about one message. Times are in Unix ms.

    Attributes:
        sender, receiver: Indices of the peers in `Message.peers`.
        acked, offered, requested: Whether the sender sent an ACK, OFFER or REQUEST.
        sent_ms: Event time of the first MESSAGE; None if none was sent.
        offer_due_ms, request_due_ms: Deadlines, by the clock, of the REQUEST that
            should follow the OFFER, and of the MESSAGE that should follow the REQUEST;
            0 if nothing is expected.
    """

    sender: int
    receiver: int
    acked: bool = False
    offered: bool = False
    requested: bool = False
    sent_ms: int | None = None
    offer_due_ms: int = NO_DEADLINE
    request_due_ms: int = NO_DEADLINE


class _Rest(msgspec.Struct, array_like=True):
    message_id: bytes
    group: str
    found_ms: int
    peers: list[Peer]
    pairs: list[Pair]
    waiting: dict[str, int] = {}
    waiting_deliveries_ms: list[int] = []


@native
class Message:
    """What is known about one message id.

    Attributes:
        key: Fingerprint of the id.
        first_ms: Event time of the first record with the id, Unix ms.
        latest_ms: Clock at the latest record with the id, Unix ms.
        group: Name of the message's group; empty until a MESSAGE shows the group.
        found_ms: Clock at which the message's incident was found; 0 without an
            incident.
        waiting: Counts by field of the totals; they wait until the message's group is
            known.
        waiting_deliveries_ms: Durations of the message's deliveries, which wait until
            its group is known.
    """

    key: int
    first_ms: int
    latest_ms: int
    message_id: bytes
    group: str
    found_ms: int
    peers: list[Peer]
    waiting: dict[str, int]
    waiting_deliveries_ms: list[int]
    # `_places` maps fingerprints of peers to indices in `peers`. The keys of `_pairs`
    # are the indices of sender and receiver.
    _places: dict[int, int]
    _pairs: dict[tuple[int, int], Pair]

    def __init__(self, key: int, first_ms: int, latest_ms: int, rest: _Rest) -> None:
        self.key = key
        self.first_ms = first_ms
        self.latest_ms = latest_ms
        self.message_id = rest.message_id
        self.group = rest.group
        self.found_ms = rest.found_ms
        self.peers = rest.peers
        self.waiting = rest.waiting
        self.waiting_deliveries_ms = rest.waiting_deliveries_ms
        self._places = {peer.print: place for place, peer in enumerate(rest.peers)}
        self._pairs = {(pair.sender, pair.receiver): pair for pair in rest.pairs}

    @classmethod
    def new(cls, key: int, message_id: bytes, time_ms: int, clock_ms: int) -> Message:
        """Return a message of which only the id is known."""
        return cls(key, time_ms, clock_ms, _Rest(message_id, "", 0, [], []))

    def pairs(self) -> list[Pair]:
        """Pairs of sender and receiver, in order of their first record."""
        return list(self._pairs.values())

    def links(self) -> int:
        """Number of the message's peers and pairs."""
        return len(self.peers) + len(self._pairs)

    def due_ms(self) -> int:
        """The message's earliest deadline; `NO_DEADLINE` if nothing is expected."""
        due = [peer.due_ms for peer in self.peers if peer.due_ms]
        for pair in self._pairs.values():
            if pair.offer_due_ms:
                due.append(pair.offer_due_ms)
            if pair.request_due_ms:
                due.append(pair.request_due_ms)
        return min(due, default=NO_DEADLINE)

    def place(self, peer: int) -> int:
        """Return a peer's index; a new peer gets `NO_PLACE` beyond `MOST_PEERS`."""
        known = self._places.get(peer)
        if known is not None:
            return known
        place: int = len(self.peers)
        if place >= MOST_PEERS:
            return NO_PLACE
        self._places[peer] = place
        self.peers.append(Peer(peer))
        return place

    def pair(self, sender: int, receiver: int) -> Pair | None:
        """Return a pair; a new pair is added.

        A new pair beyond `MOST_PAIRS` is not added, and the result is None.
        """
        places = sender, receiver
        pair = self._pairs.get(places)
        if pair is None and len(self._pairs) < MOST_PAIRS:
            pair = self._pairs[places] = Pair(sender, receiver)
        return pair

    def known_pair(self, sender: int, receiver: int) -> Pair | None:
        """The pair with these indices; None if the sender sent nothing."""
        return self._pairs.get((sender, receiver))

    def rest(self) -> _Rest:
        """The part of the message that is not in columns."""
        return _Rest(
            self.message_id,
            self.group,
            self.found_ms,
            self.peers,
            self.pairs(),
            self.waiting,
            self.waiting_deliveries_ms,
        )


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Rest)

_FIRST, _LATEST, _DUE, _LINKS = range(1, 5)
_PACKINGS = RISING, SIGNED, UNSIGNED, UNSIGNED


@native
class _MessageCodec(Codec[Message]):
    def store(self, entry: object, cells: Int64Rows, row: int) -> bytes:
        message: Message = cast("Message", entry)
        cells[_FIRST, row] = message.first_ms
        cells[_LATEST, row] = message.latest_ms
        cells[_DUE, row] = message.due_ms()
        cells[_LINKS, row] = message.links()
        return _ENCODER.encode(message.rest())

    def load(self, key: int, cells: Int64Rows, row: int, rest: bytes) -> Message:
        first_ms: int = cells[_FIRST, row]
        latest_ms: int = cells[_LATEST, row]
        return Message(key, first_ms, latest_ms, _DECODER.decode(rest))


@native
class MessageTable(Table[Message]):
    """Messages by the fingerprint of their ids, in order of their first records."""

    def __init__(self, packed: PackedTable) -> None:
        super().__init__(_MessageCodec(_PACKINGS, _LATEST), packed)

    def deadlines(self, from_ms: int, to_ms: int) -> list[tuple[int, int]]:
        """Deadline and key of each message with a deadline in [`from_ms`, `to_ms`).

        The values are those of the last `flush`; messages may have changed later.
        """
        due = self.column(_DUE)
        rows = (due > NO_DEADLINE) & (due >= from_ms) & (due < to_ms)
        return list(zip(integers(due[rows]), integers(self.keys[rows]), strict=True))

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline of all messages, Unix ms; None if none exists."""
        self.flush()
        due = self.column(_DUE)
        awaited = due[due > NO_DEADLINE]
        return int(awaited.min()) if len(awaited) else None

    def links(self) -> int:
        """Total number of peers and pairs of all messages."""
        self.flush()
        return int(self.column(_LINKS).sum())
