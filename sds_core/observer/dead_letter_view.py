"""Undecodable records of one Kafka partition, by reason (docs/records.md)."""

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
    """Undecodable records of one Kafka partition, by reason (docs/records.md)."""

    by_reason: dict[str, int] = {}


class DeadLetter(msgspec.Struct, array_like=True):
    """One undecodable record: its position, and why it is a dead letter."""

    partition: int
    offset: int
    reason: str


class DeadLetterDigest(msgspec.Struct, array_like=True):
    """Undecodable records of one chunk of one partition, in order of offsets."""

    letters: list[DeadLetter]


class DeadLetterState(msgspec.Struct, array_like=True):
    """An empty state, because the totals hold everything."""


class DeadLetterView:
    """Counts the undecodable records of a partition, and emits each once."""

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
        """Do nothing: a topic has few partitions, so their counts can be kept."""
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
"""Kind with one view for each Kafka partition; the view's name is the partition's
number."""
