"""A payload is divided among the views without loss."""

from __future__ import annotations

import pytest

from sds_core.mvds.payload import GroupOffer, Message, Metadata, Payload, encode
from sds_core.mvds.proto import mvds_vacp2p_pb2
from sds_core.observer.mvds.split import PayloadPart, RecordType, group_name, split
from tests.support.mvds.recordings import NAMES, payloads
from tests.support.mvds.traffic import GROUP, Record, message, message_key


def _parts(value: bytes) -> list[PayloadPart]:
    return [part for _, part in split(Record(0, "a", "b", value).frame)]


@pytest.mark.parametrize("name", NAMES)
def test_bytes_of_recorded_payloads_are_those_of_their_records(name: str) -> None:
    """Records have the length that deployed nodes write; the parts add up to it."""
    for tapped in payloads(name):
        parts = _parts(tapped.value)
        assert sum(part.is_counted for part in parts) == 1
        assert sum(part.other_bytes for part in parts) == 0
        sizes = (record.size for part in parts for record in part.records)
        assert sum(sizes) == len(tapped.value)


def test_bytes_of_metadata_group_offers_and_negative_times_add_up() -> None:
    """What belongs to no record is the frame of a group offer."""
    metadata = Metadata((message_key(1), message_key(2)), ephemeral=True)
    payload = Payload(
        messages=(
            Message(GROUP, -1, b"x" * 300, metadata),
            Message(b"", 0, b"", Metadata()),
        ),
        group_offers=(GroupOffer(GROUP, (message_key(3), message_key(4))),),
    )
    value = encode(payload)
    parts = _parts(value)
    sizes = {
        record.type: record.size
        for part in parts
        for record in part.records
        if record.type is RecordType.OFFER or record.size > 300
    }
    only = encode(Payload(messages=payload.messages[:1]))
    assert sizes == {RecordType.OFFER: 34, RecordType.MESSAGE: len(only)}
    # Tag and length of the group offer, and its group id with tag and length.
    assert sum(part.other_bytes for part in parts) == 3 + 1 + 1 + 1 + len(GROUP)


def test_bytes_in_the_other_numbering_add_up() -> None:
    """Tags of vacp2p/mvds have one byte."""
    one = mvds_vacp2p_pb2.Message(group_id=GROUP, timestamp=7, body=b"body")
    value = mvds_vacp2p_pb2.Payload(
        acks=[message_key(1)], messages=[one]
    ).SerializeToString()
    parts = _parts(value)
    assert sum(part.other_bytes for part in parts) == 0
    assert sum(len(part.records) for part in parts) == 2


def test_all_records_of_an_id_go_to_one_view() -> None:
    """Whatever their type, and once each although the payload repeats them."""
    key = message_key(1)
    payload = Payload((key, key), (key,), (key,), (message(1), message(1)))
    parts = [part for part in _parts(encode(payload)) if part.records]
    assert len(parts) == 1
    found = [(record.type, record.times) for record in parts[0].records]
    assert found == list(zip(RecordType, (2, 1, 1, 2), strict=True))


def test_every_view_hears_of_an_empty_payload() -> None:
    """One of them counts it."""
    parts = _parts(b"")
    assert [(part.sender, part.receiver) for part in parts] == [("a", "b")] * 8
    assert sum(part.is_counted and part.is_empty for part in parts) == 1


def test_group_has_the_first_sixteen_digits() -> None:
    """A shorter id has fewer, and none at all is a group too."""
    assert group_name(GROUP) == "0123456789abcdef"
    assert group_name(b"\x01") == "01"
    assert group_name(b"") == "empty"
