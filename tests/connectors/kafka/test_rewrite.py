"""Where records go when they are written again."""

from __future__ import annotations

import pytest

from connectors.kafka.producer import target_partition
from sds_core.observer.record import RawRecord


@pytest.mark.parametrize(
    ("partition", "key", "partitions", "expected"),
    [
        (1, b"town", 2, 1),
        (2, b"21", 1_000, 2),
        (5, None, 3, 2),
        # Of Kafka's own tests of its hash: -973932308.
        (1_000, b"21", 1_000, 340),
    ],
)
def test_partition_is_kept_or_follows_from_the_key(
    partition: int, key: bytes | None, partitions: int, expected: int
) -> None:
    """As Kafka's producers choose; records without key stay spread."""
    record = RawRecord(partition, 0, 0, key, b"", ())
    assert target_partition(record, partitions) == expected
