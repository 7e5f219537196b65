"""Change records, which an application may store after each call instead of a snapshot.

A record holds one call that changed the state, and the call's arguments. To restore the
state, `MessageChannel.restore` loads a snapshot, and repeats the calls that were
recorded after the snapshot. The result is the same state, because a participant reads
no clock, and each record contains the random values of its call. The random values are
the message id, as part of the frame, and the time of the next sync message. Records and
snapshots have a checksum (`sds_core.sealed`).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sds_core.message_channel.errors import SnapshotError
from sds_core.sealed import Seal

VERSION = 1


class Call(StrEnum):
    """The kind of call that changed the state.

    - COPY: A frame was ignored, but it cancelled our answer to a repair request, or it
      had a retrieval hint.
    - MET: The application received a message from a source other than this channel.
    - WITHDRAWN: A message of ours was taken back.
    - RESUMED: The first call after a restart; the process was off until this call. If
      its time is before the previous call's, the clock was ahead before the restart.
    """

    SENT = "sent"
    RECEIVED = "received"
    COPY = "copy"
    HINT = "hint"
    MET = "met"
    SWEEP_INCOMING = "sweep incoming"
    SWEEP_OUTGOING = "sweep outgoing"
    SWEEP_REPAIRS = "sweep repairs"
    SYNC = "sync"
    RESUMED = "resumed"
    WITHDRAWN = "withdrawn"


class Change(msgspec.Struct, array_like=True):
    """One change of a participant's state.

    Add new fields only at the end, with a default.

    Attributes:
        number: Sequence number of the change, from 1.
        now_ms: Time of the call, Unix ms; 0 for `Call.HINT`.
        next_sync_ms: When the next sync message is due, as planned after this call,
            Unix ms.
    """

    number: int
    call: Call
    now_ms: int
    next_sync_ms: int
    value: bytes = b""
    hint: bytes = b""
    message_id: str = ""


SEAL = Seal(VERSION, Change, SnapshotError)
"""Encodes changes as bytes."""


class ChangeRecorder:
    """Collects the change records of one participant.

    Attributes:
        number: Sequence number of the newest change.
        is_on: Whether changes are numbered and recorded.
    """

    def __init__(self) -> None:
        self.number = 0
        self.is_on = False
        self._records: list[bytes] = []

    def add(self, change: Change) -> None:
        """Record a change; its number must be one more than `number`."""
        self.number = change.number
        self._records.append(SEAL.pack(change))

    def take(self) -> list[bytes]:
        """Return the records that were added since the last `take`, and forget them."""
        records, self._records = self._records, []
        return records

    def is_next(self, change: Change) -> bool:
        """Return whether a stored change is new; if so, set `number` to its number.

        Raises:
            SnapshotError: Changes between `number` and the stored change are missing.
        """
        if change.number > self.number + 1:
            detail = (
                f"change number {self.number + 1} is missing before number "
                f"{change.number}"
            )
            raise SnapshotError(detail)
        if change.number <= self.number:
            return False
        self.number = change.number
        return True
