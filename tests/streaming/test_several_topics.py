"""Several topics that a job reads as one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import Client, KafkaSettings, TopicMissing
from connectors.recording import load_recording
from streaming.failure import JobFailed
from tests.support.kafka import KafkaTopic, records
from tests.support.streaming.records import messages

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Topic = Callable[..., KafkaSettings]
Drain = Callable[..., dict[str, Any]]


def together(*topics: KafkaSettings) -> KafkaSettings:
    """Settings that read topics as one."""
    return replace(topics[0], topic=",".join(one.topic for one in topics))


def with_a_letter(channel: str, count: int) -> list[TopicRecord]:
    """Messages of one channel, and a record that is no frame."""
    written = messages(channel, count + 1)
    return [*written[:-1], replace(written[-1], value=b"no frame")]


def counts(report: dict[str, Any]) -> dict[str, int]:
    """Messages by channel."""
    return {name: one["messages"] for name, one in report["channels"].items()}


@pytest.mark.parametrize("client", Client)
def test_report_is_that_of_one_topic(
    topic: Topic, drain: Drain, client: Client
) -> None:
    """Whichever topic has a partition, and in batches of both."""
    recorded = load_recording()
    partitions = 1 + max(record.partition for record in recorded)
    assert partitions > 1
    whole, first, rest = topic(partitions), topic(1), topic(partitions - 1)
    write(recorded, whole)
    write([one for one in recorded if not one.partition], first)
    write(
        [
            replace(one, partition=one.partition - 1)
            for one in recorded
            if one.partition
        ],
        rest,
    )
    expected = drain(whole, "whole", report_detail=True)
    found = drain(
        together(first, rest), "both", report_detail=True, rows=700, client=client
    )
    assert expected["totals"]["messages"] == 282
    assert found == expected


def test_topic_made_anew_is_read_from_its_start_and_the_other_goes_on(
    topic: Topic, drain: Drain
) -> None:
    """With skip_lost; else the error names it."""
    kept, made_anew = topic(), topic()
    both = together(kept, made_anew)
    write(with_a_letter("kept", 5), kept)
    write(with_a_letter("old", 7), made_anew)
    assert counts(drain(both)) == {"kept": 5, "old": 7}
    KafkaTopic(made_anew).make_anew()
    write(with_a_letter("new", 3), made_anew)
    write(with_a_letter("later", 4), kept)
    with pytest.raises(JobFailed) as caught:
        drain(both)
    assert f"topic {made_anew.topic} was deleted and recreated" in str(caught.value)
    report = drain(both, skip_lost=True)
    assert counts(report) == {"kept": 5, "old": 7, "later": 4, "new": 3}
    sources = {
        dict(letter.headers)["dead-letter-source"].decode()
        for letter in records(replace(kept, topic=f"{kept.topic}.dead-letter"))
    }
    assert sources == {
        f"{kept.topic}:0:5",
        f"{kept.topic}:0:10",
        f"{made_anew.topic}:0:7",
        f"{made_anew.topic}:0:3",
    }


def test_topic_can_be_added_to_a_checkpoint(topic: Topic, drain: Drain) -> None:
    """Behind those that it has; none can be removed."""
    first, second = topic(), topic()
    write(with_a_letter("first", 5), first)
    write(with_a_letter("second", 6), second)
    assert counts(drain(first)) == {"first": 5}
    assert counts(drain(together(first, second))) == {"first": 5, "second": 6}
    for other in (first, second, together(second, first)):
        with pytest.raises(Exception, match=f"begun with topic {first.topic},"):
            drain(other)


def test_missing_topic_is_named(topic: Topic, drain: Drain) -> None:
    """Not the others."""
    first = topic()
    missing = replace(first, topic=f"{first.topic}-missing", timeout_s=3.0)
    with pytest.raises(TopicMissing, match=f"topic {missing.topic} does not exist"):
        drain(together(missing, first))
