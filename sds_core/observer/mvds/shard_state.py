"""The state that an MVDS view keeps between two batches, besides its totals."""

from __future__ import annotations

import msgspec

from sds_core.observer.mvds.copies import CopiesState
from sds_core.observer.mvds.peers import PeersState
from sds_core.observer.table import PackedTable

BLOB_VERSION = 1
"""Version of `ShardView.to_blob`."""


class ShardState(msgspec.Struct, array_like=True):
    """The state that a view keeps between two batches, besides its totals.

    Fields are stored by position: never change their order, and add fields only at the
    end, with a default.

    Attributes:
        heard_ms: Clock at the latest payload, Unix ms; None before the first payload.
        emitted: Fingerprint of each group's figures in the group's last emitted minute,
            by group name.
    """

    clock_ms: int = 0
    heard_ms: int | None = None
    copies: CopiesState = msgspec.field(default_factory=CopiesState)
    peers: PeersState = msgspec.field(default_factory=PeersState)
    messages: PackedTable = msgspec.field(default_factory=PackedTable)
    emitted: dict[str, int] = {}
