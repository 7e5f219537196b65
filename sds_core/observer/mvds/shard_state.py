"""State of an MVDS view between two batches, without its totals."""

from __future__ import annotations

import msgspec

from sds_core.observer.mvds.copies import CopiesState
from sds_core.observer.mvds.peers import PeersState
from sds_core.observer.table import PackedTable

BLOB_VERSION = 1
"""Version of `ShardView.to_blob`."""


class ShardState(msgspec.Struct, array_like=True):
    """State of the view between two batches, without its totals.

    Stored by position: add fields only at the end and with a default, and never change
    the order.

    Attributes:
        heard_ms: Clock at the latest payload; None before the first.
        emitted: For each group, the fingerprint of the figures of its last emitted
            minute.
    """

    clock_ms: int = 0
    heard_ms: int | None = None
    copies: CopiesState = msgspec.field(default_factory=CopiesState)
    peers: PeersState = msgspec.field(default_factory=PeersState)
    messages: PackedTable = msgspec.field(default_factory=PackedTable)
    emitted: dict[str, int] = {}
