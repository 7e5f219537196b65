"""Bytes <-> Frame: the wire format of Scalable Data Sync, and its bloom filters.

`decode` reads a message in either dialect, `encode` writes it. The protobuf of both is
in proto/, which says how to regenerate it.
"""

from sds_core.reason import Reason
from sds_core.wire.bloom import (
    DEFAULT_PARAMETERS,
    BloomFilter,
    BloomParameters,
    count_set_bits,
    estimated_ids,
    false_positive_rate,
    filter_bits,
    id_hashes,
    probes,
)
from sds_core.wire.codec import MAX_VALUE_BYTES, decode, dialect_of, encode
from sds_core.wire.errors import (
    BloomBadHeader,
    BloomError,
    BloomWrongLength,
    EmptyValue,
    MalformedProtobuf,
    NameTooLong,
    NeitherLamportNorContent,
    NoChannel,
    NoMessageId,
    UndecodableFrame,
    ValueTooLarge,
    WireError,
)
from sds_core.wire.frame import (
    Dialect,
    Frame,
    FrameKind,
    HistoryEntry,
    HistoryEntryLike,
    kind_of,
)
from sds_core.wire.message import MAX_ID_CHARACTERS
from sds_core.wire.outline import Outline, entry_bytes, outline_of, outlined_entry
from sds_core.wire.parts import PartSizes, part_sizes

__all__ = [
    "DEFAULT_PARAMETERS",
    "MAX_ID_CHARACTERS",
    "MAX_VALUE_BYTES",
    "BloomBadHeader",
    "BloomError",
    "BloomFilter",
    "BloomParameters",
    "BloomWrongLength",
    "Dialect",
    "EmptyValue",
    "Frame",
    "FrameKind",
    "HistoryEntry",
    "HistoryEntryLike",
    "MalformedProtobuf",
    "NameTooLong",
    "NeitherLamportNorContent",
    "NoChannel",
    "NoMessageId",
    "Outline",
    "PartSizes",
    "Reason",
    "UndecodableFrame",
    "ValueTooLarge",
    "WireError",
    "count_set_bits",
    "decode",
    "dialect_of",
    "encode",
    "entry_bytes",
    "estimated_ids",
    "false_positive_rate",
    "filter_bits",
    "id_hashes",
    "kind_of",
    "outline_of",
    "outlined_entry",
    "part_sizes",
    "probes",
]
