"""Message ids that histories name but no tap has seen, and their encoded form."""

from __future__ import annotations

from typing import cast

import msgspec
import numpy as np

from sds_core.native import Int64Rows, native
from sds_core.observer.columns import integers
from sds_core.observer.sds.gap_states import WAITING, GapState
from sds_core.observer.sds.participants import UNKNOWN
from sds_core.observer.table import SIGNED, UNSIGNED, Codec, PackedTable, Table
from sds_core.wire import Dialect


class Gap(msgspec.Struct, array_like=True, gc=False):
    """One id that histories name but no tap has seen.

    Checkpoints store the fields by position, so do not reorder them.

    Attributes:
        named_ms: Event time of the frame that began the gap because it named the id.
        since_ms: The channel's clock when the gap began. The settle time and the
            deadline count from this time.
        last_named_ms: The channel's clock when the id was last named.
        sender: Index of the participant that sent the message according to a history
            entry; `UNKNOWN` if no history entry states the sender.
        mentions: For each of the first two participants that named the id: the
            participant's index, and the event time of its first frame that named the
            id.
        witnesses: Indices of participants whose frames show that they had the message;
            never includes `sender`.
        message_id: The id, in the states SETTLING, OPEN and LOST; otherwise empty.
        naming: Dialect and Lamport timestamp of the frame that began the gap. In this
            dialect, only the filter of a frame with a higher timestamp can show that
            the frame's sender lacks the message.
        lacking: For each participant known to lack the message, by index: the event
            time of the first frame that showed this. The limit is `MOST_LACKING`
            participants, because hostile senders may invent participants.
        hint: A retrieval hint for the id; empty if no history entry had a hint.
    """

    named_ms: int
    since_ms: int
    last_named_ms: int
    sender: int
    state: GapState = GapState.NOTED
    mentions: list[tuple[int, int]] = []
    witnesses: list[int] = []
    message_id: str = ""
    naming: tuple[Dialect, int] | None = None
    lacking: dict[int, int] = {}
    hint: bytes = b""

    @property
    def is_witnessed(self) -> bool:
        """Whether enough witnesses show that the network had the message."""
        return len(self.witnesses) >= (2 if self.sender == UNKNOWN else 1)


_SINCE, _LAST_NAMED, _STATE, _IS_WITNESSED = range(1, 5)
_PACKINGS = SIGNED, SIGNED, UNSIGNED, UNSIGNED
_STATES = tuple(GapState)
_CODES = {state: code for code, state in enumerate(_STATES)}
_IS_WAITING = np.array([state in WAITING for state in _STATES])
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Gap)


@native
class _GapCodec(Codec[Gap]):
    def store(self, entry: object, cells: Int64Rows, row: int) -> bytes:
        gap = cast("Gap", entry)
        cells[_SINCE, row] = gap.since_ms
        cells[_LAST_NAMED, row] = gap.last_named_ms
        cells[_STATE, row] = _CODES[gap.state]
        cells[_IS_WITNESSED, row] = gap.is_witnessed
        return _ENCODER.encode(gap)

    def load(self, key: int, cells: Int64Rows, row: int, rest: bytes) -> Gap:
        return _DECODER.decode(rest)


@native
class GapTable(Table[Gap]):
    """Ids that histories name but no tap has seen. The keys are their fingerprints."""

    def __init__(self, packed: PackedTable) -> None:
        super().__init__(_GapCodec(_PACKINGS, _LAST_NAMED), packed)

    def waiting(self) -> list[tuple[int, int, bool]]:
        """Key and `since_ms` of each waiting gap, and whether the gap is SETTLING."""
        self.flush()
        found: list[tuple[int, int, bool]] = []
        row: int
        for row in range(self._rows):
            state = _STATES[self._cells[_STATE, row]]
            if state in WAITING:
                is_settling = state is GapState.SETTLING
                key = self._cells[0, row]
                found.append((key, self._cells[_SINCE, row], is_settling))
        return found

    def state_of(self, key: int) -> GapState:
        """Read the state of an existing entry without decoding the entry."""
        row: int = self._row(key)
        if row < 0:
            return self._added[key].state
        gap = self._objects[row]
        return _STATES[self._cells[_STATE, row]] if gap is None else gap.state

    def searched(self) -> list[int]:
        """Keys of the waiting gaps without enough witnesses, in order of `since_ms`."""
        if not len(self):
            return []
        self.flush()
        rows = np.flatnonzero(_IS_WAITING[self.column(_STATE)])
        rows = rows[self.column(_IS_WITNESSED)[rows] == 0]
        in_order = self.column(_SINCE)[rows].argsort(kind="stable")
        return integers(self.keys[rows[in_order]])
