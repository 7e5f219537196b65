"""What an application can read from a participant."""

from __future__ import annotations

from typing import Final, NamedTuple

from sds_core.message_channel.incoming import HINTS_KEPT
from sds_core.message_channel.parts import Behaviour
from sds_core.wire import HistoryEntry, decode


class SyncStatus(NamedTuple):
    """Numbers of received, missing and lost messages of a participant.

    The numbers have the same meaning as in `syncStatus` of js-waku (packages/sdk
    src/reliable_channel/sync_status.ts), but a restart does not reset them.

    Attributes:
        missing: Number of messages that a causal history named, and that have not
            arrived but may still arrive.
        lost: Number of missing messages for which the participant stopped waiting; at
            most `Profile.missing_limit`.
    """

    received: int
    missing: int
    lost: int

    @property
    def is_synced(self) -> bool:
        """Whether no message is missing; lost messages do not count as missing."""
        return self.missing == 0


class ParticipantView(Behaviour):
    """The messages of a participant: sent, received, waiting and missing messages."""

    HINTS_KEPT: Final = HINTS_KEPT

    @property
    def lamport(self) -> int:
        """The current Lamport timestamp, in the profile's unit."""
        return self._lamport.value

    @property
    def log(self) -> tuple[str, ...]:
        """Ids in the local log, in the log's order."""
        return self._log.ids()

    @property
    def unacknowledged(self) -> tuple[str, ...]:
        """Ids of our messages that no other participant seems to have, oldest first."""
        return self._outgoing.ids(are_possibly_acknowledged=False)

    @property
    def possibly_acknowledged(self) -> tuple[str, ...]:
        """Ids of our messages that a received bloom filter seems to hold, oldest first.

        These messages are not acknowledged yet.
        """
        return self._outgoing.ids(are_possibly_acknowledged=True)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of messages in the incoming buffer, in order of arrival."""
        return tuple(self._incoming.waiting)

    @property
    def missing(self) -> tuple[HistoryEntry, ...]:
        """History entries of missing messages, in the order of their first mention.

        Each entry has only the newest retrieval hint of its message.
        `retrieval_hints_of` also returns older hints.
        """
        return tuple(missing.entry for missing in self._incoming.missing.values())

    @property
    def next_request_ms(self) -> float:
        """When our frames may carry the next repair request, Unix ms.

        The time is inf if no request waits to be sent.
        """
        return self._repairer.requests.due_ms

    def retrieval_hints_of(self, message_id: str) -> tuple[bytes, ...]:
        """Return the retrieval hints of a missing message, newest first."""
        missing = self._incoming.missing.get(message_id)
        return () if missing is None else missing.hints

    @property
    def sync_status(self) -> SyncStatus:
        """Numbers of received, missing and lost messages."""
        incoming = self._incoming
        return SyncStatus(incoming.received, len(incoming.missing), len(incoming.lost))

    def frame_of(self, message_id: str, now_ms: int) -> bytes | None:
        """Return a message's frame, for example for a peer that requests the message.

        The participant has the frames of messages in the outgoing buffer, of waiting
        messages, and of messages stored for repairs. For other messages, the result is
        None.
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
