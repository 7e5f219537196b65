"""The state of a participant: one object for each thing that it remembers."""

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
from sds_core.message_channel.uptime import Uptime


@dataclass(frozen=True, slots=True)
class Parts:
    """The state of a participant, in mutable objects (SDS, "State").

    Attributes:
        channel_id: Channel of the participant.
        participant_id: The participant.
        profile: Options of the participant.
        started_ms: Start of the participant, Unix ms.
        lamport: Lamport timestamp.
        log: Local log.
        bloom: Filter of the messages that it has received.
        outgoing: Own messages that are not acknowledged.
        incoming: Messages that wait for others, and missing messages.
        repairer: Requests and answers of SDS-R.
        sync: Timer of its sync messages.
        changes: Change records.
        uptime: Time of the last call.
    """

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
        """Return the parts of a participant that has sent and received nothing."""
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
