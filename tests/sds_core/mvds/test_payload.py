"""Bytes <-> Payload."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.mvds.payload import (
    MAX_RECORDS,
    GroupOffer,
    MalformedPayload,
    Message,
    Metadata,
    NoRecord,
    NotAPayload,
    Payload,
    TooManyRecords,
    WrongIdLength,
    decode,
    decode_first,
    encode,
    message_id,
)
from sds_core.mvds.proto import mvds_pb2, mvds_vacp2p_pb2
from sds_core.reason import Reason
from sds_core.wire import MAX_VALUE_BYTES, ValueTooLarge
from sds_core.wire.proto.sds_spec_pb2 import SdsMessage
from tests.support.mvds import recordings

ids = st.binary(min_size=32, max_size=32)
id_lists = st.lists(ids, max_size=4).map(tuple)
messages = st.builds(
    Message,
    st.binary(max_size=40),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(max_size=40),
    st.none() | st.builds(Metadata, id_lists, st.booleans()),
)
payloads = st.builds(
    Payload,
    id_lists,
    id_lists,
    id_lists,
    st.lists(messages, max_size=3).map(tuple),
    st.lists(st.builds(GroupOffer, st.binary(max_size=40), id_lists), max_size=3).map(
        tuple
    ),
)


@given(payloads)
def test_what_is_written_is_read(payload: Payload) -> None:
    """Nothing is lost, and the order of records stays."""
    assert decode(encode(payload)) == payload


@given(payloads, st.integers(0, 12))
def test_first_records_are_those_that_are_read_first(
    payload: Payload, most: int
) -> None:
    """In the order of the types; the others are counted."""

    def records(of: Payload) -> list[object]:
        return [*of.acks, *of.offered(), *of.requests, *of.messages]

    first, others = decode_first(encode(payload), most)
    assert records(first) == records(payload)[:most]
    assert others == len(records(payload)) - len(records(first))
    groups = [offer.group_id for offer in payload.group_offers]
    assert [offer.group_id for offer in first.group_offers] == groups


def test_records_that_are_not_returned_are_checked() -> None:
    """An id of another length makes the whole payload none, wherever it is."""
    value = mvds_pb2.Payload(
        acks=[b"i" * 32],
        messages=[mvds_pb2.Message(metadata=mvds_pb2.Metadata(parents=[b"short"]))],
    ).SerializeToString()
    with pytest.raises(WrongIdLength):
        decode_first(value, 1)


@pytest.mark.rule("mvds-payload-schema")
def test_field_numbers_are_those_of_the_specification() -> None:
    """Tags 5001 to 5004 and 6001 to 6003, written out."""
    ack, offer, request = bytes(32), b"\x01" * 32, b"\x02" * 32
    payload = Payload((ack,), (offer,), (request,), (Message(b"g", 5, b"body"),))
    assert encode(payload) == (
        bytes.fromhex("cab802" "20") + ack
        + bytes.fromhex("d2b802" "20") + offer
        + bytes.fromhex("dab802" "20") + request
        + bytes.fromhex("e2b802" "11")
        + bytes.fromhex("8af702" "01") + b"g"
        + bytes.fromhex("90f702" "05")
        + bytes.fromhex("9af702" "04") + b"body"
    )  # fmt: skip


def test_payload_without_records_has_no_bytes() -> None:
    """Deployed nodes send many such payloads."""
    assert encode(Payload()) == b""
    assert decode(b"") == Payload()


def test_numbering_of_vacp2p_is_read() -> None:
    """The reference implementation numbers fields from 1."""
    metadata = mvds_vacp2p_pb2.Metadata(parents=[bytes(32)], ephemeral=True)
    message = mvds_vacp2p_pb2.Message(
        group_id=b"g", timestamp=-5, body=b"body", metadata=metadata
    )
    value = mvds_vacp2p_pb2.Payload(
        acks=[b"a" * 32], offers=[b"b" * 32], requests=[b"c" * 32], messages=[message]
    ).SerializeToString()
    expected = Message(b"g", -5, b"body", Metadata((bytes(32),), True))
    assert decode(value) == Payload(
        (b"a" * 32,), (b"b" * 32,), (b"c" * 32,), (expected,)
    )


def test_group_offers_of_status_are_read_as_offers() -> None:
    """They stay apart, so that the same bytes are written again."""
    offer = GroupOffer(b"g", (b"b" * 32, b"c" * 32))
    payload = decode(encode(Payload(offers=(b"a" * 32,), group_offers=(offer,))))
    assert payload.group_offers == (offer,)
    assert list(payload.offered()) == [b"a" * 32, b"b" * 32, b"c" * 32]


def test_unknown_fields_beside_records_are_ignored() -> None:
    """A later version may add a field."""
    extended = encode(Payload(acks=(bytes(32),))) + bytes.fromhex("f2b80200")
    assert decode(extended) == Payload(acks=(bytes(32),))


WRONG_ID = mvds_pb2.Payload(acks=[bytes(31)]).SerializeToString()
WRONG_PARENT = mvds_pb2.Payload(
    messages=[mvds_pb2.Message(metadata=mvds_pb2.Metadata(parents=[b""]))]
).SerializeToString()
WRONG_OFFER = mvds_pb2.Payload(
    group_offers=[mvds_pb2.GroupOffer(message_ids=[bytes(33)])]
).SerializeToString()
SDS = SdsMessage(sender_id="s", message_id="m", channel_id="c", content=b"x")


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (b"\xff\xff", MalformedPayload, "2 bytes are no MVDS payload: "),
        (b"\xe2\xb8\x02\x05", MalformedPayload, "4 bytes are no MVDS payload: "),
        (b"\x2a\x00", NoRecord, "2 bytes have no field of an MVDS payload"),
        (
            bytes.fromhex("f2b80200"),
            NoRecord,
            "4 bytes have no field of an MVDS payload",
        ),
        (WRONG_ID, WrongIdLength, "acks has an id of 31 bytes, an id has 32"),
        (
            WRONG_PARENT,
            WrongIdLength,
            "metadata.parents has an id of 0 bytes, an id has 32",
        ),
        (
            WRONG_OFFER,
            WrongIdLength,
            "group_offers has an id of 33 bytes, an id has 32",
        ),
        (SDS.SerializeToString(), NotAPayload, ""),
    ],
)
def test_other_bytes_are_no_payload(
    value: bytes, error: type[NotAPayload], message: str
) -> None:
    """The error says why, and can cross processes."""
    with pytest.raises(error) as caught:
        decode(value)
    assert str(caught.value).startswith(message)
    assert caught.value.reason == Reason.MVDS_ERROR
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert vars(copy) == vars(caught.value)


def test_long_value_is_not_parsed() -> None:
    """It has the reason that it has in every protocol."""
    with pytest.raises(ValueTooLarge) as caught:
        decode(b"\xff" * (MAX_VALUE_BYTES + 1))
    assert caught.value.reason == Reason.TOO_LARGE


@pytest.mark.parametrize(
    "many",
    [
        lambda n: Payload(acks=(bytes(32),) * n),
        lambda n: Payload(messages=(Message(b"", 0, b""),) * n),
        lambda n: Payload(group_offers=(GroupOffer(b"", (bytes(32),) * (n - 1)),)),
        lambda n: Payload(
            messages=(Message(b"", 0, b"", Metadata((bytes(32),) * (n - 1))),)
        ),
    ],
    ids=["acks", "messages", "group offers", "parents"],
)
def test_number_of_records_is_limited(many: object) -> None:
    """Ids count wherever they stand: a payload of 4 MiB has room for a million."""
    assert callable(many)
    assert decode(encode(many(MAX_RECORDS)))
    with pytest.raises(TooManyRecords) as caught:
        decode(encode(many(MAX_RECORDS + 1)))
    assert caught.value.actual == MAX_RECORDS + 1


def test_timestamp_beyond_64_bits_is_refused() -> None:
    """It would be another message for the receiver."""
    with pytest.raises(ValueError, match="out of range"):
        encode(Payload(messages=(Message(b"g", 2**63, b""),)))


@pytest.mark.parametrize("name", recordings.NAMES)
def test_recorded_payloads_are_written_again_byte_by_byte(name: str) -> None:
    """Every payload that a deployed node wrote."""
    count = 0
    for tapped in recordings.payloads(name):
        assert encode(decode(tapped.value)) == tapped.value
        count += 1
    assert count > 4_000


@pytest.mark.parametrize("name", recordings.NAMES)
def test_ids_in_recorded_payloads_are_those_of_the_truth(name: str) -> None:
    """Ids of messages are computed alike, and no record names any other id."""
    truth = recordings.truth(name)
    found = set()
    for tapped in recordings.payloads(name):
        payload = decode(tapped.value)
        for message in payload.messages:
            one = message_id(message)
            assert message.group_id == truth.messages[one].group_id
            found.add(one)
        named = {*payload.acks, *payload.offered(), *payload.requests}
        assert named <= truth.messages.keys()
    assert found == truth.messages.keys()
