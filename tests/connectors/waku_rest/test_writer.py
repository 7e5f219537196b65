"""From the spool to real Kafka: in order and in the record format."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings, KafkaUnreachable
from connectors.waku_rest.spool import Spooled
from connectors.waku_rest.writer import FrameWriter
from sds_core.observer.record import RawRecord
from tests.support.kafka import (
    NOBODY,
    TIMEOUT_S,
    TopicMaker,
    free_port,
    records,
    refused_sockets_stay_open,
)
from tests.support.waku_rest.topic import header, is_frame, seqs

pytestmark = pytest.mark.kafka


@contextmanager
def writing(kafka: KafkaSettings, partitions: int = 3) -> Iterator[FrameWriter]:
    """A writer, closed in the end."""
    writer = FrameWriter(kafka, partitions, "tap")
    try:
        yield writer
    finally:
        writer.close()


def frame(seq: int, channel: bytes | None) -> Spooled:
    """A frame that waits."""
    headers = (("source", b"relay"), ("meta", b"\xff\x00"))
    return Spooled(seq, 1_000 + seq, seq, channel, b"frame %d" % seq, headers)


def heartbeat(seq: int, at_ms: int) -> Spooled:
    """A heartbeat that waits."""
    return Spooled(0, at_ms, seq, None, b"", ())


def test_records_follow_the_record_format(kafka_topic: TopicMaker) -> None:
    """Channels keep partition and order; heartbeats go to every partition."""
    kafka = kafka_topic(3).settings
    channels = [b"town", b"village", None, b"hamlet", b"\xff"]
    frames = [frame(n, channels[n % len(channels)]) for n in range(1, 41)]
    with writing(kafka) as writer:
        writer.write([*frames[:20], heartbeat(20, 1_020), *frames[20:]])
        writer.write([heartbeat(40, 1_050)])
    found = records(kafka)
    assert seqs(found) == list(range(1, 41))
    by_key: dict[bytes | None, list[RawRecord]] = {}
    for record in filter(is_frame, found):
        by_key.setdefault(record.key or None, []).append(record)
    for key, some in by_key.items():
        if key is not None:
            assert len({one.partition for one in some}) == 1
            assert [one.timestamp_ms for one in some] == [
                one.at_ms for one in frames if one.key == key
            ]
    (first,) = (one for one in found if one.value == b"frame 6")
    assert first.timestamp_ms == 1_006
    assert list(first.headers) == [
        ("observer", b"tap"),
        ("seq", b"6"),
        ("source", b"relay"),
        ("meta", b"\xff\x00"),
    ]
    for partition in range(3):
        some = [one for one in found if one.partition == partition]
        beats = [one for one in some if not is_frame(one)]
        assert [header(one, "seq") for one in beats] == ["20", "40"]
        assert [one.timestamp_ms for one in beats] == [1_020, 1_050]
        assert {header(one, "observer") for one in beats} == {"tap"}
        before = some[: some.index(beats[0])]
        assert all(int(header(one, "seq")) <= 20 for one in before)
        assert some[-1] == beats[1]


def test_missing_topic_is_created(kafka_topic: TopicMaker) -> None:
    """With the requested partitions; an existing topic is not changed."""
    there = kafka_topic(1).settings
    missing = replace(there, topic=f"{there.topic}.new")
    for kafka, partitions in ((missing, 5), (there, 1)):
        with writing(kafka, partitions=5) as writer:
            writer.write([heartbeat(0, 1_000)])
        assert len({one.partition for one in records(kafka)}) == partitions


@refused_sockets_stay_open
def test_unreachable_kafka_is_reported_and_found_again(kafka_topic: TopicMaker) -> None:
    """The same writer continues."""
    kafka = kafka_topic(1).settings
    with writing(NOBODY) as writer:
        with pytest.raises(KafkaUnreachable, match="cannot be reached"):
            writer.write([frame(1, b"town")])
        writer._kafka = kafka  # noqa: SLF001 - as if it had come up at that address
        writer.write([frame(1, b"town")])
    assert seqs(records(kafka)) == [1]


@refused_sockets_stay_open
def test_writer_survives_the_end_of_the_broker(tmp_path: Path) -> None:
    """Unacknowledged records are written again by the same writer."""
    with EmbeddedBroker(tmp_path, port=free_port()) as broker:
        kafka = KafkaSettings(broker.bootstrap, timeout_s=2.0)
        large = [
            frame(seq, b"town")._replace(value=bytes(100_000)) for seq in range(1, 200)
        ]
        with writing(kafka) as writer:
            writer.write(large[:1])
            broker.stop()
            with pytest.raises(KafkaUnreachable):
                writer.write(large)
            assert not [
                one for one in threading.enumerate() if "producer" in one.name.lower()
            ]
            broker.start()
            write_again = Retrying(
                retry=retry_if_exception_type(KafkaUnreachable),
                stop=stop_after_delay(TIMEOUT_S),
            )
            write_again(writer.write, large)
        found = records(kafka)
    assert sorted(set(seqs(found))) == list(range(1, 200))


def test_refused_record_does_not_block_others(kafka_topic: TopicMaker) -> None:
    """It is returned with the reason."""
    kafka = kafka_topic(2, {"max.message.bytes": "1000000"}).settings
    now_ms = time.time_ns() // 1_000_000
    waiting = [
        frame(seq, b"channel-%d" % (seq % 3))._replace(at_ms=now_ms)
        for seq in range(1, 21)
    ]
    waiting[2] = waiting[2]._replace(value=bytes(1_500_000))
    waiting[9] = waiting[9]._replace(at_ms=now_ms + 2 * 3_600_000)
    waiting[14] = waiting[14]._replace(value=bytes(40_000_000))
    with writing(kafka) as writer:
        refused = writer.write(waiting)
        assert writer.write([frame(21, b"town")]) == {}
    assert {one.seq for one in refused} == {3, 10, 15}
    assert set(seqs(records(kafka))) == set(range(1, 22)) - {3, 10, 15}
