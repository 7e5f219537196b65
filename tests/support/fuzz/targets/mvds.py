"""Payloads of MVDS: the decoder, and a node that takes them."""

from __future__ import annotations

from random import Random

from sds_core.mvds.node import Node
from sds_core.mvds.options import Options, Resolution
from sds_core.mvds.payload import (
    GroupOffer,
    Message,
    Metadata,
    Payload,
    decode,
    encode,
    message_id,
)
from sds_core.mvds.proto import mvds_vacp2p_pb2
from sds_core.mvds.records import RecordType
from sds_core.wire import UndecodableFrame
from tests.support.fuzz.errors import check_text
from tests.support.fuzz.mutation import changed_bytes, changed_protobuf
from tests.support.fuzz.target import Target
from tests.support.mvds.network import GROUP

_IDS = tuple(bytes([number]) * 32 for number in range(4))
_PLAIN = Message(GROUP, 1, b"hello")
_CHILD = Message(GROUP, 2, b"child", Metadata((message_id(_PLAIN), _IDS[0])))
_EPHEMERAL = Message(GROUP, 3, b"now", Metadata(ephemeral=True))


def genuine_payloads() -> list[bytes]:
    """Payloads with each kind of record, in both numberings."""
    payloads = [
        Payload(acks=_IDS[:2], offers=_IDS[1:3], requests=_IDS[2:]),
        Payload(messages=(_PLAIN, _CHILD)),
        Payload(offers=(message_id(_PLAIN),), messages=(_EPHEMERAL,)),
        Payload(group_offers=(GroupOffer(GROUP, _IDS),)),
        Payload(messages=(Message(b"other", -1, b""),)),
    ]
    old = mvds_vacp2p_pb2.Payload(
        acks=_IDS[:1],
        messages=[mvds_vacp2p_pb2.Message(group_id=GROUP, timestamp=4, body=b"old")],
    )
    return [*map(encode, payloads), old.SerializeToString()]


def _changed_payload(random: Random, value: bytes, other: bytes) -> bytes:
    """A payload with changed fields; one in ten with changed bytes."""
    if random.random() < 0.1:
        return changed_bytes(random, value, other)
    joined = value + other if random.random() < 0.2 else value
    return changed_protobuf(random, joined)


def _decoded(value: bytes) -> Payload | None:
    try:
        return decode(value)
    except UndecodableFrame as error:
        check_text(str(error))
        return None


def _check_payload(value: bytes) -> bool:
    """A payload that round-trips, or the reason why not."""
    payload = _decoded(value)
    if payload is None:
        return False
    assert decode(encode(payload)) == payload
    return True


def _check_node(value: bytes) -> bool:
    """A node takes any payload, stays valid, and can be stored and restored."""
    payload = _decoded(value)
    if payload is None:
        return False
    options = Options(resolution=Resolution.CONSISTENT, max_waiting=1, max_requests=3)
    node = Node(b"alice", options)
    node.add_group(GROUP, [b"bob", b"carol"])
    for sender in (b"bob", b"carol", b"stranger"):
        node.receive(sender, payload)
        for record in node.records:
            held = node.message(record.message_id) is not None
            assert held is (record.type is not RecordType.REQUEST)
    restored = Node.restore(b"alice", node.snapshot(), options)
    assert restored.snapshot() == node.snapshot()
    for sent in node.tick().payloads.values():
        assert decode(encode(sent)) == sent
    return True


TARGETS = (
    Target("mvds-payload", genuine_payloads, _changed_payload, _check_payload),
    Target("mvds-node", genuine_payloads, _changed_payload, _check_node),
)
