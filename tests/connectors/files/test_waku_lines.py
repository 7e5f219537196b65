"""Waku messages of the REST API become the records that a tap would write."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from connectors.files.record_lines import BadLine, parse_line
from sds_core.observer.record import RawRecord, read_headers
from sds_core.wire import Dialect, Frame, encode

FRAME = encode(
    Frame.build(
        Dialect.SPEC, message_id="m", channel_id="town", lamport=1, content=b"hi"
    )
)
TOPIC = "/waku/2/rs/1/0"
MESSAGE = {
    "payload": b64encode(FRAME).decode(),
    "contentTopic": "/my-app/1/town/proto",
    "version": 0,
    "timestamp": 1_786_276_990_123_456_789,
    "meta": b64encode(b"\xffmeta").decode(),
    "ephemeral": False,
    "proof": "",
}
HASH = "0x" + "ab" * 32


def parsed(document: Any) -> list[RawRecord]:
    """The records of a line that holds some JSON."""
    return parse_line(json.dumps(document).encode())


def test_a_message_of_relay_becomes_a_record() -> None:
    """Key and time come from the message; headers follow docs/records.md."""
    (record,) = parsed(MESSAGE)
    assert (record.key, record.value) == (b"town", FRAME)
    assert record.timestamp_ms == 1_786_276_990_123
    assert dict(record.headers) == {
        "source": b"replay",
        "waku-timestamp": b"1786276990123456789",
        "content-topic": b"/my-app/1/town/proto",
        "meta": b"\xffmeta",
        "ephemeral": b"false",
    }
    read_headers(record.headers)


def test_record_of_an_undecodable_payload_has_no_key() -> None:
    """The monitor will make a dead letter of it."""
    (record,) = parsed(MESSAGE | {"payload": b64encode(b"\xff").decode()})
    assert (record.key, record.value) == (None, b"\xff")


def test_hash_and_topic_beside_a_message_of_relay_are_used() -> None:
    """If the topic is known, the hash is computed instead; empty values are none."""
    (record,) = parsed(MESSAGE | {"messageHash": HASH})
    assert dict(record.headers)["waku-hash"] == HASH.encode()
    (record,) = parsed(MESSAGE | {"messageHash": HASH, "pubsubTopic": TOPIC})
    headers = dict(record.headers)
    assert headers["pubsub-topic"] == TOPIC.encode()
    assert headers["waku-hash"] != HASH.encode()
    read_headers(record.headers)
    (record,) = parsed(MESSAGE | {"messageHash": "", "pubsubTopic": ""})
    assert not {"waku-hash", "pubsub-topic"} & dict(record.headers).keys()


def test_hash_of_an_older_node_is_base64() -> None:
    """The header has the hexadecimal form that all taps write."""
    older = b64encode(bytes.fromhex(HASH[2:])).decode()
    (record,) = parsed(MESSAGE | {"messageHash": older})
    assert dict(record.headers)["waku-hash"] == HASH.encode()


def test_entries_pages_and_answers_become_single_records() -> None:
    """An entry of the store, a page of relay, a whole answer of the store."""
    entry = {"messageHash": HASH, "message": MESSAGE}
    (record,) = parsed(entry)
    assert dict(record.headers)["waku-hash"] == HASH.encode()
    assert len(parsed([MESSAGE, MESSAGE])) == 2
    assert parsed([]) == []
    answer = {"requestId": "1", "statusCode": 200, "messages": [entry, entry]}
    assert len(parsed(answer)) == 2


def test_hash_is_computed_if_the_pubsub_topic_is_known() -> None:
    """It equals the vector of logos-delivery, whatever hash the node gives."""
    message = {
        "payload": b64encode(bytes.fromhex("010203045445535405060708")).decode(),
        "contentTopic": "/waku/2/default-content/proto",
        "timestamp": 1_681_964_442_000_000_000,
    }
    entry = {
        "messageHash": HASH,
        "message": message,
        "pubsubTopic": "/waku/2/rs/0/0",
    }
    (record,) = parsed(entry)
    headers = dict(record.headers)
    assert headers["waku-hash"] == (
        b"0xcccab07fed94181c83937c8ca8340c9108492b7ede354a6d95421ad34141fd37"
    )
    assert headers["pubsub-topic"] == b"/waku/2/rs/0/0"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({**MESSAGE, "payload": "?"}, "payload"),
        ({**MESSAGE, "timestamp": 0}, "timestamp"),
        ({**MESSAGE, "timestamp": None}, "timestamp"),
        ({"messageHash": HASH}, "includeData=true"),
        ({**MESSAGE, "messageHash": "abc"}, "'abc' is not a hash of 32 bytes"),
        ([MESSAGE, 1], "cannot be read"),
        ({"statusCode": "?", "messages": []}, "answer of a store"),
        ({"statusCode": 200, "messages": [{"messageHash": HASH}]}, "includeData=true"),
        ({"statusCode": 503, "statusDesc": "busy", "messages": []}, "503 'busy'"),
    ],
)
def test_unusable_message_is_refused_with_the_reason(document: Any, said: str) -> None:
    """For example, a message without the sender's time."""
    with pytest.raises(BadLine, match=said):
        parsed(document)
