from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HistoryEntry(_message.Message):
    __slots__ = ("message_id", "retrieval_hint", "sender_id")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    RETRIEVAL_HINT_FIELD_NUMBER: _ClassVar[int]
    SENDER_ID_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    retrieval_hint: bytes
    sender_id: str
    def __init__(self, message_id: _Optional[str] = ..., retrieval_hint: _Optional[bytes] = ..., sender_id: _Optional[str] = ...) -> None: ...

class SdsMessage(_message.Message):
    __slots__ = ("message_id", "lamport_timestamp", "causal_history", "channel_id", "content", "bloom_filter", "sender_id", "repair_request")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    LAMPORT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CAUSAL_HISTORY_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    BLOOM_FILTER_FIELD_NUMBER: _ClassVar[int]
    SENDER_ID_FIELD_NUMBER: _ClassVar[int]
    REPAIR_REQUEST_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    lamport_timestamp: int
    causal_history: _containers.RepeatedCompositeFieldContainer[HistoryEntry]
    channel_id: str
    content: bytes
    bloom_filter: bytes
    sender_id: str
    repair_request: _containers.RepeatedCompositeFieldContainer[HistoryEntry]
    def __init__(self, message_id: _Optional[str] = ..., lamport_timestamp: _Optional[int] = ..., causal_history: _Optional[_Iterable[_Union[HistoryEntry, _Mapping[str, object]]]] = ..., channel_id: _Optional[str] = ..., content: _Optional[bytes] = ..., bloom_filter: _Optional[bytes] = ..., sender_id: _Optional[str] = ..., repair_request: _Optional[_Iterable[_Union[HistoryEntry, _Mapping[str, object]]]] = ...) -> None: ...

class OldSdsMessage(_message.Message):
    __slots__ = ("message_id", "lamport_timestamp", "causal_history", "channel_id", "content", "bloom_filter", "sender_id", "repair_request")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    LAMPORT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CAUSAL_HISTORY_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    BLOOM_FILTER_FIELD_NUMBER: _ClassVar[int]
    SENDER_ID_FIELD_NUMBER: _ClassVar[int]
    REPAIR_REQUEST_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    lamport_timestamp: int
    causal_history: _containers.RepeatedScalarFieldContainer[bytes]
    channel_id: str
    content: bytes
    bloom_filter: bytes
    sender_id: str
    repair_request: _containers.RepeatedCompositeFieldContainer[HistoryEntry]
    def __init__(self, message_id: _Optional[str] = ..., lamport_timestamp: _Optional[int] = ..., causal_history: _Optional[_Iterable[bytes]] = ..., channel_id: _Optional[str] = ..., content: _Optional[bytes] = ..., bloom_filter: _Optional[bytes] = ..., sender_id: _Optional[str] = ..., repair_request: _Optional[_Iterable[_Union[HistoryEntry, _Mapping[str, object]]]] = ...) -> None: ...

class BloomFilter(_message.Message):
    __slots__ = ("bits", "capacity", "error_rate_millionths", "k", "m_bits")
    BITS_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    ERROR_RATE_MILLIONTHS_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    M_BITS_FIELD_NUMBER: _ClassVar[int]
    bits: bytes
    capacity: int
    error_rate_millionths: int
    k: int
    m_bits: int
    def __init__(self, bits: _Optional[bytes] = ..., capacity: _Optional[int] = ..., error_rate_millionths: _Optional[int] = ..., k: _Optional[int] = ..., m_bits: _Optional[int] = ...) -> None: ...

class DialectMark(_message.Message):
    __slots__ = ("lamport_timestamp", "channel_id", "content", "bloom_filter", "sender_id")
    LAMPORT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    BLOOM_FILTER_FIELD_NUMBER: _ClassVar[int]
    SENDER_ID_FIELD_NUMBER: _ClassVar[int]
    lamport_timestamp: int
    channel_id: bytes
    content: bytes
    bloom_filter: bytes
    sender_id: bytes
    def __init__(self, lamport_timestamp: _Optional[int] = ..., channel_id: _Optional[bytes] = ..., content: _Optional[bytes] = ..., bloom_filter: _Optional[bytes] = ..., sender_id: _Optional[bytes] = ...) -> None: ...
