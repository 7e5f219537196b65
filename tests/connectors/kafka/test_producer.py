"""Writing many records, on real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.kafka.producer import Acknowledgements, TopicRecord, write
from tests.support.kafka import TopicMaker

pytestmark = pytest.mark.kafka

_COUNT = 2_000
_VALUE = bytes(50_000)


def test_long_file_does_not_fill_the_memory(kafka_topic: TopicMaker) -> None:
    """The writer requests the next record only if few records wait for Kafka."""
    acknowledged, most_waiting = Acknowledgements(), 0

    def records() -> Iterator[TopicRecord]:
        nonlocal most_waiting
        for number in range(_COUNT):
            most_waiting = max(most_waiting, number - acknowledged.count)
            yield TopicRecord(0, 1_700_000_000_000, b"channel", _VALUE, ())

    written = write(records(), kafka_topic().settings, acknowledged=acknowledged)
    assert written == _COUNT
    assert most_waiting * len(_VALUE) < 20_000_000
