"""Content messages, and their encoded form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import msgspec

from sds_core.native import Int64Rows, Uint64, int64, native, uint64
from sds_core.observer.sds.participants import UNKNOWN
from sds_core.observer.table import RISING, SIGNED, UNSIGNED, Codec, PackedTable, Table
from sds_core.wire import Dialect


@native
@dataclass(slots=True)
class Message:
    """One content message.

    Attributes:
        order: Number of messages that the channel had before this message.
        t0_ms: Event time of the first copy, Unix ms.
        seen_ms: The channel's clock at the first copy. Deadlines count from this time.
        latest_ms: The channel's clock when the message was last seen or named.
        witnesses_needed: Minimum number of witnesses for a probable acknowledgement.
        definite, probable: Whether the message is definitely acknowledged, and whether
            the message is probably acknowledged.
        overdue: Whether the message's acknowledgement deadline has passed.
        in_time: Whether the message was acknowledged, definitely or probably, by this
            deadline.
        opportunity: Whether another participant's frame could have acknowledged the
            message.
        witnesses: Indices of the participants whose filters held the message; empty
            once the message is definitely acknowledged.
        witness_rate: Product of the false-positive rates of the witnesses' filters.
        message_id: The id; it is dropped (empty) when no later frame can need it.
        waku_hash: Waku message hash of the first copy, 32 bytes; empty if unknown, or
            if `message_id` is empty.
        was_named_before: Whether a causal history named the message before any tap saw
            the message.
        hint: Retrieval hint from a causal history; empty if unknown, or if `message_id`
            is empty.
        hashed_for, hash_a, hash_b: The dialect for whose filters the id was hashed,
            and the two hashes.
    """

    key: int
    order: int
    t0_ms: int
    seen_ms: int
    latest_ms: int
    sender: int
    lamport: Uint64
    dialect: Dialect
    witnesses_needed: int
    definite: bool = False
    probable: bool = False
    overdue: bool = False
    in_time: bool = False
    opportunity: bool = False
    witnesses: list[int] = field(default_factory=list)
    witness_rate: float = 1.0
    message_id: str = ""
    waku_hash: bytes = b""
    was_named_before: bool = False
    hint: bytes = b""
    hashed_for: Dialect | None = field(default=None, compare=False)
    hash_a: int = field(default=0, compare=False)
    hash_b: int = field(default=0, compare=False)

    @property
    def is_unacknowledged(self) -> bool:
        """Whether the message was not acknowledged in time, despite an opportunity."""
        return self.overdue and self.opportunity and not self.in_time


# States store these bits, so append a new flag at the end.
(
    DEFINITE,
    PROBABLE,
    OVERDUE,
    IN_TIME,
    OPPORTUNITY,
    NAMED,
    NIM,
    HEX_ID,
    HINT_IS_HASH,
    HAS_HINT,
) = (1 << bit for bit in range(10))


_ORDER, _T0, _SEEN, _LATEST, _SENDER, _LAMPORT, _NEEDED, _STATE = range(1, 9)
_PACKINGS = RISING, RISING, RISING, SIGNED, SIGNED, UNSIGNED, UNSIGNED, UNSIGNED
_NEVER = -(1 << 62)

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[bytes, bytes, bytes, list[int], float])
"""Decodes the part of a message that is not in columns.

The part contains the id, the Waku hash, the hint, `witnesses` and `witness_rate`. A
hexadecimal id is stored as its bytes, any other id in UTF-8. If the hint equals the
Waku hash, the stored hint is empty.
"""


@native
class _MessageCodec(Codec[Message]):
    def store(self, entry: object, cells: Int64Rows, row: int) -> bytes:
        message: Message = cast("Message", entry)
        message_id = _packed_id(message.message_id)
        # A hexadecimal id is encoded in half as many bytes as it has characters.
        is_hex = 0 < 2 * len(message_id) == len(message.message_id)
        cells[_ORDER, row] = message.order
        cells[_T0, row] = message.t0_ms
        cells[_SEEN, row] = message.seen_ms
        cells[_LATEST, row] = message.latest_ms
        cells[_SENDER, row] = message.sender
        cells[_LAMPORT, row] = int64(message.lamport)
        cells[_NEEDED, row] = message.witnesses_needed
        cells[_STATE, row] = _flags(message, is_hex)
        hint = b"" if message.hint == message.waku_hash else message.hint
        witnesses, rate = message.witnesses, message.witness_rate
        has_rest = message_id or message.waku_hash or hint or witnesses
        if not has_rest and rate == 1.0:
            return b""
        return _ENCODER.encode((message_id, message.waku_hash, hint, witnesses, rate))

    def load(self, key: int, cells: Int64Rows, row: int, rest: bytes) -> Message:
        flags: int = cells[_STATE, row]
        lamport: Uint64 = uint64(cells[_LAMPORT, row])
        message = Message(
            key,
            cells[_ORDER, row],
            cells[_T0, row],
            cells[_SEEN, row],
            cells[_LATEST, row],
            cells[_SENDER, row],
            lamport,
            Dialect.NIM if flags & NIM else Dialect.SPEC,
            cells[_NEEDED, row],
            flags & DEFINITE != 0,
            flags & PROBABLE != 0,
            flags & OVERDUE != 0,
            flags & IN_TIME != 0,
            flags & OPPORTUNITY != 0,
        )
        message.was_named_before = flags & NAMED != 0
        if rest:
            packed_id, waku_hash, hint, witnesses, rate = _DECODER.decode(rest)
            message.message_id = (
                packed_id.hex() if flags & HEX_ID else packed_id.decode()
            )
            message.waku_hash = waku_hash
            message.hint = waku_hash if flags & HINT_IS_HASH else hint
            message.witnesses = witnesses
            message.witness_rate = rate
        return message


@native
class MessageTable(Table[Message]):
    """Messages by fingerprint, in order of their first copies."""

    _added_by_order: dict[int, Message]

    def __init__(self, packed: PackedTable) -> None:
        super().__init__(_MessageCodec(_PACKINGS, _LATEST), packed)
        self._added_by_order = {}

    def add(self, message: Message) -> None:
        """Append a message. Its order must exceed the orders of all stored messages."""
        self[message.key] = message
        self._added_by_order[message.order] = message

    def order_of(self, key: int) -> int:
        """Order of the message with this key; -1 if the message is not remembered."""
        row: int = self._row(key)
        if row >= 0:
            return self._cells[_ORDER, row]
        if not self._added:
            return -1
        message: Message | None = self._added.get(key)
        return -1 if message is None else message.order

    def sender_of(self, key: int) -> int:
        """Read the sender of a remembered message without decoding the message."""
        row: int = self._row(key)
        if row >= 0:
            return self._cells[_SENDER, row]
        message: Message = self._added[key]
        return message.sender

    def by_order(self, order: int) -> Message | None:
        """The message with this order; None if the message is not remembered."""
        if self._added_by_order:
            message = self._added_by_order.get(order)
            if message is not None:
                return message
        row: int = self._row_from(_ORDER, order)
        if row < self._rows and self._cells[_ORDER, row] == order:
            return self.at(row)
        return None

    def seen_of(self, order: int) -> int:
        """`seen_ms` of the message with this order; -2**62 if it is not remembered."""
        row: int = self._row_from(_ORDER, order)
        if row < self._rows and self._cells[_ORDER, row] == order:
            if row < self._first or (self._gone and row in self._gone):
                return _NEVER
            return self._cells[_SEEN, row]
        message = self._of_added(order)
        return _NEVER if message is None else message.seen_ms

    def _row_from(self, number: int, value: int) -> int:
        """First row whose value in the sorted column `number` is at least `value`."""
        low: int = 0
        high: int = self._rows
        while low < high:
            middle: int = (low + high) >> 1
            if self._cells[number, middle] < value:
                low = middle + 1
            else:
                high = middle
        return low

    def by_orders(self, orders: Iterable[int]) -> list[Message]:
        """The remembered messages with these orders."""
        found: list[Message] = []
        for order in orders:
            message = self.by_order(order)
            if message is not None:
                found.append(message)
        return found

    def name_settled(self, key: int, hint: bytes, clock_ms: int) -> bool:
        """Record that a history names a message, without decoding the message.

        If possible, set `latest_ms` to `clock_ms` and return True. Otherwise, change
        nothing and return False: the message is not remembered, is already decoded, is
        not definitely acknowledged, or has no hint and `hint` is not empty.
        """
        row: int = self._row(key)
        if row < 0:
            return False
        lacking: int = ~self._cells[_STATE, row]
        if (
            lacking & DEFINITE
            or (hint and lacking & HAS_HINT)
            or (self._objects[row] is not None)
        ):
            return False
        if self._cells[_LATEST, row] != clock_ms:
            self._cells[_LATEST, row] = clock_ms
            self._given = None
        return True

    def remove(self, key: int) -> None:
        """Remove the message with this key, if it exists."""
        message: Message | None = self._added.get(key)
        if message is not None:
            del self._added_by_order[message.order]
        Table.remove(self, key)

    def flush(self) -> None:
        """See `Table`."""
        Table.flush(self)
        self._added_by_order.clear()

    def sent_since(self, first: int, end: int) -> list[tuple[int, int, int]]:
        """Order, event time and sender of messages with orders in `[first, end)`.

        The table must still have all messages from `first` on.
        """
        sent: list[tuple[int, int, int]] = []
        order: int = first
        row: int = self._row_from(_ORDER, first)
        while row < self._rows and self._cells[_ORDER, row] < end:
            order = self._cells[_ORDER, row]
            sent.append((order, self._cells[_T0, row], self._cells[_SENDER, row]))
            row += 1
            order += 1
        while order < end:
            message = self._of_added(order)
            if message is not None:
                sent.append((order, message.t0_ms, message.sender))
            order += 1
        return sent

    def new_to(
        self, by: int, after_ms: int, until_ms: int, first: int, end: int
    ) -> list[int]:
        """Return the orders of messages in a period whose sender is known and not `by`.

        The orders are in `[first, end)`. The messages' event times are after `after_ms`
        and at or before `until_ms`, Unix ms.
        """
        new: list[int] = []
        order: int = first
        row: int = self._row_from(_ORDER, first)
        while row < self._rows and self._cells[_ORDER, row] < end:
            t0_ms: int = self._cells[_T0, row]
            sender: int = self._cells[_SENDER, row]
            order = self._cells[_ORDER, row]
            if after_ms < t0_ms <= until_ms and sender != by and sender != UNKNOWN:
                new.append(order)
            row += 1
            order += 1
        while order < end:
            message = self._of_added(order)
            if message is not None and after_ms < message.t0_ms <= until_ms:
                sender = message.sender
                if sender != by and sender != UNKNOWN:
                    new.append(order)
            order += 1
        return new

    def _of_added(self, order: int) -> Message | None:
        return self._added_by_order.get(order)

    def first_seen_since(self, clock_ms: int) -> int | None:
        """Order of the first message with `seen_ms` of at least `clock_ms`, or None."""
        self.flush()
        row: int = self._row_from(_SEEN, clock_ms)
        return self._cells[_ORDER, row] if row < self._rows else None

    def not_overdue(self) -> list[tuple[int, int]]:
        """Key and `seen_ms` of each message that is not overdue."""
        return self._with_state(OVERDUE, 0, _SEEN)

    def unacknowledged(self, since_ms: int) -> list[tuple[int, int]]:
        """Key and sender of each message without even a probable acknowledgement.

        Only messages whose sender is known and whose `seen_ms` is at least `since_ms`
        are returned.
        """
        found = self._with_state(DEFINITE | PROBABLE, 0, _SEEN, True)
        recent = [key for key, seen_ms in found if seen_ms >= since_ms]
        return [(key, self.sender_of(key)) for key in recent]

    def unjudged(self) -> list[int]:
        """Keys of the messages that had no opportunity so far.

        Messages that are acknowledged or overdue, or whose sender is unknown, are not
        returned.
        """
        judged = DEFINITE | PROBABLE | OVERDUE | OPPORTUNITY
        return [key for key, _ in self._with_state(judged, 0, _SEEN, True)]

    def in_flight(self) -> list[tuple[int, int]]:
        """Key and `t0_ms` of each message that is neither acknowledged nor overdue."""
        return self._with_state(DEFINITE | PROBABLE | OVERDUE, 0, _T0)

    def _with_state(
        self, mask: int, state: int, number: int, has_sender: bool = False
    ) -> list[tuple[int, int]]:
        self.flush()
        found: list[tuple[int, int]] = []
        row: int
        for row in range(self._rows):
            sender: int = self._cells[_SENDER, row]
            if has_sender and sender == UNKNOWN:
                continue
            if self._cells[_STATE, row] & mask == state:
                key = self._cells[0, row]
                found.append((key, self._cells[number, row]))
        return found

    def keep_ids_of(self, orders: set[int], since_ms: int) -> None:
        """Drop ids, hashes and hints that no later frame can need.

        A message keeps its id, hash and hint only if its `seen_ms` is at least
        `since_ms`. In addition, `orders` must contain its order, or the message must
        have no definite acknowledgement.
        """
        self.flush()
        cells: Int64Rows = self._cells
        stripped: list[int] = []
        begin: int = 0
        row: int
        for row in range(self._rows):
            end: int = cells[self._last, row]
            flags: int = cells[_STATE, row]
            of_use: bool = not flags & DEFINITE or cells[_ORDER, row] in orders
            if not (of_use and cells[_SEEN, row] >= since_ms):
                if end > begin:
                    stripped.append(row)
                cells[_STATE, row] = flags & ~(HEX_ID | HAS_HINT) | HINT_IS_HASH
            begin = end
        self.strip(stripped)


@native
def _packed_id(message_id: str) -> bytes:
    try:
        raw = bytes.fromhex(message_id)
    except ValueError:
        return message_id.encode()
    return raw if raw.hex() == message_id else message_id.encode()


@native
def _flags(message: Message, is_hex: bool) -> int:
    return (
        message.definite * DEFINITE
        | message.probable * PROBABLE
        | message.overdue * OVERDUE
        | message.in_time * IN_TIME
        | message.opportunity * OPPORTUNITY
        | message.was_named_before * NAMED
        | (message.dialect is Dialect.NIM) * NIM
        | is_hex * HEX_ID
        | (message.hint == message.waku_hash) * HINT_IS_HASH
        | (len(message.hint) > 0) * HAS_HINT
    )
