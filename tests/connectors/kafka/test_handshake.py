"""What ends a handshake, and what is only a fault that passes, on real Kafka."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.kafka.handshake import check_admission
from connectors.kafka.settings import KafkaRefused
from tests.support.kafka import TopicMaker, free_port
from tests.support.proxy import network

pytestmark = pytest.mark.kafka

_FIRST_ANSWER_BYTES = 480
"""More than the answer to the first request (464 bytes), less than both (505)."""


@pytest.mark.parametrize("cuts", [1, 2])
def test_broker_that_stops_after_its_first_answer_requires_no_login(
    kafka_topic: TopicMaker, cuts: int
) -> None:
    """A broker that requires a login ends each connection so, not only one."""
    settings = kafka_topic(partitions=50).settings
    target = int(settings.bootstrap.rpartition(":")[2])
    with network(free_port(), target) as between:
        between.cut_after_bytes, between.most_cuts = _FIRST_ANSWER_BYTES, cuts
        cut = replace(settings, bootstrap=f"127.0.0.1:{between.port}")
        if cuts == 1:
            assert check_admission(cut) is None
        else:
            with pytest.raises(KafkaRefused, match="requires a login"):
                check_admission(cut)
    assert between.cuts == cuts
