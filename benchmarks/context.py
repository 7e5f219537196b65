"""What every row of the benchmarks gets: the broker, the data and the results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import click

from benchmarks.data import Shape, records_of
from benchmarks.results import Run
from benchmarks.topics import load, new_topic
from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaSettings


@dataclass
class Context:
    """A run in progress.

    Attributes:
        run: Gets the measures.
        stack: Stops the broker at the end of the run.
        directory: For files; deleted after the run.
        is_quick: Whether less data and one repetition are enough.
    """

    run: Run
    stack: ExitStack
    directory: Path
    is_quick: bool
    _topics: dict[str, KafkaSettings] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    @cached_property
    def broker(self) -> EmbeddedBroker:
        """Kafka, on the same machine; started when a row needs it."""
        return self.stack.enter_context(EmbeddedBroker(self.directory / "kafka"))

    @property
    def repeat(self) -> int:
        """Repetitions of what is compared by its ratio."""
        return 1 if self.is_quick else 3

    def loaded(self, name: str, *shapes: Shape) -> KafkaSettings:
        """Return a topic with the records of some shapes, which the row only reads."""
        if name not in self._topics:
            kafka = self.empty(name)
            click.echo(f"  writing the data set {name}", err=True)
            frames, size_bytes = load(kafka, records_of(*shapes))
            channels = sum(shape.channels for shape in shapes)
            mean_bytes = size_bytes // frames
            self.run.data[name] = (
                f"{channels:,} channels, {frames:,} frames of {mean_bytes:,} B"
            )
            self._topics[name] = kafka
        return self._topics[name]

    def empty(self, name: str) -> KafkaSettings:
        """Return a new empty topic."""
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        return new_topic(self.broker, f"{name}-{number}")

    def say(self, row: str, what: str, unit: str, value: float) -> None:
        """Add a value to the results, and print it."""
        self.run.add(row, what, unit, value)
        click.echo(f"  {what}: {value:,.4g} {unit}", err=True)


def ends_of(kafka: KafkaSettings) -> dict[int, int]:
    """Return the end offset of each partition of a topic."""
    offsets = TopicOffsets(kafka)
    try:
        return offsets.latest(offsets.partitions())
    finally:
        offsets.close()


Row = Callable[[Context], None]
"""Measures something."""
