"""A topic as a mirror writes it, from messages that tests know."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from connectors.kafka.producer import partition_of
from connectors.waku_rest.intake import incoming_of
from sds_core.waku import WakuMessage
from sds_core.wire import encode
from tests.support.frames import FrameFactory
from tests.support.kafka import KafkaTopic

PUBSUB_TOPIC = "/waku/2/rs/1/0"
CONTENT_TOPIC = "/app/1/town/proto"

START_NS = 1_790_000_000_000_000_000
STEP_NS = 100_000_000

PARTITIONS = 4


class Sent(NamedTuple):
    """A message on the network.

    Attributes:
        message: The message.
        channel: Channel of the SDS message in it.
    """

    message: WakuMessage
    channel: str

    @property
    def hash(self) -> bytes:
        """Its hash."""
        return self.message.hash_on(PUBSUB_TOPIC)


def sent_messages(count: int, seed: int = 1) -> list[Sent]:
    """Return so many SDS messages of twenty channels, ten a second."""
    chance = random.Random(seed)
    channels = [f"channel-{number}" for number in range(20)]
    # Thousands of messages have the same frames: their times tell them apart.
    payloads = {
        name: [encode(FrameFactory(name).content(f"m{n}", "ana")) for n in range(3)]
        for name in channels
    }
    sent = []
    for number in range(count):
        channel = chance.choice(channels)
        time_ns = START_NS + number * STEP_NS
        payload = chance.choice(payloads[channel])
        sent.append(Sent(WakuMessage(payload, CONTENT_TOPIC, time_ns), channel))
    return sent


def write_mirror(topic: KafkaTopic, messages: Iterable[Sent]) -> None:
    """Write messages as a mirror does, received 50 ms after they were sent."""
    for seq, sent in enumerate(messages):
        record = incoming_of(PUBSUB_TOPIC, sent.message, sent.channel, "relay")
        key = sent.channel.encode()
        tap = (("observer", b"tap-1"), ("seq", str(seq).encode()))
        topic.write(
            record.value,
            partition=partition_of(key, PARTITIONS),
            time_ms=sent.message.timestamp_ns // 1_000_000 + 50,
            key=key,
            headers=(*tap, *record.headers),
            flush=False,
        )
    topic.flush()


def without(messages: Sequence[Sent], left_out: Iterable[Sent]) -> list[Sent]:
    """Return the messages but some."""
    hashes = {one.hash for one in left_out}
    return [one for one in messages if one.hash not in hashes]
