"""Encodes what one view needs from the payloads of a chunk, as one digest.

A digest has a row for each payload that the view counts, or that has records of the
view's message ids. Rows of a second type state in which seconds each peer sent a
payload; the digests of all views have these rows. A digest stores each id and each peer
once; rows refer to them by index.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from sds_core.native import native
from sds_core.observer.blob import DamagedDigest
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.mvds.split import PayloadPart, RecordPart, RecordType
from sds_core.observer.record import Arrival

_TYPES = tuple(RecordType)

HEARD_STEP_MS = 1_000
"""Resolution of the times at which peers sent a payload, ms (docs/figures.md, 14)."""

RecordRow = tuple[int, int, int, int, int]
"""A record in a digest: its type, the index of its message id in `ids`, its size in
bytes, its number of occurrences in the payload, and a code. The code of a MESSAGE is
twice the index of its group in `groups`, plus 1 if the MESSAGE is ephemeral. The code
of other records is 0."""

PayloadRow = tuple[
    int, int, int, int, int, int, int, int, int, int, int, list[RecordRow]
]  # fmt: skip
"""A payload in a digest:

- offset, time_ms, clock_ms, observer, seq: see `Arrival`. The observer is an index into
  `observers`;
- content: see `PayloadPart`;
- sender, receiver: indices into `peers`;
- counted: 0 if another view counts the payload; 1 if this view counts it; 2 if this
  view counts it and the payload is empty;
- numbers of dropped records and of other bytes: see `left_out` and `other_bytes` of
  `PayloadPart`;
- records.
"""

HeardRow = tuple[int, int, int]
"""A peer that sent a payload: the offset of the payload, the clock at the payload in
Unix ms, and the index of the peer in `peers`."""


class ShardDigest(msgspec.Struct, array_like=True):
    """The payloads that one view needs from one chunk of one partition.

    Attributes:
        rows: Payloads with records of the view's ids, and payloads that the view
            counts, in order of offsets.
        heard: For each peer and each second of the clock, the first payload that the
            peer sent in this second, in order of offsets.
    """

    partition: int
    rows: list[PayloadRow]
    heard: list[HeardRow]
    peers: list[str]
    ids: list[bytes]
    groups: list[str]
    observers: list[str]


@native
@dataclass(slots=True)
class ShardDigester:
    """Builds the digest of one view for one chunk."""

    _partition: int
    _rows: list[PayloadRow] = field(default_factory=list)
    # The key is a peer and a second, so only the first payload that the peer sent in
    # this second is kept.
    _heard: dict[tuple[int, int], HeardRow] = field(default_factory=dict)
    _peers: dict[str, int] = field(default_factory=dict)
    _ids: dict[bytes, int] = field(default_factory=dict)
    _groups: dict[str, int] = field(default_factory=dict)
    _observers: dict[str, int] = field(default_factory=dict)

    def add(self, frame: PayloadPart, value: bytes, arrival: Arrival) -> None:
        """Add the part of a payload that the view needs."""
        del value
        peers: dict[str, int] = self._peers
        sender = peers.setdefault(frame.sender, len(peers))
        clock_ms: int = arrival.clock_ms
        heard = sender, clock_ms // HEARD_STEP_MS
        if heard not in self._heard:
            self._heard[heard] = arrival.offset, clock_ms, sender
        if not frame.records and not frame.is_counted:
            return
        ids: dict[bytes, int] = self._ids
        groups: dict[str, int] = self._groups
        records: list[RecordRow] = []
        one: RecordPart
        for one in frame.records:
            about: int = 0
            if one.type is RecordType.MESSAGE:
                about = 2 * groups.setdefault(one.group, len(groups)) + one.is_ephemeral
            index = ids.setdefault(one.message_id, len(ids))
            records.append((int(one.type), index, one.size, one.times, about))
        self._rows.append(
            (
                arrival.offset,
                arrival.time_ms,
                clock_ms,
                self._observers.setdefault(arrival.observer, len(self._observers)),
                arrival.seq,
                frame.content,
                sender,
                peers.setdefault(frame.receiver, len(peers)),
                frame.is_counted + int(frame.is_counted and frame.is_empty),
                frame.left_out,
                frame.other_bytes,
                records,
            )
        )

    def finish(self) -> ShardDigest:
        """The digest of all payloads that were added."""
        return ShardDigest(
            self._partition,
            self._rows,
            list(self._heard.values()),
            list(self._peers),
            list(self._ids),
            list(self._groups),
            list(self._observers),
        )


@native
@dataclass(slots=True)
class SeenPeer:
    """A peer that sent a payload.

    Attributes:
        clock_ms, partition, offset: Position of the payload; see `order`.
        peer: Fingerprint of the peer's id.
    """

    clock_ms: int
    partition: int
    offset: int
    peer: int

    @property
    def order(self) -> tuple[int, int, int]:
        """Position among the payloads: by clock, then by partition, then by offset."""
        return self.clock_ms, self.partition, self.offset


@native
@dataclass(slots=True)
class SeenRecord:
    """One record of a payload; see `RecordPart`."""

    type: RecordType
    key: int
    message_id: bytes
    size: int
    times: int
    group: str
    is_ephemeral: bool


@native
@dataclass(slots=True)
class SeenPayload:
    """The part of a payload that a view receives.

    Attributes:
        clock_ms, partition, offset: Position of the payload; see `order`.
        time_ms, observer, seq: See `Arrival`.
        content, is_counted, is_empty, left_out, other_bytes: See `PayloadPart`.
    """

    clock_ms: int
    partition: int
    offset: int
    time_ms: int
    observer: str
    seq: int
    content: int
    sender: int
    receiver: int
    sender_name: str
    receiver_name: str
    is_counted: bool
    is_empty: bool
    left_out: int
    other_bytes: int
    records: list[SeenRecord]

    @property
    def order(self) -> tuple[int, int, int]:
        """Position among the payloads, as in `SeenPeer`."""
        return self.clock_ms, self.partition, self.offset


@native
def heard_in(digest: ShardDigest) -> list[SeenPeer]:
    """Return the peers that sent payloads, from `digest.heard`, in order of offsets.

    Raises:
        DamagedDigest: A row has an index that is outside the list to which it refers.
    """
    prints = [fingerprint(peer) for peer in digest.peers]
    partition: int = digest.partition
    heard: list[SeenPeer] = []
    for offset, clock_ms, peer in digest.heard:
        _check(peer, prints)
        heard.append(SeenPeer(clock_ms, partition, offset, prints[peer]))
    return heard


@native
def payloads_of(digest: ShardDigest) -> list[SeenPayload]:
    """Return the payloads of a digest in order of offsets.

    Raises:
        DamagedDigest: A row has an index that is outside the list to which it refers.
    """
    names: list[str] = digest.peers
    ids: list[bytes] = digest.ids
    groups: list[str] = digest.groups
    observers: list[str] = digest.observers
    partition: int = digest.partition
    prints = [fingerprint(peer) for peer in names]
    keys = [fingerprint(one) for one in ids]
    payloads: list[SeenPayload] = []
    for (
        offset,
        time_ms,
        clock_ms,
        observer,
        seq,
        content,
        sender,
        receiver,
        counted,
        left_out,
        other_bytes,
        rows,
    ) in digest.rows:
        _check(sender, names)
        _check(receiver, names)
        _check(observer, observers)
        records: list[SeenRecord] = []
        for code, index, size, times, about in rows:
            _check(code, _TYPES)
            _check(index, ids)
            type_ = _TYPES[code]
            group = ""
            if type_ is RecordType.MESSAGE:
                _check(about // 2, groups)
                group = groups[about // 2]
            is_ephemeral: bool = about % 2 > 0
            records.append(
                SeenRecord(
                    type_, keys[index], ids[index], size, times, group, is_ephemeral
                )
            )
        payloads.append(
            SeenPayload(
                clock_ms,
                partition,
                offset,
                time_ms,
                observers[observer],
                seq,
                content,
                prints[sender],
                prints[receiver],
                names[sender],
                names[receiver],
                counted > 0,
                counted > 1,
                left_out,
                other_bytes,
                records,
            )
        )
    return payloads


@native
def _check(index: int, of: Collection[object]) -> None:
    if not 0 <= index < len(of):
        message = (
            f"an MVDS digest has an index that is outside its list of {len(of)} entries"
        )
        raise DamagedDigest(message)
