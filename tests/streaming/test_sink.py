"""What the sink gives to the board."""

from __future__ import annotations

from pathlib import Path

from sds_core.observer import blob
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.sds.totals import ChannelTotals
from streaming.board import Board
from streaming.findings import Findings
from streaming.keys import KeyKind, make_key
from streaming.labels import LabelLedger
from streaming.sink import Sink


def test_table_decides_the_labels_of_channels_that_are_new(tmp_path: Path) -> None:
    """One that is in ``other`` stays there: no counter that is exported falls."""
    board = Board()
    findings = Findings(tmp_path / "incidents.sqlite", 1)
    ledgers = [LabelLedger(tmp_path / name, 0) for name in ("channels", "taps")]
    sink = Sink(board, *ledgers, None, findings, False, None)  # type: ignore[misc]
    sink.show(_totals("known"))
    assert board.snapshot.labels == ()
    board.set_table(ChannelTable([ChannelEntry("*", label=True)]))
    sink.show(_totals("known", "new"))
    assert board.snapshot.labels == ("new",)


def _totals(*channels: str) -> dict[str, bytes]:
    packed = blob.totals_part(blob.pack(ChannelTotals(), None))
    return {make_key(KeyKind.CHANNEL, channel): packed for channel in channels}
