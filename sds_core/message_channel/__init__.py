"""An SDS participant: what to send, and what was received, acknowledged and missing.

`MessageChannel` is one participant in one channel. It has no sockets, threads or
clock: the caller brings bytes and the time.
"""

from sds_core.message_channel.channel import MessageChannel
from sds_core.message_channel.errors import (
    EmptyContent,
    FrameTooLarge,
    MessageIdTaken,
    ParticipantError,
    SnapshotError,
)
from sds_core.message_channel.events import (
    Acknowledged,
    BloomUnusable,
    Broadcast,
    Buffer,
    Cause,
    Delivered,
    EphemeralReceived,
    Event,
    Evicted,
    Evidence,
    Ignored,
    IgnoredReason,
    IrretrievablyLost,
    Missing,
    PossiblyAcknowledged,
    Received,
    RepairAnswered,
    RepairExpired,
    RepairRequested,
    RepairRequestReceived,
    Retried,
    RetriesExhausted,
    Sent,
    Step,
    SyncReceived,
    SyncSent,
)
from sds_core.message_channel.profile import (
    AfterRequest,
    Eviction,
    LamportRule,
    LogOrder,
    Profile,
)
from sds_core.message_channel.view import SyncStatus
from sds_core.repair_timing import RepairHash

__all__ = [
    "Acknowledged",
    "AfterRequest",
    "BloomUnusable",
    "Broadcast",
    "Buffer",
    "Cause",
    "Delivered",
    "EmptyContent",
    "EphemeralReceived",
    "Event",
    "Evicted",
    "Eviction",
    "Evidence",
    "FrameTooLarge",
    "Ignored",
    "IgnoredReason",
    "IrretrievablyLost",
    "LamportRule",
    "LogOrder",
    "MessageChannel",
    "MessageIdTaken",
    "Missing",
    "ParticipantError",
    "PossiblyAcknowledged",
    "Profile",
    "Received",
    "RepairAnswered",
    "RepairExpired",
    "RepairHash",
    "RepairRequestReceived",
    "RepairRequested",
    "Retried",
    "RetriesExhausted",
    "Sent",
    "SnapshotError",
    "Step",
    "SyncReceived",
    "SyncSent",
    "SyncStatus",
]
