"""What the sink publishes on the board."""

from __future__ import annotations

from pathlib import Path

import pytest

from sds_core.observer import blob
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from streaming.board import Board
from streaming.ledger.stores import Stores
from streaming.sink import Sink
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


def _totals(*channels: str) -> dict[str, bytes]:
    packed = blob.totals_part(blob.pack(ChannelTotals(), None))
    return {CHANNELS.key(channel): packed for channel in channels}
