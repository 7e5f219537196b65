"""What the sink publishes on the board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from connectors.prometheus.collector import SnapshotCollector
from sds_core.observer import blob
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapTotals
from streaming.board import Board
from streaming.chunk import CLOCK_KEY
from streaming.fold import OutputRow
from streaming.ledger.stores import Stores
from streaming.sink import Sink
from tests.support.channel import digest_of
from tests.support.frames import (
    MINUTE,
    START_MS,
    FrameFactory,
    Record,
    running_clocks,
)
from tests.support.streaming.ledger import ledger_in
from tests.support.toy.league import LEAGUE


def test_table_decides_the_labels_of_channels_that_are_new(tmp_path: Path) -> None:
    """One that is in ``other`` stays there: no counter that is exported falls."""
    board = Board()
    stores = Stores.of(ledger_in(tmp_path), kinds_of(PROTOCOLS), 0, False, False)
    sink = Sink(board, stores, None, str)
    sink.prime(_totals("known"))
    assert board.snapshot.views["sds"].labels == ()
    board.set(table=ChannelTable([ChannelEntry("*", label=True)]))
    sink.prime(_totals("known", "new"))
    assert board.snapshot.views["sds"].labels == ("new",)


def test_kind_without_a_store_is_refused(tmp_path: Path) -> None:
    """Its incidents would be lost silently."""
    stores = Stores.of(ledger_in(tmp_path), kinds_of(PROTOCOLS), 0, False, False)
    with pytest.raises(
        ValueError, match="no store is given for the findings of kind league"
    ):
        Sink(Board(), stores, None, str, (*PROTOCOLS, LEAGUE))


@pytest.mark.parametrize("cut", [2, 3, 6])
def test_channel_that_ends_and_returns_in_a_batch_has_its_last_hour(
    tmp_path: Path, cut: int
) -> None:
    """The minutes of the new channel are stored, however the records are cut."""
    hour = 60 * MINUTE
    times = [0, MINUTE, 30 * hour, 31 * hour, 31 * hour + 20 * MINUTE, 31 * hour + 30]
    frames = FrameFactory()
    records = [Record(at, frames.content(f"at-{at}", "ana")) for at in times]
    stores = Stores.of(ledger_in(tmp_path), kinds_of(PROTOCOLS), 5, False, False)
    sink = Sink(Board(), stores, None, str)
    sink.prime({})
    view = ChannelView(ObserverSettings(forget_ms=24 * hour))
    for number, part in enumerate((records[:cut], records[cut:])):
        clocked = list(zip(part, running_clocks(part), strict=True))
        clock_ms = START_MS + max([clock for _, clock in clocked], default=32 * hour)
        digests = [digest_of(clocked, number * cut)] if clocked else []
        events = msgspec.msgpack.encode(view.apply(digests, clock_ms))
        totals = blob.totals_part(view.to_blob())
        rows: list[Any] = [
            OutputRow(CHANNELS.key("c"), totals, events),
            OutputRow(CLOCK_KEY, clock_ms=clock_ms),
        ]
        sink.take(rows, number)
    recent = stores.by_kind[CHANNELS.prefix].recent
    found = recent.at(START_MS + 31 * hour - MINUTE)["c"]
    place = CHANNEL_FIGURES.counted["messages"]
    assert found.values[place] == 1


def test_missing_records_of_other_taps_never_fall(tmp_path: Path) -> None:
    """Those of a forgotten tap stay, without a time of its last record."""
    board = Board()
    stores = Stores.of(ledger_in(tmp_path), kinds_of(PROTOCOLS), 5, False, False)
    sink = Sink(board, stores, None, str)

    def seen(at_ms: int, missing: int) -> bytes:
        return blob.pack_totals(TapTotals(at_ms, missing))

    def exported() -> dict[str, float | None]:
        registry = CollectorRegistry()
        registry.register(SnapshotCollector(lambda: board.snapshot))
        names = (
            "sds_tap_missing_records_total",
            "sds_tap_last_seen_timestamp_seconds",
        )
        return {
            name: registry.get_sample_value(name, {"observer": "other"})
            for name in names
        }

    budget = TAPS.label_budget or 0
    labelled = {TAPS.key(f"tap {number:02}"): seen(1, 9) for number in range(budget)}
    sink.prime(labelled)
    none = msgspec.msgpack.encode([])
    last = msgspec.msgpack.encode([Forgotten(seen(5_000, 7))])
    batches: list[list[Any]] = [
        [OutputRow(TAPS.key(name), seen(5_000, 7), none) for name in ("x", "y")],
        [OutputRow(TAPS.key("x"), None, last)],
        [OutputRow(TAPS.key("y"), None, last)],
        [OutputRow(TAPS.key("z"), seen(8_000, 1), none)],
        [OutputRow(TAPS.key("tap 00"), None, last)],
    ]
    found = []
    for number, rows in enumerate(batches):
        sink.take(rows, number)
        found.append(tuple(exported().values()))
    assert found == [(14, 5), (14, 5), (None, None), (15, 8), (15, 8)]


def _totals(*channels: str) -> dict[str, bytes]:
    packed = blob.totals_part(blob.pack(ChannelTotals(), None))
    return {CHANNELS.key(channel): packed for channel in channels}
