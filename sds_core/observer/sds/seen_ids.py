"""Ids that were seen and are not followed as messages, and their packed form.

These are the ids of sync frames of nim-sds, which names and repairs them, and of
content messages that came back after they were forgotten (docs/figures.md, 2).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sds_core.observer.columns import integers
from sds_core.observer.table import RISING, SIGNED, UNSIGNED, PackedTable, Table
from sds_core.wire import Dialect


class SeenId(msgspec.Struct):
    """The newest first copy with one id.

    Attributes:
        seen_ms: The channel's clock when it was seen, Unix ms; 0 if it came back.
        latest_ms: The channel's clock when it was last seen or named, Unix ms.
        sender: Participant index or `UNKNOWN`.
        lamport: Lamport timestamp, in the unit of its dialect.
        dialect: Dialect of the frame.
        is_content: Whether it is a content message that came back.
    """

    seen_ms: int
    latest_ms: int
    sender: int
    lamport: int
    dialect: Dialect
    is_content: bool = False


_NIM, _CONTENT = (1 << bit for bit in range(2))

_SEEN, _LATEST, _SENDER, _LAMPORT, _FLAGS = range(5)
"""Columns of the table."""


class _SeenIdCodec:
    """All of an entry lies in columns."""

    packings = (RISING, SIGNED, SIGNED, UNSIGNED, UNSIGNED)

    def split(self, entry: SeenId) -> tuple[tuple[int, ...], bytes]:
        """See `Codec`."""
        flags = (entry.dialect is Dialect.NIM) * _NIM | entry.is_content * _CONTENT
        return (
            entry.seen_ms,
            entry.latest_ms,
            entry.sender,
            entry.lamport,
            flags,
        ), b""

    def join(self, key: int, values: Sequence[int], rest: bytes) -> SeenId:
        """See `Codec`."""
        seen_ms, latest_ms, sender, lamport, flags = values
        dialect = Dialect.NIM if flags & _NIM else Dialect.SPEC
        return SeenId(
            seen_ms,
            latest_ms,
            sender,
            lamport,
            dialect,
            bool(flags & _CONTENT),
        )


class SeenIdTable(Table[SeenId]):
    """Seen ids by fingerprint."""

    def __init__(self, packed: PackedTable) -> None:
        super().__init__(_SeenIdCodec(), packed)

    def silent_since(self, clock_ms: int) -> list[int]:
        """Keys of ids neither seen nor named since this clock, in order."""
        self.flush()
        return integers(self.keys[self.column(_LATEST) < clock_ms])
