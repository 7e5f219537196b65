"""Reads channel states written by releases before 0.3.0."""

from __future__ import annotations

import msgspec
import numpy as np

from sds_core.observer.columns import pack_ints, pack_steps
from sds_core.observer.memory import Remembered
from sds_core.observer.sds.channel_state import ChannelState
from sds_core.observer.sds.copies import CopiesState, PackedBroadcasts
from sds_core.observer.sds.gap_table import Gap
from sds_core.observer.sds.health import HealthState
from sds_core.observer.sds.messages import Message
from sds_core.observer.sds.participants import Participant
from sds_core.observer.sds.requests import Request
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.sds.version_4 import packed_tables
from sds_core.wire import Dialect


class _Remembered(msgspec.Struct, array_like=True):
    keys: bytes
    clocks: bytes

    def upgraded(self) -> Remembered:
        keys, clocks = (
            np.frombuffer(data, dtype=np.int64).tolist()
            for data in (self.keys, self.clocks)
        )
        return Remembered(pack_ints(keys, signed=True), pack_steps(clocks))


class _Broadcast(msgspec.Struct, array_like=True):
    time_ms: int
    clock_ms: int
    has_hash: bool


class _Copies(msgspec.Struct, array_like=True):
    numbers: dict[str, _Remembered]
    hashes: _Remembered
    broadcasts: dict[int, _Broadcast]
    observers: dict[str, int]

    def upgraded(self) -> CopiesState:
        broadcasts = self.broadcasts.values()
        return CopiesState(
            {observer: one.upgraded() for observer, one in self.numbers.items()},
            self.hashes.upgraded(),
            PackedBroadcasts(
                pack_ints(list(self.broadcasts), signed=True),
                pack_steps([one.time_ms for one in broadcasts]),
                pack_ints([one.clock_ms - one.time_ms for one in broadcasts]),
                pack_ints([one.has_hash for one in broadcasts]),
            ),
            self.observers,
        )


class _Message(msgspec.Struct, array_like=True):
    t0_ms: int
    seen_ms: int
    latest_ms: int
    sender: int
    lamport: int
    dialect: Dialect
    witnesses_needed: int
    definite: bool
    probable: bool
    overdue: bool
    in_time: bool
    opportunity: bool
    witnesses: list[int]
    witness_rate: float
    message_id: str


class _ChannelState(msgspec.Struct, array_like=True):
    clock_ms: int
    swept_ms: int
    highest_lamports: dict[Dialect, int]
    participants: list[Participant]
    copies: _Copies
    messages: dict[int, _Message]
    gaps: dict[int, Gap]
    requests: dict[int, Request]
    health: HealthState


def channel_state(data: bytes | memoryview, totals: ChannelTotals) -> ChannelState:
    """Decode a channel's state from a blob of version 1.

    The blob contains no deliveries and no filters. The blob does not state when the
    verdict began, so the time of the channel's clock is used. The blob does not show
    which of its messages were named before they were seen, so the times of requests for
    these messages are not checked.
    """
    old = msgspec.msgpack.decode(data, type=_ChannelState)
    messages = {
        key: Message(
            key, order, **msgspec.structs.asdict(message), was_named_before=True
        )
        for order, (key, message) in enumerate(
            old.messages.items(), totals.messages - len(old.messages)
        )
    }
    old.health.verdict = totals.verdict
    old.health.reason = totals.verdict_reason
    old.health.since_ms = old.clock_ms
    changed = {"copies": old.copies.upgraded()}
    tables = packed_tables(messages, old.gaps, old.requests)
    return ChannelState(**msgspec.structs.asdict(old) | changed | tables)
