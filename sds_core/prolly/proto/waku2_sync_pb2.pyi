from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Node(_message.Message):
    __slots__ = ("data", "timestamp", "node_hash", "level", "merkle_hash", "is_tail", "left", "right", "up", "down")
    DATA_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    NODE_HASH_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MERKLE_HASH_FIELD_NUMBER: _ClassVar[int]
    IS_TAIL_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    DOWN_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    timestamp: int
    node_hash: bytes
    level: int
    merkle_hash: bytes
    is_tail: bool
    left: int
    right: int
    up: int
    down: int
    def __init__(self, data: _Optional[bytes] = ..., timestamp: _Optional[int] = ..., node_hash: _Optional[bytes] = ..., level: _Optional[int] = ..., merkle_hash: _Optional[bytes] = ..., is_tail: _Optional[bool] = ..., left: _Optional[int] = ..., right: _Optional[int] = ..., up: _Optional[int] = ..., down: _Optional[int] = ...) -> None: ...

class ExchangeRootRequest(_message.Message):
    __slots__ = ("root",)
    ROOT_FIELD_NUMBER: _ClassVar[int]
    root: Node
    def __init__(self, root: _Optional[_Union[Node, _Mapping[str, object]]] = ...) -> None: ...

class ExchangeRootResponse(_message.Message):
    __slots__ = ("root",)
    ROOT_FIELD_NUMBER: _ClassVar[int]
    root: Node
    def __init__(self, root: _Optional[_Union[Node, _Mapping[str, object]]] = ...) -> None: ...

class GetIntermediateNodeRequest(_message.Message):
    __slots__ = ("node_id", "level")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    level: int
    def __init__(self, node_id: _Optional[int] = ..., level: _Optional[int] = ...) -> None: ...

class GetIntermediateNodeResponse(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: Node
    def __init__(self, node: _Optional[_Union[Node, _Mapping[str, object]]] = ...) -> None: ...

class GetNonBoundaryNodesRequest(_message.Message):
    __slots__ = ("start_nodes",)
    START_NODES_FIELD_NUMBER: _ClassVar[int]
    start_nodes: _containers.RepeatedCompositeFieldContainer[Node]
    def __init__(self, start_nodes: _Optional[_Iterable[_Union[Node, _Mapping[str, object]]]] = ...) -> None: ...

class GetNonBoundaryNodesResponse(_message.Message):
    __slots__ = ("non_boundary_nodes",)
    NON_BOUNDARY_NODES_FIELD_NUMBER: _ClassVar[int]
    non_boundary_nodes: _containers.RepeatedCompositeFieldContainer[Node]
    def __init__(self, non_boundary_nodes: _Optional[_Iterable[_Union[Node, _Mapping[str, object]]]] = ...) -> None: ...
