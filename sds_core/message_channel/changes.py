"""Change records, which an application stores after each call instead of a snapshot.

A record is one call that changed the state, with its arguments. The same calls after
the same snapshot give the same state, because a participant has no clock. The time of
the next sync message is the only random value, and each record contains this time.
Records and snapshots have a checksum (`sds_core.sealed`).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sds_core.message_channel.errors import SnapshotError
from sds_core.sealed import Seal

VERSION = 1


class Call(StrEnum):
    """The call that changed the state.

    COPY: An ignored frame cancelled an answer or had a new hint. MET: The application
    received a message from another source. RESUMED: The process was off until this
    call.
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


class Change(msgspec.Struct, array_like=True):
    """One change of a participant's state.

    Append new fields at the end, with a default.

    Attributes:
        number: Sequence number of the change, from 1.
        now_ms: Time of the call, Unix ms.
        next_sync_ms: Time of the next sync message after the call, Unix ms.
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
        is_on: Whether changes are recorded and numbered.
    """

    def __init__(self) -> None:
        self.number = 0
        self.is_on = False
        self._records: list[bytes] = []

    def add(self, change: Change) -> None:
        """Record a change, whose number is the next one."""
        self.number = change.number
        self._records.append(SEAL.pack(change))

    def take(self) -> list[bytes]:
        """Return and forget the records since the last `take`."""
        records, self._records = self._records, []
        return records

    def is_next(self, change: Change) -> bool:
        """Count a stored change if it is the next one; return whether it was.

        Raises:
            SnapshotError: A change is missing before the stored change.
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
