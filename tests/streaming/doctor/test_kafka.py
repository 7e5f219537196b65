"""What is wrong with Kafka, each seen on a real broker where it is so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from streaming.cli.output import wall_ms
from streaming.doctor.kafka import check_kafka, check_topics
from streaming.position import PartitionPosition, Position
from streaming.settings import HistorySettings, JobSettings, SourceSettings
from tests.support.kafka import KafkaTopic, TopicMaker

pytestmark = pytest.mark.kafka

HOUR_MS = 3_600_000


def job_on(topic: KafkaTopic, checkpoint: Path, **others: Any) -> JobSettings:
    """A job without a history in topics, and with the group that it commits to."""
    return JobSettings(SourceSettings(topic.settings), checkpoint, **others)


def findings(settings: JobSettings, clock_ms: int = 0) -> dict[str, tuple[str, ...]]:
    """The findings of each check, by a clock that is so much ahead."""
    checks = check_kafka(
        settings, lambda: wall_ms() + clock_ms, writes_heartbeats=False
    )
    return {check: found for check, found in checks if found}


def write_checkpoint(checkpoint: Path, position: Position) -> None:
    """Write what Spark logs of a batch that is finished."""
    plan = {"batchWatermarkMs": 0, "conf": {"spark.sql.shuffle.partitions": "1"}}
    lines = ["v1", json.dumps(plan), json.dumps(position.to_json())]
    for name, text in (("offsets", lines), ("commits", ["v1", "{}"])):
        (checkpoint / name).mkdir(parents=True)
        (checkpoint / name / "0").write_text("\n".join(text))


def test_fine_topics_have_no_findings(kafka_topic: TopicMaker, tmp_path: Path) -> None:
    """Those of the job that it has yet to create are none either."""
    history = HistorySettings(tmp_path / "history")
    assert findings(job_on(kafka_topic(), tmp_path, history=history)) == {}


def test_settings_that_cost_records_or_times_are_found(
    kafka_topic: TopicMaker, tmp_path: Path
) -> None:
    """Each says what to set; the dead-letter topic is smaller than that of frames."""
    frames = kafka_topic(
        configuration={
            "message.timestamp.type": "LogAppendTime",
            "cleanup.policy": "compact,delete",
            "retention.ms": str(HOUR_MS),
        }
    )
    letters = kafka_topic(configuration={"max.message.bytes": "1000000"}).settings.topic
    job = job_on(frames, tmp_path, dead_letter_topic=letters)
    name = frames.settings.topic
    assert check_topics(job, writes_heartbeats=False).findings == (
        f"topic {name} has message.timestamp.type=LogAppendTime, so every figure has "
        "Kafka's time and not that of taps: set CreateTime",
        f"topic {name} is compacted, so it keeps only the newest frame of a channel: "
        "set cleanup.policy=delete",
        f"topic {name} keeps records for 1.0 h, and a job that is stopped for longer "
        "loses records: set retention.ms to a day or more",
        f"topic {letters} takes 1,000,000 bytes, and the topic of frames 33,554,432, "
        f"so larger dead letters are cut: set max.message.bytes of {letters} to "
        "33554432",
    )


def test_missing_topic_is_found(kafka_broker: EmbeddedBroker, tmp_path: Path) -> None:
    """With what creates it."""
    kafka = KafkaSettings(kafka_broker.bootstrap, "none")
    found = findings(JobSettings(SourceSettings(kafka), tmp_path))
    assert "topic none does not exist" in found["topics"][0]


def test_unread_records_that_are_gone_or_soon_go_are_found(
    kafka_topic: TopicMaker, tmp_path: Path
) -> None:
    """So is another topic of the name; a checkpoint that has read all is fine."""
    now_ms = wall_ms()
    topic = kafka_topic(configuration={"retention.ms": str(48 * HOUR_MS)})
    for n in range(3):
        topic.write(str(n).encode(), time_ms=now_ms)

    def found(name: str, offset: int, **position: Any) -> tuple[str, ...]:
        read = {0: PartitionPosition(offset)}
        write_checkpoint(tmp_path / name, Position(partitions=read, **position))
        return findings(job_on(topic, tmp_path / name)).get("unread records", ())

    old_ms = now_ms - 36 * HOUR_MS
    assert found("fine", 1, clock_ms=now_ms) == ()
    assert found("all read", 3, clock_ms=old_ms) == ()
    (soon,) = found("behind", 1, clock_ms=old_ms)
    assert "36.0 h behind" in soon
    assert "keeps records for 48.0 h: start the job soon" in soon
    topic.delete_before(2)
    (gone,) = found("gone", 1, clock_ms=now_ms)
    assert "no longer has the unread offsets 1 to 1, because" in gone
    (other,) = found("other", 1, topic_id="another")
    assert "was deleted and recreated" in other


def test_wrong_clock_is_found(kafka_topic: TopicMaker, tmp_path: Path) -> None:
    """By Kafka's answer, in either direction."""
    job = job_on(kafka_topic(), tmp_path)
    (fast,) = findings(job, 60_000)["clock"]
    assert "ahead of Kafka's: set both clocks by NTP" in fast
    (slow,) = findings(job, -60_000)["clock"]
    assert "behind Kafka's: set both clocks by NTP" in slow
