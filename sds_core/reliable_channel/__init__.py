"""A channel for applications, which reports whether each sent message arrives.

`ReliableChannelCore` combines segmentation, SDS, encryption and rate limiting. The core
has no sockets, threads or clock: it takes inputs with their times, and returns what the
caller must do.
"""

from sds_core.reliable_channel.channel import ReliableChannelCore as ReliableChannelCore
from sds_core.reliable_channel.encryption import ChaChaEncryption as ChaChaEncryption
from sds_core.reliable_channel.encryption import Encryption as Encryption
from sds_core.reliable_channel.encryption import EncryptionError as EncryptionError
from sds_core.reliable_channel.encryption import EncryptionScope as EncryptionScope
from sds_core.reliable_channel.errors import MessageIdRefused as MessageIdRefused
from sds_core.reliable_channel.errors import NotStarted as NotStarted
from sds_core.reliable_channel.errors import (
    ReliableChannelError as ReliableChannelError,
)
from sds_core.reliable_channel.errors import StateError as StateError
from sds_core.reliable_channel.events import LIP_173_NAMES as LIP_173_NAMES
from sds_core.reliable_channel.events import ChunkInfo as ChunkInfo
from sds_core.reliable_channel.events import DropReason as DropReason
from sds_core.reliable_channel.events import (
    EphemeralMessageDropped as EphemeralMessageDropped,
)
from sds_core.reliable_channel.events import Event as Event
from sds_core.reliable_channel.events import EventName as EventName
from sds_core.reliable_channel.events import Irretrievable as Irretrievable
from sds_core.reliable_channel.events import (
    IrretrievableMessage as IrretrievableMessage,
)
from sds_core.reliable_channel.events import LimitReached as LimitReached
from sds_core.reliable_channel.events import MessageAcknowledged as MessageAcknowledged
from sds_core.reliable_channel.events import (
    MessagePossiblyAcknowledged as MessagePossiblyAcknowledged,
)
from sds_core.reliable_channel.events import MessageReceived as MessageReceived
from sds_core.reliable_channel.events import MessageSent as MessageSent
from sds_core.reliable_channel.events import RateLimitReached as RateLimitReached
from sds_core.reliable_channel.events import RetriesExhausted as RetriesExhausted
from sds_core.reliable_channel.events import SendError as SendError
from sds_core.reliable_channel.events import SendingMessage as SendingMessage
from sds_core.reliable_channel.events import (
    SendingMessageIrrecoverableError as SendingMessageIrrecoverableError,
)
from sds_core.reliable_channel.events import Unusable as Unusable
from sds_core.reliable_channel.events import UnusableMessage as UnusableMessage
from sds_core.reliable_channel.inputs import Advance as Advance
from sds_core.reliable_channel.inputs import Arrived as Arrived
from sds_core.reliable_channel.inputs import ConnectionChanged as ConnectionChanged
from sds_core.reliable_channel.inputs import Dispatched as Dispatched
from sds_core.reliable_channel.inputs import DispatchFailed as DispatchFailed
from sds_core.reliable_channel.inputs import Input as Input
from sds_core.reliable_channel.inputs import Restarted as Restarted
from sds_core.reliable_channel.inputs import Send as Send
from sds_core.reliable_channel.inputs import SendEphemeral as SendEphemeral
from sds_core.reliable_channel.inputs import Start as Start
from sds_core.reliable_channel.inputs import Stop as Stop
from sds_core.reliable_channel.inputs import StoreAnswered as StoreAnswered
from sds_core.reliable_channel.inputs import StoreFailed as StoreFailed
from sds_core.reliable_channel.options import Limits as Limits
from sds_core.reliable_channel.options import (
    ReliableChannelOptions as ReliableChannelOptions,
)
from sds_core.reliable_channel.options import RetrievalStrategy as RetrievalStrategy
from sds_core.reliable_channel.outputs import Dispatch as Dispatch
from sds_core.reliable_channel.outputs import Output as Output
from sds_core.reliable_channel.outputs import StoreRequest as StoreRequest
from sds_core.reliable_channel.rate_limit import RateLimitOptions as RateLimitOptions
from sds_core.reliable_channel.rate_limit import Urgency as Urgency
from sds_core.reliable_channel.rate_limit import Window as Window
from sds_core.reliable_channel.segmentation import (
    SegmentationOptions as SegmentationOptions,
)
from sds_core.reliable_channel.sync_timer import SyncMultipliers as SyncMultipliers
