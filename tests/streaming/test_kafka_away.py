"""``sds-monitor run`` while Kafka is away, and after it has come back.

`SDS_MONITOR_AWAY_SECONDS` sets how long it is away: by default 75 s, longer than a
silent topic may last before it makes channels blind. For at least 240 s, as in
``make away``, the query waits for Kafka as long as it does by default.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import TopicRecord, partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from tests.support.frames import FrameFactory, value_of
from tests.support.kafka import free_port
from tests.support.streaming.command import is_ready, page_of, started
from tests.support.waiting import wait_for

AWAY_S = float(os.environ.get("SDS_MONITOR_AWAY_SECONDS", "75"))
TIMEOUT = ("--kafka-timeout", "20") if AWAY_S < 240 else ()
LONG_S = 900 + 2 * AWAY_S

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(LONG_S),
]

SILENT = "Kafka has not answered since "


@dataclass
class Page:
    """What a monitor serves."""

    url: str

    def fleet(self) -> dict[str, Any]:
        """The figures as JSON."""
        found = httpx.get(f"{self.url}api/v1/channels").json()
        assert isinstance(found, dict)
        return found

    def messages(self) -> int:
        """Messages of all channels."""
        return sum(one["messages"] for one in self.fleet()["channels"])

    def verdicts(self) -> set[str]:
        """The verdicts of all channels."""
        return {one["verdict"] for one in self.fleet()["channels"]}

    def metric(self, name: str) -> float:
        """A metric without labels."""
        for line in httpx.get(f"{self.url}metrics").text.splitlines():
            series, _, value = line.rpartition(" ")
            if series == name:
                return float(value)
        pytest.fail(f"no {name}")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that can end and come back at the same address."""
    with EmbeddedBroker(tmp_path / "kafka", port=free_port()) as broker:
        yield broker


class Sender:
    """Writes messages of one participant that are stamped now."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._frames = FrameFactory("town")
        self.written = 0

    def write(self, count: int = 1) -> None:
        """Write messages; returns once Kafka has them."""
        now_ms = time.time_ns() // 1_000_000
        records = [
            TopicRecord(
                0,
                now_ms,
                b"town",
                value_of(self._frames.content(f"m{n}", "ana", now_ms + n)),
                (),
            )
            for n in range(self.written, self.written + count)
        ]
        write(records, self._kafka)
        self.written += count


@pytest.mark.long
def test_kafka_that_is_away_is_said_everywhere_until_it_is_back(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """Page, ok, lag, probe and log; afterwards every record has counted once."""
    kafka = KafkaSettings(broker.bootstrap, "frames")
    ensure_frames_topic(kafka, 1)
    sender = Sender(kafka)
    log = tmp_path / "stderr"
    with started(kafka, tmp_path, *TIMEOUT) as process:
        page = Page(page_of(process))

        def is_fine() -> bool:
            sender.write()
            time.sleep(0.5)
            return page.metric("sds_monitor_ok") == 1

        wait_for(lambda: is_ready(page.url))
        assert page.metric("sds_monitor_ok") == 0
        assert "Too early to say: no record has been read yet" in page_text(page)
        wait_for(is_fine, 240)
        assert "Everything is fine" in page_text(page)
        wait_for(lambda: page.metric("sds_monitor_records_behind") == 0)

        broker.stop()
        since_s = time.monotonic()
        wait_for(lambda: not is_ready(page.url), 60)
        assert time.monotonic() - since_s > 10
        assert SILENT in httpx.get(f"{page.url}readyz").text
        assert SILENT in page_text(page)
        assert page.metric("sds_monitor_ok") == 0
        before = page.metric("sds_monitor_event_time_lag_seconds")
        assert before > 15
        wait_for(lambda: SILENT in log.read_text(), 30)
        while (left_s := since_s + AWAY_S - time.monotonic()) > 0:
            assert process.poll() is None
            assert SILENT in page_text(page)
            assert page.metric("sds_monitor_ok") == 0
            assert "blind" not in page.verdicts()
            time.sleep(min(5, left_s))
        after = page.metric("sds_monitor_event_time_lag_seconds")
        assert after - before > (AWAY_S - 25) / 2
        wait_for(lambda: "the query restarts" in log.read_text())
        assert page.fleet()["job"]["retrying"]

        broker.start()
        back_s = time.monotonic()
        wait_for(lambda: is_ready(page.url))
        print(f"ready {time.monotonic() - back_s:.1f} s after Kafka")
        wait_for(is_fine, 240)
        wait_for(lambda: page.fleet()["job"]["records"] == sender.written)
        assert page.messages() == sender.written
        assert page.fleet()["job"]["restarts"] == 1
        assert "Kafka answers again after" in log.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert "Traceback" not in log.read_text()
    print(log.read_text())


def test_kafka_that_is_away_at_the_start_is_said_everywhere(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """Page, probe and log, with since when; the job starts when Kafka answers."""
    kafka = KafkaSettings(broker.bootstrap, "frames")
    ensure_frames_topic(kafka, 1)
    sender = Sender(kafka)
    sender.write(3)
    broker.stop()
    since = f"{SILENT}the start at "
    log = tmp_path / "stderr"
    with started(kafka, tmp_path) as process:
        page = Page(page_of(process))
        wait_for(lambda: "Starting: waiting for Kafka" in page_text(page))
        wait_for(lambda: since in page_text(page))
        assert since in httpx.get(f"{page.url}readyz").text
        assert page.metric("sds_monitor_ok") == 0
        wait_for(lambda: since in log.read_text())
        assert f"{kafka.bootstrap} cannot be reached" in log.read_text()
        broker.start()
        wait_for(lambda: page.messages() == sender.written, 240)
        wait_for(lambda: is_ready(page.url))
        assert "Kafka answers after" in log.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert "Traceback" not in log.read_text()


def page_text(page: Page) -> str:
    """The first page."""
    return httpx.get(page.url).text


@pytest.mark.long
def test_query_that_is_restarted_reads_every_record_once(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """Stopped in the midst of its batches; the figures are those of an undisturbed job.

    Spark's JVM goes on, and so does the process.
    """
    records = load_recording()
    kafka = KafkaSettings(broker.bootstrap, "frames")
    ensure_frames_topic(kafka, partitions_of(records))
    write(records[:900], kafka)
    log = tmp_path / "stderr"
    flags = ("--kafka-timeout", "3", "--max-batch-records", "150")
    with started(kafka, tmp_path, *flags) as process:
        page = Page(page_of(process))
        wait_for(lambda: page.messages() > 0)
        broker.stop()
        read = page.fleet()["job"]["records"]
        children = psutil.Process(process.pid).children()
        wait_for(lambda: "the query restarts when" in log.read_text())
        broker.start()
        write(records[900:], kafka)
        end_ms = max(record.timestamp_ms for record in records)
        wait_for(lambda: page.fleet()["clock"] == end_ms, 240)
        job = page.fleet()["job"]
        assert job["records"] == len(records) > read
        assert job["restarts"] >= 1
        assert set(children) <= set(psutil.Process(process.pid).children())
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    flags = ("--until-caught-up", "--no-history-topics")
    with started(kafka, undisturbed, *flags) as process:
        assert process.wait(240) == 0
    expected = json.loads((undisturbed / "report.json").read_text())
    assert report["channels"] == expected["channels"]
    assert report["totals"] == expected["totals"]
    assert "Traceback" not in log.read_text()


def test_signal_ends_a_job_that_waits_for_kafka_to_come_back(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """Exit code 0 and a report of what was read, although there is no query."""
    kafka = KafkaSettings(broker.bootstrap, "frames")
    ensure_frames_topic(kafka, 1)
    sender = Sender(kafka)
    sender.write(3)
    with started(kafka, tmp_path, "--kafka-timeout", "3") as process:
        page = Page(page_of(process))
        wait_for(lambda: page.fleet()["job"]["records"] == sender.written)
        broker.stop()
        log = tmp_path / "stderr"
        wait_for(lambda: "the query restarts when" in log.read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["totals"]["messages"] == sender.written
    assert "Traceback" not in log.read_text()


@pytest.mark.long
def test_kafka_that_stays_away_ends_the_job_when_the_operator_says(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """Exit code 3 after --kafka-timeout and --retry-for; the last line has its address.

    SIGTERM would have ended it at once.
    """
    kafka = KafkaSettings(broker.bootstrap, "frames")
    ensure_frames_topic(kafka, 1)
    flags = ("--kafka-timeout", "3", "--retry-for", "5")
    with started(kafka, tmp_path, *flags) as process:
        page = Page(page_of(process))
        wait_for(lambda: is_ready(page.url))
        broker.stop()
        assert process.wait(120) == 3
    last = (tmp_path / "stderr").read_text().strip().splitlines()[-1]
    assert last.startswith(f"sds-monitor: Kafka at {kafka.bootstrap} cannot be reached")
