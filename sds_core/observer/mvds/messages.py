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
"""`Message.place` returns this index for a peer that the limit `MOST_PEERS` drops."""


class Peer(msgspec.Struct, array_like=True):
    """What is known about one message at one peer. Times are in Unix ms.

    Attributes:
        print: Fingerprint of the peer's id.
        holds: Whether the peer has sent an ACK, OFFER or MESSAGE of the message to any
            peer; if so, the peer holds the message.
        acked: Whether the peer sent an ACK of the message to any peer.
        sends: Number of payloads with the MESSAGE that were sent to the peer before the
            peer's first ACK.
        sent_clock_ms: Clock at the first MESSAGE to the peer that requires an ACK; 0 if
            no such MESSAGE was sent.
        sent_ms: Event time of the same MESSAGE; 0 if no such MESSAGE was sent.
        due_ms: Deadline for the peer's ACK, measured on the clock; 0 if no ACK is
            expected.
        missed_ms: Deadline that the peer missed, if the peer counts as unacknowledged
            and has still sent no ACK; otherwise 0.
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
        acked, offered, requested: Whether the sender sent the receiver an ACK, an
            OFFER, a REQUEST.
        sent_ms: Event time of the sender's first MESSAGE to the receiver; None if none
            was sent.
        offer_due_ms: Deadline for the receiver to answer the sender's OFFER with a
            REQUEST, measured on the clock; 0 if no answer is expected.
        request_due_ms: Deadline for the receiver to answer the sender's REQUEST with a
            MESSAGE, measured on the clock; 0 if no answer is expected.
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
        found_ms: Clock at which the message's incident was found; 0 if the message has
            no incident.
        waiting: Counts, by field of `GroupTotals`, to add to the group's totals when
            the message's group is known.
        waiting_deliveries_ms: Durations of the message's deliveries, to add to the
            group's totals when the message's group is known.
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
    # `_places` maps fingerprints of peers to indices in `peers`. Each key of `_pairs`
    # has the indices of a sender and a receiver in `peers`.
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
        """Return the state of a new message id, without peers, pairs or counts."""
        return cls(key, time_ms, clock_ms, _Rest(message_id, "", 0, [], []))

    def pairs(self) -> list[Pair]:
        """Pairs of sender and receiver, in order of each pair's first record."""
        return list(self._pairs.values())

    def links(self) -> int:
        """Number of the message's peers plus number of its pairs."""
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
        """Return a peer's index in `peers`; a new peer is added.

        If the message already has `MOST_PEERS` peers, a new peer is not added, and the
        result is `NO_PLACE`.
        """
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
        """Return the pair of the peers with these indices; a new pair is added.

        If the message already has `MOST_PAIRS` pairs, a new pair is not added, and the
        result is None.
        """
        places = sender, receiver
        pair = self._pairs.get(places)
        if pair is None and len(self._pairs) < MOST_PAIRS:
            pair = self._pairs[places] = Pair(sender, receiver)
        return pair

    def known_pair(self, sender: int, receiver: int) -> Pair | None:
        """The pair of the peers with these indices; None if no such pair exists."""
        return self._pairs.get((sender, receiver))

    def rest(self) -> _Rest:
        """The fields of the message that `MessageTable` does not store in columns."""
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
        """Earliest deadline and key of messages that are due in [`from_ms`, `to_ms`).

        The result does not include changes of messages since the last `flush`.
        """
        due = self.column(_DUE)
        rows = (due > NO_DEADLINE) & (due >= from_ms) & (due < to_ms)
        return list(zip(integers(due[rows]), integers(self.keys[rows]), strict=True))

    def next_deadline_ms(self) -> int | None:
        """Earliest deadline of all messages, Unix ms; None if no deadline exists."""
        self.flush()
        due = self.column(_DUE)
        awaited = due[due > NO_DEADLINE]
        return int(awaited.min()) if len(awaited) else None

    def links(self) -> int:
        """Total number of peers and pairs of all messages."""
        self.flush()
        return int(self.column(_LINKS).sum())
