"""Content messages, and their packed form in the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from sds_core.observer.columns import Column, integers
from sds_core.observer.table import RISING, SIGNED, UNSIGNED, PackedTable, Table
from sds_core.wire import Dialect


class Message(msgspec.Struct):
    """One content message.

    Attributes:
        key: Fingerprint of its id.
        order: Number of messages that the channel had before it.
        t0_ms: Event time of the first copy, Unix ms.
        seen_ms: The channel's clock at the first copy; deadlines run from it.
        latest_ms: The channel's clock when it was last seen or named.
        sender: Participant index or `UNKNOWN`.
        lamport: Lamport timestamp, in the unit of its dialect.
        dialect: Dialect of the first copy.
        witnesses_needed: Number of witnesses for a probable acknowledgement.
        definite, probable: Whether it has this kind of acknowledgement.
        overdue: Whether its deadline has passed.
        in_time: Whether it was acknowledged, definitely or probably, by its deadline.
        opportunity: Whether another participant could have acknowledged it.
        witnesses: Participants whose filter held it, as long as it is not definite.
        witness_rate: Product of the false-positive rates of those filters.
        message_id: The id. Empty if no later frame can need it.
        waku_hash: Waku message hash of the first copy, 32 bytes; empty if unknown or
            if the id is.
        was_named_before: Whether it was named before any tap saw it.
        hint: Retrieval hint from a causal history; empty if there is none or if the id
            is empty.
    """

    key: int
    order: int
    t0_ms: int
    seen_ms: int
    latest_ms: int
    sender: int
    lamport: int
    dialect: Dialect
    witnesses_needed: int
    definite: bool = False
    probable: bool = False
    overdue: bool = False
    in_time: bool = False
    opportunity: bool = False
    witnesses: list[int] = []
    witness_rate: float = 1.0
    message_id: str = ""
    waku_hash: bytes = b""
    was_named_before: bool = False
    hint: bytes = b""

    @property
    def is_unacknowledged(self) -> bool:
        """Whether it was not acknowledged in time, although others could have."""
        return self.overdue and self.opportunity and not self.in_time


(
    _DEFINITE,
    _PROBABLE,
    _OVERDUE,
    _IN_TIME,
    _OPPORTUNITY,
    _NAMED,
    _NIM,
    _HEX_ID,
    _HINT_IS_HASH,
    _HAS_HINT,
) = (1 << bit for bit in range(10))


_ORDER, _T0, _SEEN, _LATEST, _SENDER, _LAMPORT, _NEEDED, _STATE = range(8)
"""Columns of the table."""


class _Rest(NamedTuple):
    """What a message has beside its columns.

    Attributes:
        message_id: The bytes of an id in hex; otherwise the id in UTF-8.
        waku_hash: See `Message`.
        hint: Empty if it equals the hash.
        witnesses, witness_rate: See `Message`.
    """

    message_id: bytes
    waku_hash: bytes
    hint: bytes
    witnesses: list[int]
    witness_rate: float


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Rest)


def _no_rest() -> _Rest:
    """The rest of which nothing is stored."""
    return _Rest(b"", b"", b"", [], 1.0)


class _MessageCodec:
    """Splits messages into the columns above, and what is seldom needed."""

    packings = (RISING, RISING, RISING, SIGNED, SIGNED, UNSIGNED, UNSIGNED, UNSIGNED)

    def split(self, message: Message) -> tuple[tuple[int, ...], bytes]:
        """See `Codec`."""
        message_id = _packed_id(message.message_id)
        hint = b"" if message.hint == message.waku_hash else message.hint
        rest = _Rest(
            message_id, message.waku_hash, hint, message.witnesses, message.witness_rate
        )
        return (
            message.order,
            message.t0_ms,
            message.seen_ms,
            message.latest_ms,
            message.sender,
            message.lamport,
            message.witnesses_needed,
            # An id in hex is twice as long as its bytes.
            _flags(message, is_hex=0 < 2 * len(message_id) == len(message.message_id)),
        ), b"" if rest == _no_rest() else _ENCODER.encode(rest)

    def join(self, key: int, values: Sequence[int], rest: bytes) -> Message:
        """See `Codec`."""
        order, t0_ms, seen_ms, latest_ms, sender, lamport, needed, flags = values
        packed_id, waku_hash, hint, witnesses, rate = (
            _DECODER.decode(rest) if rest else _no_rest()
        )
        return Message(
            key,
            order,
            t0_ms,
            seen_ms,
            latest_ms,
            sender,
            lamport,
            Dialect.NIM if flags & _NIM else Dialect.SPEC,
            needed,
            definite=bool(flags & _DEFINITE),
            probable=bool(flags & _PROBABLE),
            overdue=bool(flags & _OVERDUE),
            in_time=bool(flags & _IN_TIME),
            opportunity=bool(flags & _OPPORTUNITY),
            witnesses=witnesses,
            witness_rate=rate,
            message_id=packed_id.hex() if flags & _HEX_ID else packed_id.decode(),
            waku_hash=waku_hash,
            was_named_before=bool(flags & _NAMED),
            hint=waku_hash if flags & _HINT_IS_HASH else hint,
        )


class MessageTable(Table[Message]):
    """Messages by fingerprint, in order of their first copies.

    Order, times of the first copy, sender and Lamport timestamp of a message never
    change.
    """

    def __init__(self, packed: PackedTable) -> None:
        super().__init__(_MessageCodec(), packed)
        self._added_by_order: dict[int, Message] = {}
        # Row and new `latest_ms` of messages that are not looked up.
        self._latest: dict[int, tuple[int, int]] = {}

    def add(self, message: Message) -> None:
        """Append a message; its order is greater than all others."""
        self[message.key] = message
        self._added_by_order[message.order] = message

    def by_order(self, order: int) -> Message | None:
        """The message with this order; None if it is not remembered."""
        message = self._added_by_order.get(order)
        if message is not None:
            return message
        orders = self._columns[_ORDER]
        row = int(orders.searchsorted(order))
        return self.at(row) if row < len(orders) and orders[row] == order else None

    def by_orders(self, orders: Iterable[int]) -> list[Message]:
        """The messages with these orders, without those that are not remembered."""
        added = self._added_by_order
        found = [added.get(order) or self.by_order(order) for order in orders]
        return [message for message in found if message is not None]

    def name_settled(self, key: int, hint: bytes, clock_ms: int) -> bool:
        """Move the `latest_ms` of a message that is named, without looking it up.

        Args:
            key: Its fingerprint.
            hint: The retrieval hint that it is named with.
            clock_ms: The channel's clock.

        Returns:
            False if it lacks an acknowledgement or the hint, or if it is not
            remembered: then nothing was changed.
        """
        known = self._latest.get(key)
        if known is not None:
            self._latest[key] = known[0], clock_ms
            return True
        row = None if key in self._live else self._row(key)
        if row is None:
            return False
        lacking = ~int(self._columns[_STATE][row])
        if lacking & _DEFINITE or (hint and lacking & _HAS_HINT):
            return False
        self._latest[key] = row, clock_ms
        return True

    def __delitem__(self, key: int) -> None:
        """Remove the message with this key, if there is one."""
        message = self._added.get(key)
        if message is not None:
            del self._added_by_order[message.order]
        self._latest.pop(key, None)
        super().__delitem__(key)

    def flush(self) -> None:
        """See `Table`."""
        if self._latest:
            self._given = None
            rows, clocks = zip(*self._latest.values(), strict=True)
            self._columns[_LATEST][list(rows)] = clocks
            self._latest.clear()
        super().flush()
        self._added_by_order.clear()

    def _opened(self, key: int, row: int) -> Message:
        message = super()._opened(key, row)
        _, message.latest_ms = self._latest.pop(key, (row, message.latest_ms))
        return message

    def sent_since(self, first: int, end: int) -> list[tuple[int, int, int]]:
        """Order, event time and sender of the messages from one order to another.

        Args:
            first: The first order; no message from it on was forgotten.
            end: The order after the last.
        """
        added = [self._added_by_order.get(order) for order in range(first, end)]
        found = [(one.order, one.t0_ms, one.sender) for one in added if one is not None]
        if len(found) == end - first:
            return found
        columns = [self._columns[number] for number in (_ORDER, _T0, _SENDER)]
        begin, stop = columns[0].searchsorted((first, end)).tolist()
        rows = (column[begin:stop].tolist() for column in columns)
        return [*zip(*rows, strict=True), *found]

    def first_seen_since(self, clock_ms: int) -> int | None:
        """Order of the first message seen at or after this clock; None if none is."""
        self.flush()
        row = int(self.column(_SEEN).searchsorted(clock_ms))
        return int(self.column(_ORDER)[row]) if row < len(self) else None

    def not_overdue(self) -> list[tuple[int, int]]:
        """Key and `seen_ms` of the messages whose deadline has not passed."""
        self.flush()
        rows = self.column(_STATE) & np.uint64(_OVERDUE) == 0
        return _pairs(self.keys[rows], self.column(_SEEN)[rows])

    def unacknowledged(self, since_ms: int) -> list[int]:
        """Keys of messages seen since a clock without any acknowledgement."""
        self.flush()
        rows = self._has_none() & (self.column(_SEEN) >= since_ms)
        return integers(self.keys[rows])

    def unjudged(self) -> list[int]:
        """Keys of messages without acknowledgement or opportunity, not overdue."""
        self.flush()
        judged = self.column(_STATE) & np.uint64(_OVERDUE | _OPPORTUNITY) != 0
        return integers(self.keys[self._has_none() & ~judged])

    def in_flight(self) -> list[tuple[int, int]]:
        """Key and event time of messages without acknowledgement and not overdue."""
        self.flush()
        overdue = self.column(_STATE) & np.uint64(_OVERDUE) != 0
        rows = self._has_none() & ~overdue
        return _pairs(self.keys[rows], self.column(_T0)[rows])

    def silent_since(self, clock_ms: int) -> list[int]:
        """Keys of messages neither seen nor named since this clock."""
        self.flush()
        return integers(self.keys[self.column(_LATEST) < clock_ms])

    def keep_ids_of(self, orders: set[int], since_ms: int) -> None:
        """Forget ids, hashes and hints that no later frame can need.

        Args:
            orders: Messages whose ids may be searched for; those without a definite
                acknowledgement are kept too.
            since_ms: Those seen before this clock are not needed.
        """
        self.flush()
        of_use = self.column(_STATE) & np.uint64(_DEFINITE) == 0
        wanted = np.fromiter(orders, np.int64, len(orders))
        of_use |= np.isin(self.column(_ORDER), wanted)
        bare = ~(of_use & (self.column(_SEEN) >= since_ms))
        self.strip(bare)
        flags = self.column(_STATE)
        flags[bare] &= ~np.uint64(_HEX_ID | _HAS_HINT)
        flags[bare] |= np.uint64(_HINT_IS_HASH)

    def _has_none(self) -> Column:
        """Which messages have neither kind of acknowledgement."""
        rows: Column = self.column(_STATE) & np.uint64(_DEFINITE | _PROBABLE) == 0
        return rows


def _pairs(first: Column, second: Column) -> list[tuple[int, int]]:
    return list(zip(integers(first), integers(second), strict=True))


def _packed_id(message_id: str) -> bytes:
    """The bytes of an id in lower-case hex; otherwise the id in UTF-8."""
    try:
        raw = bytes.fromhex(message_id)
    except ValueError:
        return message_id.encode()
    return raw if raw.hex() == message_id else message_id.encode()


def _flags(message: Message, *, is_hex: bool) -> int:
    return (
        message.definite * _DEFINITE
        | message.probable * _PROBABLE
        | message.overdue * _OVERDUE
        | message.in_time * _IN_TIME
        | message.opportunity * _OPPORTUNITY
        | message.was_named_before * _NAMED
        | (message.dialect is Dialect.NIM) * _NIM
        | is_hex * _HEX_ID
        | (message.hint == message.waku_hash) * _HINT_IS_HASH
        | bool(message.hint) * _HAS_HINT
    )
