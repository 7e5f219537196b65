"""The board: what exporter and page read."""

from __future__ import annotations

from sds_core.observer import blob
from sds_core.observer.dead_letter_view import DeadLetterTotals
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.tap_view import TapTotals
from streaming.board import Board
from streaming.keys import KeyKind, make_key
from streaming.position import Position


def packed(totals: object) -> bytes:
    """Totals as they leave the stateful operator."""
    return blob.totals_part(blob.pack(totals, None))


def test_a_board_is_unprimed_until_totals_are_set() -> None:
    """An empty checkpoint primes it all the same."""
    board = Board()
    assert not board.snapshot.primed
    board.set_totals({}, (), ())
    assert board.snapshot.primed


def test_setting_totals_twice_changes_nothing() -> None:
    """A replayed batch does no harm."""
    board = Board()
    batch = {
        make_key(KeyKind.CHANNEL, "town"): packed(ChannelTotals(messages=3)),
        make_key(KeyKind.TAP, "tap"): packed(TapTotals(last_seen_ms=7)),
        make_key(KeyKind.DEAD_LETTERS, "0"): packed(
            DeadLetterTotals({"empty_value": 2})
        ),
    }
    board.set_totals(batch, ("town",), ("tap",))
    first = board.snapshot
    board.set_totals(batch, ("town",), ("tap",))
    assert board.snapshot == first
    assert first.channels["town"].messages == 3
    assert first.taps["tap"].last_seen_ms == 7
    assert (first.labels, first.tap_labels) == (("town",), ("tap",))
    assert first.undecodable == {"empty_value": 2}


def test_dead_letters_are_summed_over_partitions() -> None:
    """Each partition has absolute counts of its own."""
    board = Board()
    for partition in ("0", "1"):
        key = make_key(KeyKind.DEAD_LETTERS, partition)
        board.set_totals({key: packed(DeadLetterTotals({"too_large": 1}))}, (), ())
    assert board.snapshot.undecodable == {"too_large": 2}


def test_an_older_snapshot_is_never_changed() -> None:
    """A scrape in progress keeps what it has."""
    board = Board()
    key = make_key(KeyKind.CHANNEL, "town")
    board.set_totals({key: packed(ChannelTotals(messages=1))}, (), ())
    before = board.snapshot
    board.set_totals({key: packed(ChannelTotals(messages=2))}, (), ())
    board.set_position(Position(clock_ms=9, records=8, skipped=7))
    assert before.channels["town"].messages == 1
    assert board.snapshot.channels["town"].messages == 2
    assert (board.snapshot.job.records, board.snapshot.clock_ms) == (8, 9)


def test_a_tap_of_which_nothing_is_known_is_dropped() -> None:
    """Forgotten, or not seen yet; it is there again when it returns."""
    board = Board()
    west, east = (make_key(KeyKind.TAP, name) for name in ("west", "east"))
    seen = packed(TapTotals(last_seen_ms=7))
    board.set_totals({west: seen, east: packed(TapTotals())}, (), ("west",))
    before = board.snapshot
    assert set(before.taps) == {"west"}
    board.set_totals({west: packed(TapTotals())}, (), ("west",))
    assert not board.snapshot.taps
    assert board.snapshot.tap_labels == ("west",)
    board.set_totals({west: seen}, (), ("west",))
    assert board.snapshot.taps == before.taps
