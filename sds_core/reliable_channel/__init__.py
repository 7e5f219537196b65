"""What applications use: a channel in which every message arrives, or its sender knows.

`ReliableChannelCore` joins segmentation, SDS, encryption and rate limiting. It has no
sockets, threads or clock: what happens goes in with its time, what to do comes out.
"""

from sds_core.reliable_channel.budget import Urgency
from sds_core.reliable_channel.channel import ReliableChannelCore
from sds_core.reliable_channel.encryption import (
    ChaChaEncryption,
    Encryption,
    EncryptionError,
    EncryptionScope,
)
from sds_core.reliable_channel.errors import (
    MessageIdRefused,
    NotStarted,
    ReliableChannelError,
    StateError,
)
from sds_core.reliable_channel.events import (
    LIP_173_NAMES,
    ChunkInfo,
    DropReason,
    EphemeralMessageDropped,
    Event,
    EventName,
    Irretrievable,
    IrretrievableMessage,
    LimitReached,
    MessageAcknowledged,
    MessagePossiblyAcknowledged,
    MessageReceived,
    MessageSent,
    RateLimitReached,
    RetriesExhausted,
    SendError,
    SendingMessage,
    SendingMessageIrrecoverableError,
    Unusable,
    UnusableMessage,
)
from sds_core.reliable_channel.inputs import (
    Advance,
    Arrived,
    ConnectionChanged,
    Dispatched,
    DispatchFailed,
    Input,
    Restarted,
    Send,
    SendEphemeral,
    Start,
    Stop,
    StoreAnswered,
    StoreFailed,
)
from sds_core.reliable_channel.options import (
    Limits,
    ReliableChannelOptions,
    RetrievalStrategy,
)
from sds_core.reliable_channel.outputs import Dispatch, Output, StoreRequest
from sds_core.reliable_channel.rate_limit import RateLimitOptions, Window
from sds_core.reliable_channel.segmentation import SegmentationOptions
from sds_core.reliable_channel.sync_timer import SyncMultipliers

__all__ = [
    "LIP_173_NAMES",
    "Advance",
    "Arrived",
    "ChaChaEncryption",
    "ChunkInfo",
    "ConnectionChanged",
    "Dispatch",
    "DispatchFailed",
    "Dispatched",
    "DropReason",
    "Encryption",
    "EncryptionError",
    "EncryptionScope",
    "EphemeralMessageDropped",
    "Event",
    "EventName",
    "Input",
    "Irretrievable",
    "IrretrievableMessage",
    "LimitReached",
    "Limits",
    "MessageAcknowledged",
    "MessageIdRefused",
    "MessagePossiblyAcknowledged",
    "MessageReceived",
    "MessageSent",
    "NotStarted",
    "Output",
    "RateLimitOptions",
    "RateLimitReached",
    "ReliableChannelCore",
    "ReliableChannelError",
    "ReliableChannelOptions",
    "Restarted",
    "RetriesExhausted",
    "RetrievalStrategy",
    "SegmentationOptions",
    "Send",
    "SendEphemeral",
    "SendError",
    "SendingMessage",
    "SendingMessageIrrecoverableError",
    "Start",
    "StateError",
    "Stop",
    "StoreAnswered",
    "StoreFailed",
    "StoreRequest",
    "SyncMultipliers",
    "Unusable",
    "UnusableMessage",
    "Urgency",
    "Window",
]
