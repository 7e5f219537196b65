"""Implements the wire format of Scalable Data Sync, including its bloom filters.

`decode` converts the bytes of a message in either dialect to a `Frame`, and `encode`
converts a `Frame` to bytes. Directory proto/ has the .proto files of both dialects, and
the script that generates Python classes from these files.
"""

from sds_core.reason import Reason as Reason
from sds_core.wire.bloom import DEFAULT_PARAMETERS as DEFAULT_PARAMETERS
from sds_core.wire.bloom import BloomFilter as BloomFilter
from sds_core.wire.bloom import BloomParameters as BloomParameters
from sds_core.wire.bloom import count_set_bits as count_set_bits
from sds_core.wire.bloom import estimated_ids as estimated_ids
from sds_core.wire.bloom import false_positive_rate as false_positive_rate
from sds_core.wire.bloom import filter_bits as filter_bits
from sds_core.wire.bloom import id_hashes as id_hashes
from sds_core.wire.bloom import probes as probes
from sds_core.wire.codec import MAX_VALUE_BYTES as MAX_VALUE_BYTES
from sds_core.wire.codec import decode as decode
from sds_core.wire.codec import dialect_of as dialect_of
from sds_core.wire.codec import encode as encode
from sds_core.wire.errors import BloomBadHeader as BloomBadHeader
from sds_core.wire.errors import BloomError as BloomError
from sds_core.wire.errors import BloomWrongLength as BloomWrongLength
from sds_core.wire.errors import EmptyValue as EmptyValue
from sds_core.wire.errors import MalformedProtobuf as MalformedProtobuf
from sds_core.wire.errors import NameTooLong as NameTooLong
from sds_core.wire.errors import NeitherLamportNorContent as NeitherLamportNorContent
from sds_core.wire.errors import NoChannel as NoChannel
from sds_core.wire.errors import NoMessageId as NoMessageId
from sds_core.wire.errors import UndecodableFrame as UndecodableFrame
from sds_core.wire.errors import ValueTooLarge as ValueTooLarge
from sds_core.wire.errors import WireError as WireError
from sds_core.wire.frame import Dialect as Dialect
from sds_core.wire.frame import Frame as Frame
from sds_core.wire.frame import FrameKind as FrameKind
from sds_core.wire.frame import HistoryEntry as HistoryEntry
from sds_core.wire.frame import HistoryEntryLike as HistoryEntryLike
from sds_core.wire.frame import kind_of as kind_of
from sds_core.wire.message import MAX_ID_CHARACTERS as MAX_ID_CHARACTERS
from sds_core.wire.outline import Outline as Outline
from sds_core.wire.outline import entry_bytes as entry_bytes
from sds_core.wire.outline import outline_of as outline_of
from sds_core.wire.outline import outlined_entry as outlined_entry
from sds_core.wire.parts import PartSizes as PartSizes
from sds_core.wire.parts import part_sizes as part_sizes
