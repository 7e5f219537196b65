"""The objects that together hold the state of a participant."""

from __future__ import annotations

from dataclasses import dataclass

from sds_core.message_channel.changes import ChangeRecorder
from sds_core.message_channel.incoming import IncomingBuffer
from sds_core.message_channel.lamport import LamportTimestamp
from sds_core.message_channel.local_log import LocalLog
from sds_core.message_channel.outgoing import OutgoingBuffer
from sds_core.message_channel.profile import Profile
from sds_core.message_channel.repairer import Repairer
from sds_core.message_channel.rolling_bloom import RollingBloom
from sds_core.message_channel.sync import SyncTimer


class Uptime:
    """Computes, after a restart, how long the process was off.

    Attributes:
        last_ms: Time of the last call, snapshot or restored change, Unix ms; None if
            the participant was restored from an old snapshot, which lacks this time.
        is_resuming: Whether the next call is the first call after a restart.
    """

    def __init__(self, last_ms: int | None) -> None:
        self.last_ms = last_ms
        self.is_resuming = False

    def off_ms(self, now_ms: int) -> int:
        """Return the time since the last call, ms; 0 if `last_ms` is None.

        The time is negative if the clock was ahead at the last call.
        """
        return 0 if self.last_ms is None else now_ms - self.last_ms


@dataclass(frozen=True, slots=True)
class Parts:
    """The state of a participant, in mutable objects (SDS, "State")."""

    channel_id: str
    participant_id: str
    profile: Profile
    started_ms: int
    lamport: LamportTimestamp
    log: LocalLog
    bloom: RollingBloom
    outgoing: OutgoingBuffer
    incoming: IncomingBuffer
    repairer: Repairer
    sync: SyncTimer
    changes: ChangeRecorder
    uptime: Uptime

    @classmethod
    def empty(
        cls,
        channel_id: str,
        participant_id: str,
        profile: Profile,
        started_ms: int,
        sync: SyncTimer,
        uptime: Uptime,
    ) -> Parts:
        """Return the state of a participant that has sent and received nothing."""
        return cls(
            channel_id,
            participant_id,
            profile,
            started_ms,
            LamportTimestamp(profile, started_ms),
            LocalLog(profile.log_order, profile.log_limit),
            RollingBloom(profile),
            OutgoingBuffer(profile),
            IncomingBuffer(profile),
            Repairer(participant_id, profile, started_ms),
            sync,
            ChangeRecorder(),
            uptime,
        )


class Behaviour:
    """Base of classes that read or change the state of a participant."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._channel_id = parts.channel_id
        self._participant_id = parts.participant_id
        self._profile = parts.profile
        self._lamport = parts.lamport
        self._log = parts.log
        self._bloom = parts.bloom
        self._outgoing = parts.outgoing
        self._incoming = parts.incoming
        self._repairer = parts.repairer
        self._sync = parts.sync
        self._changes = parts.changes
        self._uptime = parts.uptime
