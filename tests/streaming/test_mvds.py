"""SDS and MVDS in one topic, in one job: recorded traffic of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connectors.kafka.producer import TopicRecord, partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from sds_core.mvds.payload import decode
from tests.support.monitor import report_of
from tests.support.mvds.recordings import payloads, topic_records, truth
from tests.support.streaming.jobs import JobRunner

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

RECORDING = "interactive"


@pytest.fixture
def records() -> list[TopicRecord]:
    """The recordings of both protocols, in the same minutes, in order of time."""
    sds = load_recording()
    mvds = topic_records(RECORDING, partitions_of(sds), sds[0].timestamp_ms)
    return sorted([*sds, *mvds], key=lambda record: record.timestamp_ms)


def _written(records: list[TopicRecord], kafka: KafkaSettings) -> None:
    ensure_frames_topic(kafka, partitions_of(load_recording()))
    write(records, kafka)


def _without_job(report: dict[str, Any]) -> dict[str, Any]:
    return {name: report[name] for name in ("channels", "totals", "views")}


def test_topic_of_both_protocols_is_monitored_in_one_job(
    records: list[TopicRecord], topic: Callable[..., KafkaSettings], drain: JobRunner
) -> None:
    """SDS is found as ever, and of MVDS what really happened."""
    kafka = topic(partitions=0)
    _written(records, kafka)
    report = drain(kafka)
    assert report["channels"] == report_of(records)["channels"]
    assert report["totals"]["messages"] == 282
    found = truth(RECORDING)
    groups = report["views"]["mvds"]["views"]
    (name,) = {one.group_id[:8].hex() for one in found.messages.values()}
    assert groups.keys() == {name, "unknown"}
    acknowledged = {
        (key, one.sender)
        for one in payloads(RECORDING)
        for key in decode(one.value).acks
    }
    assert groups[name]["messages"] == len(found.messages)
    assert groups[name]["deliveries"] == len(acknowledged)
    values = [one.value for one in payloads(RECORDING)]
    assert groups["unknown"]["payloads"]["all"] == len(values)
    assert groups["unknown"]["payloads"]["empty"] == values.count(b"")
    bytes_ = report["views"]["mvds"]["totals"]["bytes"]
    assert sum(bytes_.values()) == sum(map(len, values))


def test_mixed_batches_and_a_restart_change_no_figure(
    records: list[TopicRecord], topic: Callable[..., KafkaSettings], drain: JobRunner
) -> None:
    """Every record counts once, however the topic is cut."""
    kafka = topic(partitions=0)
    half = len(records) // 2
    _written(records[:half], kafka)
    drain(kafka, "cut", rows=700)
    write(records[half:], kafka)
    cut = drain(kafka, "cut", rows=1_100)
    assert _without_job(cut) == _without_job(drain(kafka, "whole"))
