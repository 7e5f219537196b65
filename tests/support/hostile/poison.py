"""Records at every limit of Kafka and of the monitor, one at a time or in masses.

`RECORDS` are single ones, each with the reason of its dead letter; `names` makes valid
frames of many taps with long names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from connectors.kafka.producer import TopicRecord
from sds_core.wire import MAX_ID_CHARACTERS, MAX_VALUE_BYTES, Dialect, Frame, encode

CHANNEL = "poison"
MIB = 1024 * 1024
LARGEST = 32 * MIB - 400
"""Bytes of the longest part of a record that a topic of 32 MiB takes."""

Headers = tuple[tuple[str, bytes], ...]


class Poison(NamedTuple):
    """A record that is to harm.

    Attributes:
        reason: Reason of its dead letter; empty if it counts as a frame.
        value, key, headers: Of the record.
    """

    reason: str
    value: bytes
    key: bytes | None = None
    headers: Headers = ()


def frame(number: int = 0, channel: str = CHANNEL, sender: str = "mallory") -> bytes:
    """Return a valid content frame."""
    return encode(
        Frame.build(
            Dialect.SPEC,
            message_id=f"m-{number}",
            channel_id=channel,
            sender_id=sender,
            lamport=1_000 + number,
            content=b"content",
        )
    )


def tap(name: str, number: int) -> Headers:
    """Return the headers of a tap's record."""
    return (("observer", name.encode()), ("seq", str(number).encode()))


def _single() -> Iterator[Poison]:
    yield Poison("protobuf_error", b"x", headers=(("meta", bytes(LARGEST)),))
    yield Poison("protobuf_error", b"x", headers=(("n" * LARGEST, b""),))
    # Escapes take four times as many bytes.
    yield Poison("bad_header", b"x", headers=(("\udcff" * (9 * MIB), b""),))
    yield Poison("protobuf_error", b"x", key=bytes(LARGEST))
    yield Poison("protobuf_error", b"x", headers=(("h", b"v" * 100),) * 50_000)
    yield Poison("too_large", bytes(LARGEST))
    yield Poison("too_large", bytes(MAX_VALUE_BYTES + 1), key=bytes(2 * MIB))
    yield Poison("protobuf_error", b"\xff" * MAX_VALUE_BYTES)
    # As large as a topic with Kafka's default takes, and the headers of a dead letter.
    yield Poison("protobuf_error", b"\xff" * (MIB - 100))
    yield Poison("channel_mismatch", frame(), key=b"k" * (2 * MIB))
    yield Poison("", frame(-1), headers=(("content-topic", bytes(LARGEST)),))
    for size in (MAX_ID_CHARACTERS + 1, MIB):
        name = "n" * size
        yield Poison("name_too_long", frame(), headers=tap(name, 1))
        yield Poison("name_too_long", b"", headers=(*tap(name, 1), HEARTBEAT))
        yield Poison("name_too_long", frame(channel=name))
        yield Poison("name_too_long", frame(channel=name), key=name.encode())
        yield Poison("name_too_long", frame(sender=name))
        peers = (("protocol", b"mvds"), ("peer", name.encode()), ("to", b"bob"))
        yield Poison("name_too_long", b"", headers=peers)
    name = "n" * MAX_ID_CHARACTERS
    yield Poison("", frame(-2, sender=name), headers=tap(name, 1))
    yield Poison("", frame(-3, channel=name), key=name.encode())


HEARTBEAT = ("kind", b"heartbeat")
RECORDS = tuple(_single())


def names(count: int, characters: int) -> Iterator[Poison]:
    """Yield valid frames, each of another tap with a name of so many characters."""
    reason = "name_too_long" if characters > MAX_ID_CHARACTERS else ""
    for number in range(count):
        name = f"{number:0{characters}}"
        yield Poison(reason, frame(number), CHANNEL.encode(), tap(name, number))


def mixed(
    genuine: Iterable[TopicRecord], poisonous: Iterator[Poison], each: int
) -> Iterator[TopicRecord]:
    """Yield genuine records, and after each some of the others, in partition 0.

    These have the time of the record before them, so that they move no clock.
    """
    for record in genuine:
        yield record
        for one in islice(poisonous, each):
            yield TopicRecord(0, record.timestamp_ms, one.key, one.value, one.headers)
