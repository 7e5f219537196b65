"""Seen ids that are not tracked as messages, and their encoded form.

The table contains the ids of sync frames, because nim-sds names sync frames in causal
histories and repairs them. The table also contains the ids of content messages that the
monitor had forgotten, and that were then broadcast again (docs/figures.md, 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sds_core.native import Int64Rows, Uint64, int64, native, uint64
from sds_core.observer.table import RISING, SIGNED, UNSIGNED, Codec, PackedTable, Table
from sds_core.wire import Dialect


@native
@dataclass(slots=True)
class SeenId:
    """The newest of the first copies that have the same id.

    A frame with a known id is a first copy too, if its sender or Lamport timestamp
    differs from that of the earlier first copy.

    Attributes:
        seen_ms: The channel's clock at the first copy; 0 for a message that was
            broadcast again after the monitor had forgotten it.
        latest_ms: The channel's clock when the id was last seen or named, Unix ms.
        lamport: Lamport timestamp, in the dialect's unit.
        is_content: Whether the id belongs to a content message that was broadcast again
            after the monitor had forgotten it.
    """

    seen_ms: int
    latest_ms: int
    sender: int
    lamport: Uint64
    dialect: Dialect
    is_content: bool = False


_NIM, _CONTENT = (1 << bit for bit in range(2))

_SEEN, _LATEST, _SENDER, _LAMPORT, _FLAGS = range(1, 6)
_PACKINGS = RISING, SIGNED, SIGNED, UNSIGNED, UNSIGNED


@native
class _SeenIdCodec(Codec[SeenId]):
    def store(self, entry: object, cells: Int64Rows, row: int) -> bytes:
        seen: SeenId = cast("SeenId", entry)
        cells[_SEEN, row] = seen.seen_ms
        cells[_LATEST, row] = seen.latest_ms
        cells[_SENDER, row] = seen.sender
        cells[_LAMPORT, row] = int64(seen.lamport)
        is_nim = seen.dialect is Dialect.NIM
        cells[_FLAGS, row] = is_nim * _NIM | seen.is_content * _CONTENT
        return b""

    def load(self, key: int, cells: Int64Rows, row: int, rest: bytes) -> SeenId:
        flags: int = cells[_FLAGS, row]
        lamport: Uint64 = uint64(cells[_LAMPORT, row])
        return SeenId(
            cells[_SEEN, row],
            cells[_LATEST, row],
            cells[_SENDER, row],
            lamport,
            Dialect.NIM if flags & _NIM else Dialect.SPEC,
            flags & _CONTENT != 0,
        )


@native
class SeenIdTable(Table[SeenId]):
    """Seen ids by fingerprint."""

    def __init__(self, packed: PackedTable) -> None:
        super().__init__(_SeenIdCodec(_PACKINGS, _LATEST), packed)
