"""Reads channel states written by releases from 0.3.0 to 0.8.0: versions 2 to 4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from sds_core.observer.sds.messages import (
    DEFINITE,
    HEX_ID,
    HINT_IS_HASH,
    IN_TIME,
    NAMED,
    NIM,
    OPPORTUNITY,
    OVERDUE,
    PROBABLE,
    Message,
    MessageTable,
)
from sds_core.observer.sds.participants import Participant
from sds_core.observer.sds.requests import Request, RequestTable
from sds_core.observer.table import Entry, PackedTable, Table
from sds_core.wire import Dialect


class _Messages(msgspec.Struct, array_like=True):
    """Messages, encoded by column. Each column has one value for each message.

    Attributes:
        orders, t0s: Encoded by `pack_steps`. The other columns of type bytes are
            encoded by `pack_ints`.
        delays: `seen_ms - t0_ms`.
        flags: The messages' flags; the module `messages` defines the bits.
        ids, hashes, hints: A value is empty if no later frame needs it.
        witnesses: For each message that has witnesses, its `Message.witnesses` and
            `Message.witness_rate`. The key is the message's order.
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

    def unpacked(self) -> Iterator[Message]:
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
                Dialect.NIM if flags & NIM else Dialect.SPEC,
                needed,
                definite=bool(flags & DEFINITE),
                probable=bool(flags & PROBABLE),
                overdue=bool(flags & OVERDUE),
                in_time=bool(flags & IN_TIME),
                opportunity=bool(flags & OPPORTUNITY),
                witnesses=witnesses,
                witness_rate=rate,
                message_id=id_.hex() if flags & HEX_ID else id_.decode(),
                waku_hash=waku_hash,
                was_named_before=bool(flags & NAMED),
                hint=waku_hash if flags & HINT_IS_HASH else hint,
            )


class OldChannelState(msgspec.Struct, array_like=True):
    """`ChannelState` in the layout of versions 2 to 4."""

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
    """Decode a channel's state. `data` is the part of a blob after the totals."""
    old = msgspec.msgpack.decode(data, type=OldChannelState)
    messages = {one.key: one for one in old.messages.unpacked()}
    tables = packed_tables(messages, old.gaps, old.requests)
    return ChannelState(**msgspec.structs.asdict(old) | tables)


def packed_tables(
    messages: Mapping[int, Message],
    gaps: Mapping[int, Gap],
    requests: Mapping[int, Request],
) -> dict[str, PackedTable]:
    """Encode the tables of `ChannelState`. The arguments have fingerprints as keys."""
    return {
        "messages": _packed(MessageTable(PackedTable()), messages),
        "gaps": _packed(GapTable(PackedTable()), gaps),
        "requests": _packed(RequestTable(PackedTable()), requests),
    }


def _packed(table: Table[Entry], entries: Mapping[int, Entry]) -> PackedTable:
    for key, entry in entries.items():
        table[key] = entry
    return table.packed()
