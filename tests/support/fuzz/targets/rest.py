"""Decoders of the answers of Waku nodes (REST), up to the records of the mirror."""

from __future__ import annotations

from random import Random

import msgspec

from connectors.untrusted_json import UNREADABLE
from connectors.waku_rest.answers import (
    Undecodables,
    read_page,
    read_store_answer,
    read_subscription_status,
)
from connectors.waku_rest.intake import incoming_of
from sds_core.mirror.selection import Selection, channel_of
from sds_core.observer.record import read_headers
from sds_core.waku import WakuMessage
from tests.support.fuzz.documents import read_json, write_json
from tests.support.fuzz.mutation import changed_document
from tests.support.fuzz.target import Target
from tests.support.fuzz.targets.wire import genuine_frames
from tests.support.waku_node.answers import message_json, stored_json
from tests.support.waku_node.cache import Entry
from tests.support.waku_node.faults import NO_FAULT, Fault

_TOPIC = "/waku/2/rs/1/0"
_LONGEST_REASON = 400


def _messages() -> list[WakuMessage]:
    return [
        WakuMessage(value, "/app/1/chat/proto", 1_760_000_000_000_000_000 + number,
                    meta=b"meta" if number % 2 else b"", ephemeral=number == 3)
        for number, value in enumerate(genuine_frames())
        if len(value) < 1_000
    ]  # fmt: skip


def _pages() -> list[bytes]:
    listed = [message_json(message) for message in _messages()]
    return [b"[]", b"[%b]" % listed[0], b"[%b]" % b",".join(listed)]


def _store_answers() -> list[bytes]:
    entries = [
        Entry(message.hash_on(_TOPIC), _TOPIC, message) for message in _messages()[:3]
    ]
    head = b'{"requestId":"","statusCode":200,"statusDesc":"OK","messages":['
    cursor = b'],"paginationCursor":"0x%b"}' % entries[0].hash.hex().encode()
    made = []
    for include_data in (True, False):
        for fault in (NO_FAULT, Fault(base64_hashes=True)):
            rows = [stored_json(one, include_data, fault) for one in entries]
            made.append(head + b",".join(rows) + cursor)
    return [*made, head + b"]}", b'{"statusCode":429,"statusDesc":"slow down"}']


def genuine_answers() -> list[bytes]:
    """Answers of a node with messages, and a single message."""
    return [*_pages(), *_store_answers()[:2], message_json(_messages()[0])]


def _changed(random: Random, value: bytes, other: bytes) -> bytes:
    return changed_document(random, value, read_json, write_json)


def _check_page(body: bytes) -> bool:
    try:
        page = read_page(body)
    except ValueError:
        return False
    _check_undecodable(page.undecodable)
    for message in page.messages:
        _check_message(message)
    assert sum(len(one.payload) for one in page.messages) <= len(body)
    return True


def _check_store(body: bytes) -> bool:
    try:
        answer = read_store_answer(body)
        page = answer.page(_TOPIC)
    except UNREADABLE:
        return False
    _check_undecodable(page.undecodable)
    assert page.cursor is None or len(page.cursor) == 32
    for stored in page.messages:
        assert len(stored.hash) == 32
        if stored.message is not None:
            _check_message(stored.message)
    return True


def _check_subscription(body: bytes) -> bool:
    try:
        read_subscription_status(body)
    except UNREADABLE:
        return False
    return True


def _check_undecodable(undecodable: Undecodables) -> None:
    assert (undecodable.count > 0) == bool(undecodable.reason)
    assert len(undecodable.reason) <= _LONGEST_REASON


def _check_message(message: WakuMessage) -> None:
    """The mirror can write it, and the monitor reads what it wrote."""
    channel = channel_of(message.payload)
    Selection().skipped(message, channel)
    incoming = incoming_of(_TOPIC, message, channel, "relay")
    headers = read_headers(incoming.headers)
    assert headers.waku_hash_bytes == incoming.message_hash
    packed = msgspec.msgpack.encode(incoming.headers)
    assert msgspec.msgpack.decode(packed, type=tuple[tuple[str, bytes], ...]) == (
        incoming.headers
    )


TARGETS = (
    Target("rest-page", _pages, _changed, _check_page),
    Target("rest-store", _store_answers, _changed, _check_store),
    Target(
        "rest-subscription",
        lambda: [b'{"requestId":"1","statusDesc":"OK"}'],
        _changed,
        _check_subscription,
    ),
)
