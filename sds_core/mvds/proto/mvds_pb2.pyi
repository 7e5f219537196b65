from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Metadata(_message.Message):
    __slots__ = ("parents", "ephemeral")
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_FIELD_NUMBER: _ClassVar[int]
    parents: _containers.RepeatedScalarFieldContainer[bytes]
    ephemeral: bool
    def __init__(self, parents: _Optional[_Iterable[bytes]] = ..., ephemeral: _Optional[bool] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("group_id", "timestamp", "body", "metadata")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    group_id: bytes
    timestamp: int
    body: bytes
    metadata: Metadata
    def __init__(self, group_id: _Optional[bytes] = ..., timestamp: _Optional[int] = ..., body: _Optional[bytes] = ..., metadata: _Optional[_Union[Metadata, _Mapping[str, object]]] = ...) -> None: ...

class GroupOffer(_message.Message):
    __slots__ = ("group_id", "message_ids")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    group_id: bytes
    message_ids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, group_id: _Optional[bytes] = ..., message_ids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Payload(_message.Message):
    __slots__ = ("acks", "offers", "requests", "messages", "group_offers")
    ACKS_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    GROUP_OFFERS_FIELD_NUMBER: _ClassVar[int]
    acks: _containers.RepeatedScalarFieldContainer[bytes]
    offers: _containers.RepeatedScalarFieldContainer[bytes]
    requests: _containers.RepeatedScalarFieldContainer[bytes]
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    group_offers: _containers.RepeatedCompositeFieldContainer[GroupOffer]
    def __init__(self, acks: _Optional[_Iterable[bytes]] = ..., offers: _Optional[_Iterable[bytes]] = ..., requests: _Optional[_Iterable[bytes]] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping[str, object]]]] = ..., group_offers: _Optional[_Iterable[_Union[GroupOffer, _Mapping[str, object]]]] = ...) -> None: ...

class MergedMessages(_message.Message):
    __slots__ = ("metadata",)
    METADATA_FIELD_NUMBER: _ClassVar[int]
    metadata: Metadata
    def __init__(self, metadata: _Optional[_Union[Metadata, _Mapping[str, object]]] = ...) -> None: ...

class Parents(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: MergedMessages
    def __init__(self, messages: _Optional[_Union[MergedMessages, _Mapping[str, object]]] = ...) -> None: ...
