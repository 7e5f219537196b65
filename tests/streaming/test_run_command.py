"""``sds-monitor run`` as an operator starts, queries and ends it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from tests.support.identities import assert_identities
from tests.support.kafka import free_port
from tests.support.streaming.command import is_ready, page_of, started
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def recorded(kafka: KafkaSettings) -> KafkaSettings:
    """Make the topic, and write the recording to it."""
    records = load_recording()
    ensure_frames_topic(kafka, partitions_of(records))
    write(records, kafka)
    return kafka


def test_run_serves_and_reports_at_its_end(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """SIGTERM gives exit code 0 and the report."""
    kafka = recorded(topic(partitions=0))
    with started(kafka, tmp_path) as process:
        url = page_of(process)
        wait_for(lambda: is_ready(url))
        wait_for(lambda: "sds_messages_total" in httpx.get(f"{url}metrics").text)
        wait_for(
            lambda: httpx.get(f"{url}api/v1/channels").json()["channel_count"] == 5
        )
        channel = httpx.get(f"{url}api/v1/channels").json()["channels"][0]["id"]
        address = f"{url}api/v1/verdicts"
        shown = wait_for(
            lambda: httpx.get(address, params={"channel": channel}).json()["verdicts"]
        )
        assert shown[-1]["to"] - shown[-1]["from"] >= 60_000
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert_identities(report)
    assert report["totals"]["messages"] == 282
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_run_serves_before_kafka_answers(tmp_path: Path) -> None:
    """Page and probe say for what it waits; exit code 3 after the timeout."""
    kafka = KafkaSettings("127.0.0.1:1", "frames")
    with started(kafka, tmp_path, "--kafka-timeout", "5") as process:
        url = page_of(process)
        wait_for(lambda: "Starting: waiting for Kafka" in httpx.get(url).text)
        ready = httpx.get(f"{url}readyz")
        assert ready.status_code == 503
        assert ready.text == "not ready: Kafka has not answered yet\n"
        assert "sds_monitor_ok 0" in httpx.get(f"{url}metrics").text
        assert process.wait(60) == 3
    last = (tmp_path / "stderr").read_text().strip().splitlines()[-1]
    assert last.startswith("sds-monitor: Kafka at 127.0.0.1:1 cannot be reached")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_wait_for_kafka_at_once(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The timeout would be two minutes."""
    with started(KafkaSettings("127.0.0.1:1", "frames"), tmp_path) as process:
        page_of(process)
        process.send_signal(number)
        assert process.wait(90) == 0
    assert (tmp_path / "stderr").read_text().strip() == ""


def test_signal_during_the_start_of_spark_leaves_no_process(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """Otherwise the JVM would wait for ever."""
    with started(topic(), tmp_path) as process:
        page_of(process)
        children = wait_for(lambda: psutil.Process(process.pid).children())
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
        _, alive = psutil.wait_procs(children, timeout=30)
        for child in alive:
            child.kill()
        assert alive == []
    assert "Exception" not in (tmp_path / "stderr").read_text()


def test_jvm_that_is_killed_is_one_line(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """Exit code 4: the supervisor starts it again, and nothing is lost."""
    kafka = recorded(topic(partitions=0))
    with started(kafka, tmp_path, "--no-history-topics") as process:
        url = page_of(process)
        wait_for(
            lambda: httpx.get(f"{url}api/v1/channels").json()["channel_count"] == 5
        )
        wait_for(lambda: jvm_of(process)).kill()
        assert process.wait(120) == 4
    lines = lines_of(tmp_path)
    assert lines[-1].startswith("sds-monitor: Spark's JVM ended by signal 9: start")
    assert "Traceback" not in "".join(lines)
    with started(kafka, tmp_path, "--until-caught-up") as process:
        assert process.wait(280) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["totals"]["messages"] == 282


def test_jvm_that_is_killed_while_it_starts_is_one_line(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """Before there is a session."""
    with started(topic(), tmp_path) as process:
        page_of(process)
        wait_for(lambda: jvm_of(process)).kill()
        assert process.wait(120) == 4
    assert lines_of(tmp_path)[-1].startswith("sds-monitor: Spark's JVM ended")
    assert "Traceback" not in "".join(lines_of(tmp_path))


def jvm_of(process: subprocess.Popen[str]) -> psutil.Process | None:
    """Spark's JVM, once there is one."""
    for child in psutil.Process(process.pid).children():
        # Not the one that is asked for its version.
        with suppress(psutil.Error):
            if "org.apache.spark.deploy.SparkSubmit" in child.cmdline():
                return child
    return None


def lines_of(directory: Path) -> list[str]:
    """What the command has written to standard error."""
    return (directory / "stderr").read_text().strip().splitlines()


def test_port_in_use_ends_it_before_anything_starts(tmp_path: Path) -> None:
    """Before the start of Spark and Kafka's answer."""
    kafka = KafkaSettings("127.0.0.1:1", "frames")
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        started(
            kafka, tmp_path, "--metrics-port", str(taken.getsockname()[1])
        ) as process,
    ):
        assert process.wait(60) == 2
    said = (tmp_path / "stderr").read_text()
    assert "is in use: choose another" in said
    assert len(said.splitlines()) == 1


def test_hangup_reloads_the_channel_table(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """Names change at once; an invalid table changes nothing and is logged."""
    kafka = recorded(topic(partitions=0))
    table = tmp_path / "channels.toml"
    table.write_text('[[channel]]\nmatch = "*"\nname = "Before"\n')
    flags = ("--channels", str(table), "--log-format", "json")
    with started(kafka, tmp_path, *flags) as process:
        url = page_of(process)

        def names() -> set[str]:
            found = httpx.get(f"{url}api/v1/channels").json()["channels"]
            return {channel["name"] for channel in found}

        wait_for(lambda: names() == {"Before"})
        table.write_text('[[channel]]\nmatch = "*"\nname = "After"\n')
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: names() == {"After"})
        table.write_text("[[channel]]\n")
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: "remains unchanged" in (tmp_path / "stderr").read_text())
        assert names() == {"After"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    lines = (tmp_path / "stderr").read_text().splitlines()
    told = [json.loads(line) for line in lines if line.startswith("{")]
    # The JVM's own greeting is no record of ours.
    assert len(lines) - len(told) <= 1
    messages = [one["message"] for one in told]
    assert "the channel table was read again: 1 entry" in messages
    assert any("lacks the key 'match'" in message for message in messages)
    last = next(one for one in reversed(told) if "records" in one)
    assert last["records"] == len(load_recording())
    assert sum(last["channels"].values()) == 5


@pytest.mark.long
def test_signal_ends_run_while_kafka_is_unreachable(tmp_path: Path) -> None:
    """SIGTERM gives exit code 0 and a report of what was read."""
    with EmbeddedBroker() as broker:
        kafka = recorded(KafkaSettings(broker.bootstrap, "frames"))
        # Kafka is waited for for two minutes, as without any flag.
        with started(kafka, tmp_path) as process:
            url = page_of(process)
            wait_for(
                lambda: httpx.get(f"{url}api/v1/channels").json()["channel_count"] == 5
            )
            broker.stop()
            # It waits in the middle of something: there is a second between two looks.
            time.sleep(3)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["totals"]["messages"] == 282


@pytest.mark.long
def test_run_survives_a_restart_of_the_broker(tmp_path: Path) -> None:
    """The job continues where it was."""
    records = load_recording()
    with EmbeddedBroker(tmp_path / "kafka", port=free_port()) as broker:
        kafka = KafkaSettings(broker.bootstrap, "frames")
        ensure_frames_topic(kafka, partitions_of(records))
        write(records[:900], kafka)
        with started(kafka, tmp_path) as process:
            url = page_of(process)

            def messages() -> int:
                return int(
                    sum(
                        channel["messages"]
                        for channel in httpx.get(f"{url}api/v1/channels").json()[
                            "channels"
                        ]
                    )
                )

            wait_for(lambda: messages() > 0)
            before = messages()
            broker.stop()
            time.sleep(3)
            broker.start()
            write(records[900:], kafka)
            wait_for(lambda: messages() == 282)
            assert before < 282
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 0
