"""The read-only view that an application has of a participant."""

from __future__ import annotations

from typing import Final, NamedTuple

from sds_core.message_channel.incoming import HINTS_KEPT
from sds_core.message_channel.parts import Behaviour
from sds_core.wire import HistoryEntry, decode


class SyncStatus(NamedTuple):
    """Numbers of messages that a participant has received, misses, or has lost.

    The numbers match `syncStatus` of js-waku (packages/sdk
    src/reliable_channel/sync_status.ts), but a restart does not reset these numbers.

    Attributes:
        missing: Messages that a causal history named and that may still arrive.
        lost: Messages for which the participant stopped waiting, at most
            `Profile.missing_limit`.
    """

    received: int
    missing: int
    lost: int

    @property
    def is_synced(self) -> bool:
        """Whether no messages are missing; lost messages do not count."""
        return self.missing == 0


class ParticipantView(Behaviour):
    """The messages that a participant has sent, received, acknowledged, or misses."""

    HINTS_KEPT: Final = HINTS_KEPT

    @property
    def lamport(self) -> int:
        """The current Lamport timestamp, in the profile's unit."""
        return self._lamport.value

    @property
    def log(self) -> tuple[str, ...]:
        """Ids of the local log, in its order."""
        return self._log.ids()

    @property
    def unacknowledged(self) -> tuple[str, ...]:
        """Ids of our messages without any evidence of receipt, oldest first."""
        return self._outgoing.ids(are_possibly_acknowledged=False)

    @property
    def possibly_acknowledged(self) -> tuple[str, ...]:
        """Ids of our messages that another participant's filter holds, oldest first."""
        return self._outgoing.ids(are_possibly_acknowledged=True)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of the incoming buffer, in order of arrival."""
        return tuple(self._incoming.waiting)

    @property
    def missing(self) -> tuple[HistoryEntry, ...]:
        """Dependencies that a history named but that were not received, oldest first.

        Each entry has its newest retrieval hint; `retrieval_hints_of` returns more
        hints.
        """
        return tuple(missing.entry for missing in self._incoming.missing.values())

    @property
    def next_request_ms(self) -> float:
        """From this time, Unix ms, frames carry a repair request; inf if never."""
        return self._repairer.requests.due_ms

    def retrieval_hints_of(self, message_id: str) -> tuple[bytes, ...]:
        """Return hints of a missing message, at most `HINTS_KEPT`, newest first."""
        missing = self._incoming.missing.get(message_id)
        return () if missing is None else missing.hints

    @property
    def sync_status(self) -> SyncStatus:
        """Numbers of received, missing and lost messages."""
        incoming = self._incoming
        return SyncStatus(incoming.received, len(incoming.missing), len(incoming.lost))

    def frame_of(self, message_id: str, now_ms: int) -> bytes | None:
        """Return a message's frame for a peer that asks the application for it.

        The frame is available for our unacknowledged messages, waiting messages, and
        messages stored for repairs. For other messages, the result is None.
        """
        outgoing = self._outgoing.messages.get(message_id)
        if outgoing is not None:
            return outgoing.value
        waiting = self._incoming.waiting.get(message_id)
        if waiting is not None:
            return waiting.value
        stored = self._repairer.retained.get(message_id, now_ms)
        return None if stored is None else stored.value

    def content_of(self, message_id: str, now_ms: int) -> bytes | None:
        """Return the content in the frame that `frame_of` returns."""
        value = self.frame_of(message_id, now_ms)
        return None if value is None else decode(value).content
