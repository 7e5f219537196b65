"""The sync frames that were seen, by id, and their packed form in the state.

nim-sds puts the ids of sync frames into causal histories, and repairs these frames
(docs/figures.md, 2).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sds_core.observer.columns import integers
from sds_core.observer.table import RISING, SIGNED, UNSIGNED, PackedTable, Table
from sds_core.wire import Dialect


class SeenSync(msgspec.Struct):
    """The newest first copy of a sync frame with one id.

    Attributes:
        seen_ms: The channel's clock when it was seen, Unix ms.
        latest_ms: The channel's clock when it was last seen or named, Unix ms.
        sender: Participant index or `UNKNOWN`.
        lamport: Lamport timestamp, in the unit of its dialect.
        dialect: Dialect of the frame.
        is_named: Whether a causal history has named it, so that it may be named again.
    """

    seen_ms: int
    latest_ms: int
    sender: int
    lamport: int
    dialect: Dialect
    is_named: bool = False


_NIM, _NAMED = (1 << bit for bit in range(2))

_SEEN, _LATEST, _SENDER, _LAMPORT, _FLAGS = range(5)
"""Columns of the table."""


class _SyncCodec:
    """All of a sync frame lies in columns."""

    packings = (RISING, SIGNED, SIGNED, UNSIGNED, UNSIGNED)

    def split(self, entry: SeenSync) -> tuple[tuple[int, ...], bytes]:
        """See `Codec`."""
        flags = (entry.dialect is Dialect.NIM) * _NIM | entry.is_named * _NAMED
        return (
            entry.seen_ms,
            entry.latest_ms,
            entry.sender,
            entry.lamport,
            flags,
        ), b""

    def join(self, key: int, values: Sequence[int], rest: bytes) -> SeenSync:
        """See `Codec`."""
        seen_ms, latest_ms, sender, lamport, flags = values
        dialect = Dialect.NIM if flags & _NIM else Dialect.SPEC
        return SeenSync(
            seen_ms, latest_ms, sender, lamport, dialect, bool(flags & _NAMED)
        )


class SyncTable(Table[SeenSync]):
    """Sync frames by fingerprint of the id."""

    def __init__(self, packed: PackedTable) -> None:
        super().__init__(_SyncCodec(), packed)

    def silent_since(self, clock_ms: int) -> list[int]:
        """Keys of sync frames neither seen nor named since this clock, in order."""
        self.flush()
        return integers(self.keys[self.column(_LATEST) < clock_ms])
