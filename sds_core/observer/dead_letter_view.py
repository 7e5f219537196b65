"""Counts the undecodable records of a Kafka partition by reason (docs/records.md)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sds_core.observer import blob
from sds_core.observer.kinds import Kind, Outlet
from sds_core.observer.settings import DEFAULTS, ObserverSettings

BLOB_VERSION = 4
"""Version of the blobs that `DeadLetterView.to_blob` returns; versions 1 to 3 have no
checksum."""

CHECKSUM_SINCE = 4


class DeadLetterTotals(msgspec.Struct, array_like=True):
    """Number of undecodable records of one Kafka partition, by reason."""

    by_reason: dict[str, int] = {}


class DeadLetter(msgspec.Struct, array_like=True):
    """One undecodable record: its position, and why it is a dead letter."""

    partition: int
    offset: int
    reason: str


class DeadLetterDigest(msgspec.Struct, array_like=True):
    """Undecodable records in a chunk of one partition's records, in order of offset."""

    letters: list[DeadLetter]


class DeadLetterState(msgspec.Struct, array_like=True):
    """State of a view besides its totals: nothing, because the totals are enough."""


class DeadLetterView:
    """Counts a partition's undecodable records, and emits a `DeadLetter` for each."""

    next_deadline_ms = None
    is_forgotten = False

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        totals: DeadLetterTotals | None = None,
        state: DeadLetterState | None = None,
    ) -> None:
        self.totals = totals or DeadLetterTotals()
        self._state = state or DeadLetterState()

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> DeadLetterView:
        """Restore the view that `to_blob` encoded; see `View.from_blob`."""
        with blob.opened(version, data, BLOB_VERSION, CHECKSUM_SINCE) as body:
            totals, state = blob.unpack(body, DeadLetterTotals, DeadLetterState)
            return cls(settings, totals, state)

    def to_blob(self) -> bytes:
        """Encode the whole view in version `BLOB_VERSION`."""
        return blob.pack(self.totals, self._state)

    def apply(
        self, digests: Iterable[DeadLetterDigest], clock_ms: int
    ) -> list[DeadLetter]:
        """Count the next undecodable records, and return them."""
        letters = [letter for digest in digests for letter in digest.letters]
        counts = self.totals.by_reason
        for letter in letters:
            counts[letter.reason] = counts.get(letter.reason, 0) + 1
        return letters

    def forget(self) -> list[DeadLetter]:
        """Do nothing. The counts stay, because a topic has only few partitions."""
        return []


DEAD_LETTERS = Kind(
    prefix="dead",
    digest=DeadLetterDigest,
    view=DeadLetterView,
    totals=DeadLetterTotals,
    blob_version=BLOB_VERSION,
    checksum_since=CHECKSUM_SINCE,
    outlets={DeadLetter: Outlet.DEAD_LETTERS},
)
"""Kind of the views that count dead letters.

Each Kafka partition has one view, whose name is the partition's number.
"""
