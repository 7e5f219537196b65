"""Event time on real Kafka and Spark: outages, silence, idle channels."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import load_scenario
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.tap_kind import TAPS
from sds_core.simulation.truth import Truth
from streaming.job import Job
from tests.support.frames import FrameFactory, value_of
from tests.support.kafka import records
from tests.support.streaming.jobs import JobRunner, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Topic = Callable[..., KafkaSettings]
Live = Callable[..., Any]

T0 = 1_768_478_430_000
DEADLINE_MS = 120_000
HOUR_MS = 3_600_000
PARTITIONS = 2


def a_record(
    channel: str,
    sender: str,
    time_ms: int,
    partition: int = 0,
) -> TopicRecord:
    """A content message named for its channel, sender and time."""
    frame = FrameFactory(channel).content(
        f"{channel}-{sender}-{time_ms}", sender, time_ms
    )
    return TopicRecord(partition, time_ms, channel.encode(), value_of(frame), ())


def heartbeats(time_ms: int) -> list[TopicRecord]:
    """A heartbeat of one tap on every partition."""
    headers = (("kind", b"heartbeat"), ("observer", b"tap"), ("seq", b"0"))
    return [
        TopicRecord(partition, time_ms, None, b"", headers)
        for partition in range(PARTITIONS)
    ]


def wait_until_fired(job: Job, time_ms: int) -> None:
    """Wait until every deadline before an event time has fired."""
    wait_until(job, lambda: job.progress.fired_ms >= time_ms)


def test_records_from_the_future_are_counted_before_any_other(
    topic: Topic, drain: JobRunner
) -> None:
    """On a new checkpoint there is no clock yet, but the dead letters are there."""
    kafka = topic()
    future_ms = time.time_ns() // 1_000_000 + HOUR_MS // 2
    write([a_record("town", "ana", future_ms + n) for n in range(3)], kafka)
    assert drain(kafka)["totals"]["undecodable"] == {"future_timestamp": 3}
    dead = dataclasses.replace(kafka, topic=f"{kafka.topic}.dead-letter")
    assert len(records(dead)) == 3


@pytest.mark.slow
def test_outage_of_the_job_changes_no_figure(topic: Topic, drain: JobRunner) -> None:
    """Catching up in small batches gives the figures of a job that never stopped."""
    clean = load_scenario("clean")
    (channel,) = clean.channels
    traffic = replace(channel.traffic, mean_interval_s=30.0)
    scenario = replace(
        clean,
        duration_s=HOUR_MS / 1000 + 300,
        channels=(replace(channel, count=1, traffic=traffic),),
    )
    records = list(simulated_records(scenario, 1, T0, PARTITIONS, Truth("clean", 1)))
    stop = next(
        i for i, record in enumerate(records) if record.timestamp_ms >= T0 + 300_000
    )
    before, outage = records[:stop], records[stop:]
    assert outage[-1].timestamp_ms - before[-1].timestamp_ms >= HOUR_MS
    kafka = topic(PARTITIONS)
    write(before, kafka)
    # Acknowledgements of these come while the job is away.
    assert drain(kafka, "stopped")["totals"]["in_flight"]
    write(outage, kafka)
    report = drain(kafka, "stopped", rows=len(outage) // 5)
    assert report == drain(kafka, "steady")
    for figures in report["channels"].values():
        assert figures["verdict"] == "ok"
        assert figures["messages"] > figures["unacknowledged"] == 0
        outcomes = [value for value in figures.values() if isinstance(value, dict)]
        assert [value["lost"] for value in outcomes if value.get("lost")] == []


def other_channels(time_ms: int) -> list[TopicRecord]:
    """A message of a channel in the same partition, and one in the other."""
    return [
        a_record("village", "vera", time_ms),
        a_record("hamlet", "hugo", time_ms, partition=1),
    ]


@pytest.mark.parametrize(
    ("opportunity", "outcome", "goes_on"),
    [(False, "unwitnessed", other_channels), (True, "unacknowledged", heartbeats)],
)
def test_silent_channel_reaches_its_deadline_after_a_restart(
    topic: Topic,
    drain: JobRunner,
    opportunity: bool,
    outcome: str,
    goes_on: Callable[[int], list[TopicRecord]],
) -> None:
    """Without any new record of it, and not too early."""
    kafka = topic(PARTITIONS)
    records = [a_record("town", "ana", T0)]
    if opportunity:
        # Ben has not seen Ana's message. His own is the last, and never witnessed.
        records.append(a_record("town", "ben", T0 + 1_000))
    write(records, kafka)
    assert drain(kafka)["channels"]["town"]["in_flight"] == 1 + opportunity
    write(goes_on(T0 + DEADLINE_MS), kafka)
    town = drain(kafka)["channels"]["town"]
    assert (town["in_flight"], town[outcome]) == (1 + opportunity, 0)
    write(goes_on(T0 + DEADLINE_MS + 1), kafka)
    town = drain(kafka)["channels"]["town"]
    assert (town["in_flight"], town[outcome]) == (int(opportunity), 1)


def test_idle_channel_is_not_called_again(
    topic: Topic, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a pending deadline it costs nothing, however far the clock moves."""
    kafka = topic(PARTITIONS)
    town, tap = CHANNELS.key("town"), TAPS.key("tap")
    called: list[str] = []
    with live(kafka) as job:
        read = job.board.read

        def note(packed: Mapping[str, bytes]) -> Any:
            called.extend(packed)
            return read(packed)

        monkeypatch.setattr(job.board, "read", note)
        write([a_record("town", "ana", T0), *heartbeats(T0)], kafka)
        wait_until_fired(job, T0)
        for hours, expected in ((1, {town, tap}), (2, {tap}), (3, {tap})):
            called.clear()
            write(heartbeats(T0 + hours * HOUR_MS), kafka)
            wait_until_fired(job, T0 + hours * HOUR_MS)
            assert set(called) == expected
        assert job.board.snapshot.views["sds"].totals["town"].unwitnessed == 1
