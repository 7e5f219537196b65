"""States and digests that are damaged although their checksum is right."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest

from sds_core.observer import blob
from sds_core.observer.kinds import AnyKind
from sds_core.observer.mvds.digest import ShardDigest, ShardDigester
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.shard_state import ShardState
from sds_core.observer.mvds.split import split
from sds_core.observer.record import Arrival
from sds_core.observer.sds.channel_state import ChannelState
from sds_core.observer.sds.digest import ChannelDigest
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapDigest, TapState
from tests.support.channel import digest_of
from tests.support.frames import START_MS, FrameFactory, Record, running_clocks
from tests.support.golden.blobs import KINDS, made
from tests.support.mvds.traffic import sent
from tests.support.observer.damage import (
    COLUMN_DAMAGE,
    TABLE_DAMAGE,
    columns_in,
    state_of,
    tables_in,
)

STATES = {"channel": ChannelState, "mvds": ShardState, "tap": TapState}
NAMES = ("channel.busy", "channel.nim", "mvds.busy")


@cache
def golden(name: str) -> bytes:
    """The blob of a view that has golden blobs."""
    data: bytes = made()[name].to_blob()
    return data


def opened(name: str) -> tuple[AnyKind, Any, Any]:
    """The kind, totals and state of such a view."""
    prefix = name.partition(".")[0]
    kind = KINDS[prefix]
    return (kind, *state_of(kind, golden(name), STATES[prefix]))


def is_refused(kind: AnyKind, totals: Any, state: Any) -> bool:
    """Whether opening a state gives the error for a damaged one, and no other."""
    try:
        kind.view.from_blob(kind.blob_version, blob.pack(totals, state))
    except blob.DamagedBlob:
        return True
    return False


@pytest.mark.parametrize("damage", COLUMN_DAMAGE)
def test_damaged_column_of_any_kind_is_refused(damage: str) -> None:
    """When the view is opened, since nothing checks it later."""
    tried, accepted = 0, []
    for name in NAMES:
        for number, column in enumerate(columns_in(opened(name)[2])):
            kind, totals, state = opened(name)
            if not list(columns_in(state))[number].damage(COLUMN_DAMAGE[damage]):
                continue
            tried += 1
            if not is_refused(kind, totals, state):
                accepted.append(f"{name}{column.name}")
    assert tried > 20
    assert not accepted


@pytest.mark.parametrize("damage", TABLE_DAMAGE)
def test_damaged_table_is_refused(damage: str) -> None:
    """Each entry has its bytes, and all bytes belong to an entry."""
    tried, accepted = 0, []
    for name in NAMES:
        for number, (place, _) in enumerate(tables_in(opened(name)[2])):
            kind, totals, state = opened(name)
            table = list(tables_in(state))[number][1]
            if not TABLE_DAMAGE[damage](table):
                continue
            tried += 1
            if not is_refused(kind, totals, state):
                accepted.append(f"{name}{place}")
    assert tried > 1
    assert not accepted


@pytest.mark.parametrize(
    "ahead_own", [[1], [1, 2, 3]], ids=["a time less", "a time more"]
)
def test_records_ahead_of_a_tap_have_one_time_each(ahead_own: list[int]) -> None:
    """Both columns have one value for each record."""
    kind, totals, state = opened("tap.holes")
    state.ahead = [(START_MS + 80_000 + n, False, 20 + n) for n in range(2)]
    state.ahead_own = ahead_own
    assert is_refused(kind, totals, state)


def channel_digest() -> ChannelDigest:
    """A digest with histories, requests, and filters that are whole and changed."""
    frames = FrameFactory()
    records = [
        Record(0, frames.sync("ann", 1, history=["a", "b"], holds=["a"]), "tap", 1),
        Record(1, frames.sync("bob", 2, requests=["c", "d"], holds=["a", "b"])),
        Record(2, frames.content("e", "ann", 3, history=["b", "c"], holds=["c"])),
    ]
    return digest_of(zip(records, running_clocks(records), strict=True))


def shard_digest() -> ShardDigest:
    """A digest with records of every type."""
    numbers = range(40)
    record = sent(
        0, "a", "b", acks=numbers, offers=numbers, requests=numbers, messages=numbers
    )
    digester = ShardDigester(0)
    part = dict(split(record.frame))["0"]
    digester.add(part, record.value, Arrival(0, START_MS, START_MS, "tap", 1))
    return digester.finish()


def tap_digest() -> TapDigest:
    """A digest with frames and heartbeats, and a clock of its own."""
    times = array("q", [START_MS, START_MS + 1]).tobytes()
    return TapDigest(times, times, times, times, times[:8] * 2, times[8:] * 2)


DIGESTS: dict[str, tuple[AnyKind, Callable[[], Any]]] = {
    "channel": (CHANNELS, channel_digest),
    "mvds": (SHARD_VIEWS, shard_digest),
    "tap": (TAPS, tap_digest),
}

FAR = 1 << 40
"""Beyond every list, and within 64 bits."""


def damaged_rows(rows: list[Any], fields: tuple[int, ...]) -> list[Any]:
    """Each of these fields of the first row, far too large and negative."""
    found = []
    for field in fields:
        for value in (FAR, -FAR):
            row = (*rows[0][:field], value, *rows[0][field + 1 :])
            found.append([row, *rows[1:]])
    return found


# Of a channel's row: observer, kind, name, sender, both ends of the history, ends of
# requests and changes, and how the filter is packed.
ROW_INDICES = {"channel": (3, 8, 9, 10, 12, 13, 15, 17, 19), "mvds": (3, 6, 7)}


def damaged(name: str) -> list[tuple[str, Any]]:
    """Digests of which one part is damaged, by the part."""
    kind, make = DIGESTS[name]
    found = []
    for field in msgspec.structs.fields(kind.digest):
        value = getattr(make(), field.name)
        wrong: list[Any] = []
        if isinstance(value, bytes) and value:
            wrong = [value[:-1], value[:-8], value + b"\0", value + bytes(8)]
        elif isinstance(value, list) and value and field.name != "segments":
            # Nobody misses a row, nor what the last of them would have named.
            if field.name not in ("rows", "heard"):
                wrong = [value[:-1]]
            if isinstance(value[0], int) and field.name in ("histories", "requests"):
                wrong += [[FAR, *value[1:]], [-FAR, *value[1:]]]
            if field.name == "name_senders":
                wrong += [[FAR, *value[1:]], [-FAR, *value[1:]]]
            if field.name == "rows":
                wrong = damaged_rows(value, ROW_INDICES[name])
            if field.name == "heard":
                wrong = damaged_rows(value, (2,))
        for number, one in enumerate(wrong):
            digest = make()
            setattr(digest, field.name, one)
            found.append((f"{field.name} {number}", digest))
    return found


@pytest.mark.parametrize("name", DIGESTS)
def test_damaged_digest_gives_the_error_for_damage(name: str) -> None:
    """Whatever part of it: an index beyond its list, a column of another length."""
    kind, make = DIGESTS[name]
    kind.view().apply([make()], START_MS + 10)
    accepted = []
    for part, digest in damaged(name):
        packed = msgspec.msgpack.encode(digest)
        try:
            read = msgspec.msgpack.decode(packed, type=kind.digest)
            kind.view().apply([read], START_MS + 10)
        except (blob.DamagedDigest, msgspec.DecodeError):
            continue
        except Exception as error:
            accepted.append(f"{part}: {type(error).__name__}")
        else:
            accepted.append(part)
    assert not accepted
