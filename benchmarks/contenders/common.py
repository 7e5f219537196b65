"""What all contenders share: their options, and the line that they print."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

from connectors.kafka.settings import MAX_MESSAGE_BYTES


def _ends(_: click.Context, __: click.Parameter, value: str) -> dict[int, int]:
    return {int(p): end for p, end in json.loads(value).items()}


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what to read."""
    for option in (
        click.option("--bootstrap", required=True),
        click.option("--topic", required=True),
        click.option(
            "--ends",
            required=True,
            callback=_ends,
            help="JSON object: end offset by partition. Offsets begin at 0.",
        ),
    ):
        command = option(command)
    return command


def print_result(records: int, begun_s: float, begun_cpu_s: float) -> None:
    """Print the result as a line of JSON.

    Args:
        records: Records read.
        begun_s: `time.monotonic` before the first.
        begun_cpu_s: `time.process_time` before the first.
    """
    result = {
        "records": records,
        "seconds": time.monotonic() - begun_s,
        "cpu_s": time.process_time() - begun_cpu_s,
    }
    click.echo(json.dumps(result))


def confluent_messages(
    bootstrap: str, topic: str, ends: dict[int, int]
) -> Iterator[list[Any]]:
    """Yield all messages of a topic with confluent-kafka, some at a time."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "benchmarks",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": MAX_MESSAGE_BYTES,
            # The defaults stall long reads of small messages (docs/architecture.md).
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in ends])
    left = sum(ends.values())
    while left:
        # Returns what has come after a tenth of a second, or 1,000 messages.
        messages = consumer.consume(min(1_000, left), 0.1)
        left -= len(messages)
        yield messages
    consumer.close()
