"""One process: a consumer, protobuf, and a dictionary of channels. No Spark.

What an engineer would write in an afternoon: of each channel it counts messages, and
remembers ids, who acknowledged what by history, and which named messages are missing.
It has no deadlines, no taps, no repair, no filters, no restart and no limit of memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from benchmarks.contenders.common import confluent_messages, options, print_result
from sds_core.wire.proto.sds_spec_pb2 import SdsMessage


class Channel:
    """The figures of one channel."""

    def __init__(self) -> None:
        self.frames = 0
        self.duplicates = 0
        self.lamport = 0
        self.messages: dict[str, str] = {}
        self.missing: set[str] = set()
        self.acknowledged: set[str] = set()

    def add(self, message: SdsMessage) -> None:
        """Count a message."""
        self.frames += 1
        self.lamport = max(self.lamport, message.lamport_timestamp)
        if message.message_id in self.messages:
            self.duplicates += 1
        else:
            self.messages[message.message_id] = message.sender_id
            self.missing.discard(message.message_id)
        for entry in message.causal_history:
            sender = self.messages.get(entry.message_id)
            if sender is None:
                self.missing.add(entry.message_id)
            elif sender != message.sender_id:
                self.acknowledged.add(entry.message_id)


def confluent(bootstrap: str, topic: str, ends: dict[int, int]) -> Iterator[bytes]:
    """Yield all values, read with confluent-kafka."""
    for messages in confluent_messages(bootstrap, topic, ends):
        for message in messages:
            yield message.value() or b""


def kafka_python(bootstrap: str, topic: str, ends: dict[int, int]) -> Iterator[bytes]:
    """Yield all values, read with kafka-python."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", check_crcs=False
    )
    consumer.assign([TopicPartition(topic, p) for p in ends])
    left = sum(ends.values())
    for message in consumer:
        yield message.value or b""
        left -= 1
        if not left:
            break
    consumer.close()


@click.command()
@options
@click.option("--client", type=click.Choice(["confluent", "kafka-python", "raw"]))
def main(bootstrap: str, topic: str, ends: dict[int, int], client: str) -> None:
    """Read the topic; `raw` only reads it, with confluent-kafka."""
    read = kafka_python if client == "kafka-python" else confluent
    begun_s, begun_cpu_s = time.monotonic(), time.process_time()
    channels: dict[str, Channel] = {}
    frames = 0
    for value in read(bootstrap, topic, ends):
        frames += 1
        if client == "raw" or not value:
            continue
        message = SdsMessage.FromString(value)
        channel = channels.get(message.channel_id)
        if channel is None:
            channel = channels[message.channel_id] = Channel()
        channel.add(message)
    print_result(frames, begun_s, begun_cpu_s, channels=len(channels))


if __name__ == "__main__":
    main()
