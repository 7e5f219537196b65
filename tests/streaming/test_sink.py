"""What the sink publishes on the board."""

from __future__ import annotations

from pathlib import Path

from sds_core.observer import blob
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from streaming.board import Board
from streaming.findings import Findings
from streaming.labels import open_ledgers
from streaming.recent import RecentMinutes
from streaming.sink import Sink
from streaming.view_register import ViewRegister


def test_table_decides_the_labels_of_channels_that_are_new(tmp_path: Path) -> None:
    """One that is in ``other`` stays there: no counter that is exported falls."""
    board = Board()
    findings = Findings(tmp_path / "incidents.sqlite", 1)
    register = ViewRegister(tmp_path / "views.sqlite")
    ledgers = open_ledgers(tmp_path, kinds_of(PROTOCOLS), 0)
    recent = RecentMinutes(tmp_path / "minutes.sqlite")
    sink = Sink(board, ledgers, None, findings, False, None, recent, register)
    sink.publish(_totals("known"))
    assert board.snapshot.views["sds"].labels == ()
    board.set_table(ChannelTable([ChannelEntry("*", label=True)]))
    sink.publish(_totals("known", "new"))
    assert board.snapshot.views["sds"].labels == ("new",)


def _totals(*channels: str) -> dict[str, bytes]:
    packed = blob.totals_part(blob.pack(ChannelTotals(), None))
    return {CHANNELS.key(channel): packed for channel in channels}
