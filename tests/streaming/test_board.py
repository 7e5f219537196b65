"""The board, which exporter and page read."""

from __future__ import annotations

from collections.abc import KeysView

import pytest

from sds_core.observer import blob
from sds_core.observer.dead_letter_view import DEAD_LETTERS, DeadLetterTotals
from sds_core.observer.kinds import UnknownKind
from sds_core.observer.protocols import PROTOCOLS
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapTotals
from streaming.board import Board
from streaming.position import Position
from tests.support.streaming.ledger import show
from tests.support.toy.protocol import ROOMS, TOY, RoomTotals


def packed(totals: object) -> bytes:
    """Totals as they leave the stateful operator."""
    return blob.totals_part(blob.pack(totals, None))


def test_a_board_is_unprimed_until_totals_are_set() -> None:
    """Setting the totals of an empty checkpoint primes it too."""
    board = Board()
    assert not board.snapshot.primed
    show(board, {})
    assert board.snapshot.primed


def test_setting_totals_twice_changes_nothing() -> None:
    """So a replayed batch is harmless."""
    board = Board()
    batch = {
        CHANNELS.key("town"): packed(ChannelTotals(messages=3)),
        TAPS.key("tap"): packed(TapTotals(last_seen_ms=7)),
        DEAD_LETTERS.key("0"): packed(DeadLetterTotals({"empty_value": 2})),
    }
    labels = {"sds": ("town",), "tap": ("tap",)}
    show(board, batch, labels)
    first = board.snapshot
    show(board, batch, labels)
    assert board.snapshot == first
    assert first.views["sds"].totals["town"].messages == 3
    assert first.taps["tap"].last_seen_ms == 7
    assert (first.views["sds"].labels, first.tap_labels) == (("town",), ("tap",))
    assert first.undecodable == {"empty_value": 2}


def test_names_of_views_are_looked_up_without_a_copy() -> None:
    """A batch asks once for each of its views: copies of all names took seconds."""
    board = Board()
    show(board, {CHANNELS.key("town"): packed(ChannelTotals(messages=3))})
    names = board.names(CHANNELS.prefix)
    assert isinstance(names, KeysView)
    assert set(names) == {"town"}


def test_dead_letters_are_summed_over_partitions() -> None:
    """Each partition has its own absolute counts."""
    board = Board()
    for partition in ("0", "1"):
        key = DEAD_LETTERS.key(partition)
        show(board, {key: packed(DeadLetterTotals({"too_large": 1}))})
    assert board.snapshot.undecodable == {"too_large": 2}


def test_an_older_snapshot_is_never_changed() -> None:
    """A scrape in progress reads one state."""
    board = Board()
    key = CHANNELS.key("town")
    show(board, {key: packed(ChannelTotals(messages=1))})
    before = board.snapshot
    show(board, {key: packed(ChannelTotals(messages=2))})
    board.set_position(Position(clock_ms=9, records=8, skipped=7))
    assert before.views["sds"].totals["town"].messages == 1
    assert board.snapshot.views["sds"].totals["town"].messages == 2
    assert (board.snapshot.job.records, board.snapshot.clock_ms) == (8, 9)


def test_a_tap_of_which_nothing_is_known_is_dropped() -> None:
    """Forgotten, or not seen yet; it is there again when it returns."""
    board = Board()
    west, east = (TAPS.key(name) for name in ("west", "east"))
    seen = packed(TapTotals(last_seen_ms=7))
    show(board, {west: seen, east: packed(TapTotals())}, {"tap": ("west",)})
    before = board.snapshot
    assert set(before.taps) == {"west"}
    show(board, {west: packed(TapTotals())}, {"tap": ("west",)})
    assert not board.snapshot.taps
    assert board.snapshot.tap_labels == ("west",)
    show(board, {west: seen}, {"tap": ("west",)})
    assert board.snapshot.taps == before.taps


def test_views_of_another_protocol_have_a_place_of_their_own() -> None:
    """From the start, so that pages know them; channels are left alone."""
    board = Board([*PROTOCOLS, TOY])
    assert set(board.snapshot.views) == {"sds", "mvds", "toy"}
    hall = packed(RoomTotals(moves=3))
    show(board, {ROOMS.key("hall"): hall}, {"toy": ("hall",)})
    rooms = board.snapshot.views["toy"]
    assert (rooms.kind, rooms.labels) == (ROOMS, ("hall",))
    assert rooms.totals["hall"].moves == 3
    assert not board.snapshot.views["sds"].totals


def test_totals_of_a_kind_that_is_not_registered_are_refused() -> None:
    """A checkpoint of a job with more protocols is not read over."""
    with pytest.raises(UnknownKind, match="'toy'"):
        show(Board(), {ROOMS.key("hall"): packed(RoomTotals())})
