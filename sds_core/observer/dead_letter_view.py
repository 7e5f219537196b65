"""Undecodable records of one Kafka partition, by reason (contract, 1)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sds_core.observer import blob
from sds_core.observer.settings import DEFAULTS, ObserverSettings


class DeadLetterTotals(msgspec.Struct, array_like=True):
    """Undecodable records of one Kafka partition, by reason (contract, 1)."""

    by_reason: dict[str, int] = {}


class DeadLetter(msgspec.Struct, array_like=True):
    """One undecodable record: where it lies, and why it could not be decoded."""

    partition: int
    offset: int
    reason: str


class DeadLetterDigest(msgspec.Struct, array_like=True):
    """Undecodable records of one chunk of one partition, in offset order."""

    letters: list[DeadLetter]


class DeadLetterState(msgspec.Struct, array_like=True):
    """Nothing is kept beside the totals yet."""


class DeadLetterView:
    """Counts undecodable records, and passes them on.

    Attributes:
        totals: The figures, absolute.
    """

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
        """The view as it was when the blob was made; see `blob.unpack`."""
        totals, state = blob.unpack(version, data, DeadLetterTotals, DeadLetterState)
        return cls(settings, totals, state)

    def to_blob(self) -> bytes:
        """The whole view in version `blob.VERSION`."""
        return blob.pack(self.totals, self._state)

    def apply(
        self, digests: Iterable[DeadLetterDigest], clock_ms: int
    ) -> list[DeadLetter]:
        """Count the next undecodable records; no clock moves them.

        Returns:
            The records, which leave the view once.
        """
        letters = [letter for digest in digests for letter in digest.letters]
        counts = self.totals.by_reason
        for letter in letters:
            counts[letter.reason] = counts.get(letter.reason, 0) + 1
        return letters
