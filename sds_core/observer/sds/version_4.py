"""Reads channel states written by releases from 0.3.0 to 0.8.0: versions 2 to 4."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sds_core.observer.columns import unpack_ints, unpack_steps
from sds_core.observer.minutes import MinutesState
from sds_core.observer.sds.capacity import EpochState
from sds_core.observer.sds.channel_state import ChannelState
from sds_core.observer.sds.copies import CopiesState
from sds_core.observer.sds.deliveries import DeliveriesState
from sds_core.observer.sds.filters import FilterTrace
from sds_core.observer.sds.gap_table import Gap, GapTable
from sds_core.observer.sds.health import HealthState
from sds_core.observer.sds.history_heads import HistoryHead
from sds_core.observer.sds.messages import Message, MessageTable
from sds_core.observer.sds.participants import Participant
from sds_core.observer.sds.requests import Request, RequestTable
from sds_core.observer.table import PackedTable
from sds_core.wire import Dialect

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
) = (1 << bit for bit in range(9))


class _Messages(msgspec.Struct, array_like=True):
    """Columns of n messages, each of shape (n,).

    Attributes:
        orders, t0s: Columns that `pack_steps` encodes; `pack_ints` encodes the other
            columns.
        delays: `seen_ms - t0_ms`.
        flags: Bits of the flags, in the order of their constants.
        ids, hashes, hints: One value for each message; empty if no later frame needs
            the value.
        witnesses: `witnesses` and `witness_rate` of messages with witnesses; the key is
            the message's order.
    """

    keys: bytes = b""
    orders: bytes = b""
    t0s: bytes = b""
    delays: bytes = b""
    latest: bytes = b""
    senders: bytes = b""
    lamports: bytes = b""
    needed: bytes = b""
    flags: bytes = b""
    ids: list[bytes] = []
    hashes: list[bytes] = []
    hints: list[bytes] = []
    witnesses: dict[int, tuple[list[int], float]] = {}

    def unpacked(self) -> dict[int, Message]:
        return {message.key: message for message in self._each()}

    def _each(self) -> Iterator[Message]:
        columns = zip(
            unpack_ints(self.keys, signed=True).tolist(),
            unpack_steps(self.orders).tolist(),
            unpack_steps(self.t0s).tolist(),
            unpack_ints(self.delays).tolist(),
            unpack_ints(self.latest, signed=True).tolist(),
            unpack_ints(self.senders, signed=True).tolist(),
            unpack_ints(self.lamports).tolist(),
            unpack_ints(self.needed).tolist(),
            unpack_ints(self.flags).tolist(),
            self.ids,
            self.hashes,
            self.hints,
            strict=True,
        )
        for (
            key, order, t0_ms, delay_ms, latest_ms, sender, lamport, needed, flags, id_,
            waku_hash, hint,
        ) in columns:  # fmt: skip
            witnesses, rate = self.witnesses.get(order, ([], 1.0))
            yield Message(
                key,
                order,
                t0_ms,
                t0_ms + delay_ms,
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
                message_id=id_.hex() if flags & _HEX_ID else id_.decode(),
                waku_hash=waku_hash,
                was_named_before=bool(flags & _NAMED),
                hint=waku_hash if flags & _HINT_IS_HASH else hint,
            )


class OldChannelState(msgspec.Struct, array_like=True):
    """`ChannelState` in its former layout."""

    clock_ms: int = 0
    swept_ms: int = 0
    highest_lamports: dict[Dialect, int] = {}
    participants: list[Participant] = []
    copies: CopiesState = msgspec.field(default_factory=CopiesState)
    messages: _Messages = msgspec.field(default_factory=_Messages)
    gaps: dict[int, Gap] = {}
    requests: dict[int, Request] = {}
    health: HealthState = msgspec.field(default_factory=HealthState)
    deliveries: DeliveriesState = msgspec.field(default_factory=DeliveriesState)
    filters: dict[int, FilterTrace] = {}
    epoch: EpochState = msgspec.field(default_factory=EpochState)
    minutes: MinutesState = msgspec.field(default_factory=MinutesState)
    heads: dict[int, HistoryHead] = {}
    heard_ms: int | None = None


def channel_state(data: bytes | memoryview) -> ChannelState:
    """Decode a channel's state from its part of a blob."""
    old = msgspec.msgpack.decode(data, type=OldChannelState)
    return ChannelState(
        old.clock_ms,
        old.swept_ms,
        old.highest_lamports,
        old.participants,
        old.copies,
        packed_messages(old.messages.unpacked()),
        packed_gaps(old.gaps),
        packed_requests(old.requests),
        old.health,
        old.deliveries,
        old.filters,
        old.epoch,
        old.minutes,
        old.heads,
        old.heard_ms,
    )


def packed_messages(messages: dict[int, Message]) -> PackedTable:
    """Messages by fingerprint as an encoded table."""
    table = MessageTable(PackedTable())
    for message in messages.values():
        table.add(message)
    return table.packed()


def packed_gaps(gaps: dict[int, Gap]) -> PackedTable:
    """Gaps by fingerprint as an encoded table."""
    table = GapTable(PackedTable())
    for key, gap in gaps.items():
        table[key] = gap
    return table.packed()


def packed_requests(requests: dict[int, Request]) -> PackedTable:
    """Requests by fingerprint as an encoded table."""
    table = RequestTable(PackedTable())
    for key, request in requests.items():
        table[key] = request
    return table.packed()
