"""What ends a handshake, and what is only a fault that passes, on real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from connectors.kafka.handshake import check_admission
from connectors.kafka.settings import KafkaRefused, KafkaSettings
from tests.support.kafka import TopicMaker, free_port
from tests.support.proxy import Network, network

pytestmark = pytest.mark.kafka

_FIRST_ANSWER_BYTES = 480
"""More than the answer to the first request (464 bytes), less than both (505)."""


def test_broker_that_closes_one_connection_requires_no_login(
    kafka_topic: TopicMaker,
) -> None:
    """A broker that stops does so after any of its answers."""
    with _cutting(kafka_topic().settings, 1) as (cut, between):
        assert check_admission(cut) is None
    assert between.cuts == 1


def test_broker_that_closes_each_connection_requires_a_login(
    kafka_topic: TopicMaker,
) -> None:
    """As Kafka does for clients without a login."""
    with (
        _cutting(kafka_topic().settings, 2) as (cut, between),
        pytest.raises(KafkaRefused, match="requires a login"),
    ):
        check_admission(cut)
    assert between.cuts == 2


@contextmanager
def _cutting(
    settings: KafkaSettings, cuts: int
) -> Iterator[tuple[KafkaSettings, Network]]:
    """A network that ends some connections after the broker's first answer."""
    target = int(settings.bootstrap.rpartition(":")[2])
    with network(free_port(), target) as between:
        between.cut_after_bytes, between.most_cuts = _FIRST_ANSWER_BYTES, cuts
        yield replace(settings, bootstrap=f"127.0.0.1:{between.port}"), between
