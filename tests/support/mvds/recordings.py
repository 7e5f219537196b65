"""The recorded traffic of tests/vectors/mvds."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from connectors.kafka.producer import TopicRecord

VECTORS = Path(__file__).parents[2] / "vectors" / "mvds"

NAMES = ["interactive", "batch", "offline"]


class Tapped(NamedTuple):
    """One payload as the tap recorded it.

    Attributes:
        time_ms: When the tap saw it, Unix ms.
        sender: Peer id in hexadecimal.
        receiver: Peer id in hexadecimal.
        value: Bytes of the payload.
    """

    time_ms: int
    sender: str
    receiver: str
    value: bytes


class Sent(NamedTuple):
    """One message of the truth.

    Attributes:
        group_id: Id of its group.
        sender: Peer that made it.
        time_ms: When it was made, Unix ms.
        receivers: Peers that should receive it.
    """

    group_id: bytes
    sender: str
    time_ms: int
    receivers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Truth:
    """What really happened.

    Attributes:
        messages: Messages by id.
        delivered: Id, and peer -> time in ms at which it first received the message.
        acknowledged: Id, and peer -> time in ms at which an acknowledgement by the peer
            first arrived anywhere.
    """

    messages: dict[bytes, Sent]
    delivered: dict[bytes, dict[str, int]]
    acknowledged: dict[bytes, dict[str, int]]


def payloads(name: str) -> Iterator[Tapped]:
    """Yield the payloads of a recording in the order of the tap."""
    for line in _lines(name):
        if "heartbeat" not in line:
            headers = line["headers"]
            value = base64.b64decode(line["value_b64"])
            yield Tapped(line["ts"], headers["peer"], headers["to"], value)


def topic_records(name: str, partitions: int, begin_ms: int) -> Iterator[TopicRecord]:
    """Yield the records of a recording as a mirror writes them (docs/records.md).

    Args:
        name: Name of the recording.
        partitions: Partitions of the topic: each pair of peers has one, and heartbeats
            are in the first.
        begin_ms: Time of the first record, Unix ms.
    """
    shift_ms: int | None = None
    for line in _lines(name):
        if shift_ms is None:
            shift_ms = begin_ms - line["ts"]
        time_ms = line["ts"] + shift_ms
        if "heartbeat" in line:
            tap = {"observer": line["observer"], "seq": line["seq"]}
            headers = _encoded(tap | {"kind": "heartbeat"})
            yield TopicRecord(0, time_ms, None, b"", headers)
        else:
            key = line["key"].encode()
            value = base64.b64decode(line["value_b64"])
            place = crc32(key) % partitions
            yield TopicRecord(place, time_ms, key, value, _encoded(line["headers"]))


def _encoded(headers: dict[str, Any]) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, str(value).encode()) for name, value in headers.items())


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with lzma.open(
        VECTORS / f"{name}.frames.jsonl.xz", "rt", encoding="utf-8"
    ) as lines:
        yield from map(json.loads, lines)


def truth(name: str) -> Truth:
    """Return the truth of a recording."""
    with lzma.open(VECTORS / f"{name}.truth.json.xz", "rt", encoding="utf-8") as file:
        found = json.load(file)
    messages = {
        bytes.fromhex(one): Sent(
            bytes.fromhex(about["Group"]),
            about["Sender"],
            about["Sent"],
            frozenset(about["Receivers"]),
        )
        for one, about in found["messages"].items()
    }
    delivered = {bytes.fromhex(one): at for one, at in found["delivered"].items()}
    acknowledged = {bytes.fromhex(one): at for one, at in found["acked"].items()}
    return Truth(messages, delivered, acknowledged)
