"""Whether a query works or waits for Kafka, on real Kafka and real Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from tests.support.kafka import free_port, refused_sockets_stay_open
from tests.support.streaming.jobs import wait_until
from tests.support.streaming.records import T0, a_frame, produce

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

Live = Callable[..., Any]


@refused_sockets_stay_open
def test_query_works_while_it_waits_for_records_and_not_while_it_waits_for_kafka(
    live: Live, tmp_path: Path
) -> None:
    """A quiet topic must not look like Kafka that is away, nor the other way round."""
    with EmbeddedBroker(tmp_path / "kafka", port=free_port()) as broker:
        kafka = KafkaSettings(broker.bootstrap, "frames", timeout_s=120)
        ensure_frames_topic(kafka, 1)
        produce(kafka, {"value": a_frame("0x1"), "timestamp_ms": T0})
        with live(kafka) as job:
            wait_until(job, lambda: job.progress.batches > 0, 240)
            read = job.progress.batches

            def is_idle() -> bool:
                nonlocal read
                before, read = read, job.progress.batches
                return before == read and job.progress.works

            wait_until(job, is_idle, 240)
            broker.stop()
            works: list[bool] = []

            def waits_for_kafka() -> bool:
                works.append(job.progress.works)
                return len(works) > 5 and not any(works[-5:])

            wait_until(job, waits_for_kafka, 100)
            broker.start()
            wait_until(job, is_idle, 240)
