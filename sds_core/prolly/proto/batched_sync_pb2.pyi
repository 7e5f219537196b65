from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Open(_message.Message):
    __slots__ = ("salt", "fan_out", "start_ns", "end_ns", "root", "height", "tail_children")
    SALT_FIELD_NUMBER: _ClassVar[int]
    FAN_OUT_FIELD_NUMBER: _ClassVar[int]
    START_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    TAIL_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    salt: bytes
    fan_out: int
    start_ns: int
    end_ns: int
    root: bytes
    height: int
    tail_children: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, salt: _Optional[bytes] = ..., fan_out: _Optional[int] = ..., start_ns: _Optional[int] = ..., end_ns: _Optional[int] = ..., root: _Optional[bytes] = ..., height: _Optional[int] = ..., tail_children: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Root(_message.Message):
    __slots__ = ("root", "height")
    ROOT_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    root: bytes
    height: int
    def __init__(self, root: _Optional[bytes] = ..., height: _Optional[int] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("level", "differing", "fingerprints", "root", "skips_level")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    DIFFERING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    SKIPS_LEVEL_FIELD_NUMBER: _ClassVar[int]
    level: int
    differing: bytes
    fingerprints: bytes
    root: Root
    skips_level: bool
    def __init__(self, level: _Optional[int] = ..., differing: _Optional[bytes] = ..., fingerprints: _Optional[bytes] = ..., root: _Optional[_Union[Root, _Mapping[str, object]]] = ..., skips_level: _Optional[bool] = ...) -> None: ...

class Want(_message.Message):
    __slots__ = ("wanted",)
    WANTED_FIELD_NUMBER: _ClassVar[int]
    wanted: bytes
    def __init__(self, wanted: _Optional[bytes] = ...) -> None: ...

class Items(_message.Message):
    __slots__ = ("time_differences", "message_hashes", "level", "differing", "has_more", "root")
    TIME_DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_HASHES_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    DIFFERING_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    time_differences: _containers.RepeatedScalarFieldContainer[int]
    message_hashes: bytes
    level: int
    differing: bytes
    has_more: bool
    root: Root
    def __init__(self, time_differences: _Optional[_Iterable[int]] = ..., message_hashes: _Optional[bytes] = ..., level: _Optional[int] = ..., differing: _Optional[bytes] = ..., has_more: _Optional[bool] = ..., root: _Optional[_Union[Root, _Mapping[str, object]]] = ...) -> None: ...

class RecordsRequest(_message.Message):
    __slots__ = ("message_hashes",)
    MESSAGE_HASHES_FIELD_NUMBER: _ClassVar[int]
    message_hashes: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, message_hashes: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("message_hash", "key", "value", "headers")
    MESSAGE_HASH_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    message_hash: bytes
    key: bytes
    value: bytes
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    def __init__(self, message_hash: _Optional[bytes] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping[str, object]]]] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: bytes
    def __init__(self, name: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class RecordsResponse(_message.Message):
    __slots__ = ("records",)
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[Record]
    def __init__(self, records: _Optional[_Iterable[_Union[Record, _Mapping[str, object]]]] = ...) -> None: ...

class Credential(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...
