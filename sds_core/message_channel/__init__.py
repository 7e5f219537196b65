"""An SDS participant: it decides what to send, and tracks which messages arrived.

`MessageChannel` is one participant in one channel. A `MessageChannel` has no sockets,
threads or clock: the caller passes bytes and the time.
"""

from sds_core.message_channel.channel import MessageChannel as MessageChannel
from sds_core.message_channel.errors import EmptyContent as EmptyContent
from sds_core.message_channel.errors import FrameTooLarge as FrameTooLarge
from sds_core.message_channel.errors import MessageIdTaken as MessageIdTaken
from sds_core.message_channel.errors import ParticipantError as ParticipantError
from sds_core.message_channel.errors import SnapshotError as SnapshotError
from sds_core.message_channel.events import Acknowledged as Acknowledged
from sds_core.message_channel.events import BloomUnusable as BloomUnusable
from sds_core.message_channel.events import Broadcast as Broadcast
from sds_core.message_channel.events import Buffer as Buffer
from sds_core.message_channel.events import Cause as Cause
from sds_core.message_channel.events import Delivered as Delivered
from sds_core.message_channel.events import EphemeralReceived as EphemeralReceived
from sds_core.message_channel.events import Event as Event
from sds_core.message_channel.events import Evicted as Evicted
from sds_core.message_channel.events import Evidence as Evidence
from sds_core.message_channel.events import Ignored as Ignored
from sds_core.message_channel.events import IgnoredReason as IgnoredReason
from sds_core.message_channel.events import IrretrievablyLost as IrretrievablyLost
from sds_core.message_channel.events import Missing as Missing
from sds_core.message_channel.events import PossiblyAcknowledged as PossiblyAcknowledged
from sds_core.message_channel.events import Received as Received
from sds_core.message_channel.events import RepairAnswered as RepairAnswered
from sds_core.message_channel.events import RepairExpired as RepairExpired
from sds_core.message_channel.events import RepairRequested as RepairRequested
from sds_core.message_channel.events import (
    RepairRequestReceived as RepairRequestReceived,
)
from sds_core.message_channel.events import Retried as Retried
from sds_core.message_channel.events import RetriesExhausted as RetriesExhausted
from sds_core.message_channel.events import Sent as Sent
from sds_core.message_channel.events import Step as Step
from sds_core.message_channel.events import SyncReceived as SyncReceived
from sds_core.message_channel.events import SyncSent as SyncSent
from sds_core.message_channel.profile import AfterRequest as AfterRequest
from sds_core.message_channel.profile import Eviction as Eviction
from sds_core.message_channel.profile import LamportRule as LamportRule
from sds_core.message_channel.profile import LogOrder as LogOrder
from sds_core.message_channel.profile import Profile as Profile
from sds_core.message_channel.view import SyncStatus as SyncStatus
from sds_core.repair_timing import RepairHash as RepairHash
