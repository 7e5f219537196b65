"""One process: a consumer, protobuf, and a dictionary of channels. No Spark.

What an engineer would write in an afternoon: of each channel it counts messages, and
remembers ids, who acknowledged what by history, and which named messages are missing.
It has no deadlines, no taps, no repair, no filters, no restart and no limit of memory.
"""

from __future__ import annotations

import time

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


@click.command()
@options
@click.option("--raw", is_flag=True, help="Only read the topic.")
def main(bootstrap: str, topic: str, ends: dict[int, int], raw: bool) -> None:
    """Read the topic."""
    begun_s, begun_cpu_s = time.monotonic(), time.process_time()
    channels: dict[str, Channel] = {}
    for messages in confluent_messages(bootstrap, topic, ends):
        if raw:
            continue
        for value in filter(None, (one.value() for one in messages)):
            message = SdsMessage.FromString(value)
            channel = channels.get(message.channel_id)
            if channel is None:
                channel = channels[message.channel_id] = Channel()
            channel.add(message)
    print_result(sum(ends.values()), begun_s, begun_cpu_s)


if __name__ == "__main__":
    main()
