"""How complete what a participant received is, in three numbers."""

from __future__ import annotations

from typing import NamedTuple


class SyncStatus(NamedTuple):
    """What a participant has of its channel, as far as it knows.

    As `syncStatus` of a channel in js-waku (packages/sdk
    src/reliable_channel/sync_status.ts); its numbers are of the time since the channel
    was created, these survive a restart.

    Attributes:
        received: Content messages of others that arrived, delivered or not.
        missing: Messages that a causal history named and that may still arrive.
        lost: Messages that are no longer waited for; one that arrives after all leaves.
            At most `Profile.missing_limit` are remembered.
    """

    received: int
    missing: int
    lost: int

    @property
    def is_synced(self) -> bool:
        """Whether nothing is missing that may still arrive; messages may be lost."""
        return self.missing == 0
