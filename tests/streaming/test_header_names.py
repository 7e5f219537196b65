"""A job meets records with a header name that is not UTF-8, on real Kafka and Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connectors.kafka.settings import Client, KafkaSettings
from sds_core.wire import Dialect, Frame, encode
from tests.support.kafka import KafkaTopic, records
from tests.support.streaming.jobs import wait_for_end

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

T0 = 1_768_478_430_000
BAD = ((b"observer", b"tap"), (b"\xff", b""), (b"seq", b"2"))


def frame(message_id: str) -> bytes:
    """Return a content frame of a channel."""
    return encode(
        Frame.build(
            Dialect.SPEC,
            message_id=message_id,
            channel_id="town",
            sender_id="ana",
            lamport=T0,
            content=b"hello",
        )
    )


@pytest.mark.parametrize("client", Client)
def test_record_is_one_dead_letter_and_the_job_goes_on(
    topic: Callable[..., KafkaSettings],
    live: Callable[..., Any],
    client: Client,
) -> None:
    """Records before and after it count, its tap misses nothing, and so at restarts."""
    kafka = topic()
    frames = KafkaTopic(kafka)
    tap = ("observer", b"tap")
    frames.write(frame("a"), time_ms=T0, headers=[tap, ("seq", b"1")])
    frames.write_names(*BAD, value=frame("b"), time_ms=T0 + 1, key=b"town")
    frames.write(frame("c"), time_ms=T0 + 2, headers=[tap, ("seq", b"3")])
    with live(kafka, client=client, until_caught_up=True) as job:
        wait_for_end(job)
        snapshot = job.board.snapshot
    assert snapshot.views["sds"].totals["town"].messages == 2
    assert snapshot.undecodable == {"bad_header": 1}
    assert snapshot.taps["tap"].missing_records == 0
    (letter,) = records(KafkaSettings(kafka.bootstrap, f"{kafka.topic}.dead-letter"))
    assert letter[2:5] == (T0 + 1, b"town", frame("b"))
    assert dict(letter.headers)["dead-letter-reason"] == b"bad_header"
    frames.write(frame("d"), time_ms=T0 + 3, headers=[tap, ("seq", b"4")])
    with live(kafka, client=client, until_caught_up=True) as job:
        wait_for_end(job)
        snapshot = job.board.snapshot
    assert snapshot.views["sds"].totals["town"].messages == 3
    assert snapshot.undecodable == {"bad_header": 1}
