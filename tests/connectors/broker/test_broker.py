"""The embedded broker, on real processes of real Kafka."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from connectors.broker import broker as broker_module
from connectors.broker.broker import EmbeddedBroker
from connectors.broker.configuration import Ports
from connectors.broker.errors import BrokerStartFailed, DataDirInUse, PortUnavailable
from connectors.broker.jars import (
    BrokerJarsUnavailable,
    default_cache_dir,
    ensure_broker_jars,
    pinned_checksums,
)
from connectors.broker.processes import end_left_over_brokers
from connectors.java import JavaMissing, find_java
from connectors.kafka.settings import MAX_MESSAGE_BYTES
from tests.support.cli.command import sds_monitor

pytestmark = pytest.mark.kafka

_REPOSITORY = Path(__file__).parents[3]

_PROGRAM_WITH_A_BROKER = """
import sys, time
from pathlib import Path
from connectors.broker.broker import EmbeddedBroker

with EmbeddedBroker(Path(sys.argv[1]) if sys.argv[1:] else None) as broker:
    print(broker.pid, broker.bootstrap, broker.data_dir, flush=True)
    sys.stdin.read()
"""


class Program:
    """Another program that runs an embedded broker until its input is closed."""

    def __init__(self, data_dir: Path | None) -> None:
        arguments = [] if data_dir is None else [str(data_dir)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM_WITH_A_BROKER, *arguments],
            cwd=_REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        pid, self.bootstrap, path = self._process.stdout.readline().split()
        self.broker = psutil.Process(int(pid))
        self.data_dir = Path(path)

    def kill(self) -> None:
        """End the program so that it cannot stop its broker."""
        self._process.kill()
        self._process.communicate()

    def end(self) -> None:
        """Let the program end by itself; it may be dead already."""
        self._process.communicate()


@pytest.fixture
def program() -> Iterator[Callable[[Path | None], Program]]:
    """Start programs with brokers; none of them outlives the test."""
    programs: list[Program] = []

    def start(data_dir: Path | None = None) -> Program:
        programs.append(Program(data_dir))
        return programs[-1]

    yield start
    for started in programs:
        started.end()
    end_left_over_brokers()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Share one broker among the tests that leave it running."""
    with EmbeddedBroker() as broker:
        yield broker


def create_topic(bootstrap: str, topic: str) -> None:
    """Create a topic of one partition."""
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])


def produce(bootstrap: str, topic: str, value: bytes) -> None:
    """Write one record and wait until the broker has it."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        max_request_size=MAX_MESSAGE_BYTES,
        max_block_ms=2_000,
    )
    try:
        producer.send(topic, value).get(timeout=30)
    finally:
        producer.close()


def read_values(bootstrap: str, topic: str) -> list[bytes]:
    """Read all values of a topic of one partition."""
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    try:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        values: list[bytes] = []
        while consumer.position(partition) < end:
            polled = consumer.poll(timeout_ms=1_000)
            values += [record.value for record in polled.get(partition, [])]
        return values
    finally:
        consumer.close()


def has_ended(process: psutil.Process) -> bool:
    """Tell whether a process is gone, or dead and only waiting to be reaped."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_broker_returns_the_record_that_was_produced(broker: EmbeddedBroker) -> None:
    """A record that was produced is consumed unchanged."""
    create_topic(broker.bootstrap, "served")
    produce(broker.bootstrap, "served", b"frame")
    assert read_values(broker.bootstrap, "served") == [b"frame"]


def test_record_far_above_the_default_limit_is_accepted(broker: EmbeddedBroker) -> None:
    """A record has 4 MiB; Kafka's default would refuse it."""
    create_topic(broker.bootstrap, "large")
    value = bytes(4 * 1024 * 1024)
    produce(broker.bootstrap, "large", value)
    assert read_values(broker.bootstrap, "large") == [value]


def test_consumer_group_keeps_its_offset(broker: EmbeddedBroker) -> None:
    """A committed offset is found by the next member of the group."""
    create_topic(broker.bootstrap, "grouped")
    produce(broker.bootstrap, "grouped", b"read once")
    polled: list[int] = []
    for _ in range(2):
        consumer = KafkaConsumer(
            "grouped",
            bootstrap_servers=broker.bootstrap,
            group_id="group",
            auto_offset_reset="earliest",
            consumer_timeout_ms=2_000,
        )
        polled.append(sum(1 for _ in consumer))
        consumer.commit()
        consumer.close()
    assert polled == [1, 0]


def test_misspelt_topic_is_not_created(broker: EmbeddedBroker) -> None:
    """A record for a topic nobody created is refused."""
    with pytest.raises(KafkaError):
        produce(broker.bootstrap, "no-such-topic", b"frame")
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        assert "no-such-topic" not in admin.list_topics()


def test_data_survive_a_restart(tmp_path: Path) -> None:
    """The same directory brings the topics back, on other ports, in any path."""
    data_dir = tmp_path / "with, comma and space"
    with EmbeddedBroker(data_dir) as broker:
        create_topic(broker.bootstrap, "kept")
        produce(broker.bootstrap, "kept", b"frame")
    with EmbeddedBroker(data_dir) as broker:
        assert read_values(broker.bootstrap, "kept") == [b"frame"]


def test_stop_leaves_nothing_behind() -> None:
    """The process and the temporary directory are gone."""
    broker = EmbeddedBroker()
    broker.start()
    process, data_dir = psutil.Process(broker.pid), broker.data_dir
    broker.stop()
    assert has_ended(process)
    assert not data_dir.exists()
    broker.stop()


def test_forgotten_broker_ends_with_its_program_but_not_with_a_fork_of_it() -> None:
    """Only the process that started a broker stops it at exit."""
    code = """
import os, sys
from connectors.broker.broker import EmbeddedBroker

broker = EmbeddedBroker()
broker.start()
fork = os.fork()
if fork == 0:
    sys.exit()
os.waitpid(fork, 0)
print(broker.pid, broker.wait(timeout_s=0.5))
"""
    program = subprocess.run(
        [sys.executable, "-c", code],
        cwd=_REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    pid, exit_code_after_fork = program.stdout.split()
    assert exit_code_after_fork == "None"
    assert not psutil.pid_exists(int(pid))


def test_libraries_of_a_killed_broker_are_removed_by_its_next_start(
    tmp_path: Path,
) -> None:
    """It unpacks them when it meets a codec, and deletes them only if it can end."""
    with EmbeddedBroker(tmp_path) as broker:
        create_topic(broker.bootstrap, "town")
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "compression.type": "snappy"}
        )
        producer.produce("town", bytes(10_000))
        assert not producer.flush(30)
        left = list(tmp_path.rglob("*.so"))
        assert left
        psutil.Process(broker.pid).kill()
    assert left[0].exists()
    with EmbeddedBroker(tmp_path):
        assert not left[0].exists()


def test_port_in_use_is_named(tmp_path: Path) -> None:
    """A port that is taken is an error before anything is started."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortUnavailable, match=f"port {port} .* already in use"):
            EmbeddedBroker(tmp_path / "data", port=port).start()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("listener", ["clients", "controller"])
def test_port_that_is_taken_before_the_broker_listens_is_replaced(
    listener: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM listens seconds after the choice; other programs take ports meanwhile."""
    choose = broker_module.choose_ports
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = [other.getsockname()[1]]

        def choose_the_taken_one_first(*arguments: Any) -> Ports:
            ports = choose(*arguments)._asdict()
            if taken:
                ports[listener] = taken.pop()
            return Ports(ports["clients"], ports["clients"], ports["controller"])

        monkeypatch.setattr(broker_module, "choose_ports", choose_the_taken_one_first)
        with EmbeddedBroker() as broker:
            assert not taken
            create_topic(broker.bootstrap, "served")


def test_hint_for_a_port_in_use_works(tmp_path: Path) -> None:
    """The command that suggests `--port 0` accepts it."""
    flags = ("broker", "--dir", str(tmp_path / "data"), "--port")
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused = sds_monitor(*flags, str(other.getsockname()[1]))
    assert refused.returncode == 2
    assert refused.stderr.endswith("another port; --port 0 selects a free one\n")
    with subprocess.Popen(
        [sys.executable, "-m", "streaming.cli", *flags, "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
        finally:
            process.terminate()
    assert re.match(r"Kafka listens on 127\.0\.0\.1:[1-9]\d*", line), line


def test_second_broker_on_the_same_directory_is_refused(
    program: Callable[[Path | None], Program], tmp_path: Path
) -> None:
    """A directory belongs to one broker at a time; the error names its process."""
    other = program(tmp_path)
    with pytest.raises(DataDirInUse) as refused:
        EmbeddedBroker(tmp_path).start()
    assert f"(process {other.broker.pid})" in str(refused.value)
    assert not has_ended(other.broker)


def test_broken_data_directory_shows_the_log(tmp_path: Path) -> None:
    """If Kafka ends during its start, the error has the end of its log."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=7\n")
    with pytest.raises(
        BrokerStartFailed, match="ended during startup, with exit code 1"
    ) as failed:
        EmbeddedBroker(tmp_path).start()
    assert "doesn't match previous node id" in str(failed.value)


def test_broker_of_a_killed_program_is_ended_by_the_next_start(
    program: Callable[[Path | None], Program], tmp_path: Path
) -> None:
    """After kill -9 the same directory can be used again at once."""
    killed = program(tmp_path)
    create_topic(killed.bootstrap, "kept")
    killed.kill()
    assert not has_ended(killed.broker)
    with EmbeddedBroker(tmp_path) as broker:
        assert has_ended(killed.broker)
        assert read_values(broker.bootstrap, "kept") == []


def test_only_the_broker_of_the_killed_program_is_ended(
    program: Callable[[Path | None], Program], broker: EmbeddedBroker
) -> None:
    """Brokers of living programs go on, beside a left-over that is cleared away."""
    living, killed = program(None), program(None)
    killed.kill()
    end_left_over_brokers()
    assert has_ended(killed.broker)
    assert not killed.data_dir.exists()
    for bootstrap in (living.bootstrap, broker.bootstrap):
        create_topic(bootstrap, "still-served")


def test_process_that_only_resembles_a_broker_is_left_alone() -> None:
    """A process with the marks but another main class is no broker."""
    code = "import time; print(flush=True); time.sleep(60)"
    mark = "-Dsds_monitor.parent=999999999@1.0"
    with subprocess.Popen(
        [sys.executable, "-c", code, mark, "-Dsds_monitor.data_dir=/nowhere"],
        stdout=subprocess.PIPE,
    ) as bystander:
        assert bystander.stdout is not None
        bystander.stdout.readline()
        assert bystander.pid not in end_left_over_brokers()
        assert bystander.poll() is None
        bystander.kill()


def test_wrong_checksum_is_named(tmp_path: Path) -> None:
    """A damaged jar is named and deleted; the others stay."""
    jars = copy_of_jars(tmp_path)
    damaged = jars / "kafka-clients-4.2.1.jar"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(BrokerJarsUnavailable, match=r"kafka-clients-4\.2\.1\.jar"):
        EmbeddedBroker(cache_dir=tmp_path).start()
    assert not damaged.exists()
    assert len(list(jars.glob("*.jar"))) == len(pinned_checksums()) - 1


@pytest.mark.slow
@pytest.mark.long
def test_missing_jar_is_fetched_once_by_two_simultaneous_starts(tmp_path: Path) -> None:
    """The cache is complete then and has no other files."""
    jars = copy_of_jars(tmp_path)
    (jars / "kafka-clients-4.2.1.jar").unlink()
    found: list[Path] = []

    def fetch() -> None:
        found.append(ensure_broker_jars(tmp_path, find_java()))

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [jars, jars]
    assert {jar.name for jar in jars.glob("*.jar")} == set(pinned_checksums())
    assert {path.name for path in tmp_path.iterdir()} == {
        jars.name,
        f"{jars.name}.lock",
    }


def test_failed_fetch_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without network and cache the error is one line with a remedy."""
    proxy = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", proxy)
    with pytest.raises(BrokerJarsUnavailable) as failed:
        ensure_broker_jars(tmp_path, find_java())
    message = str(failed.value)
    assert "refused" in message
    assert "\n" not in message
    assert "proxy" in message


def copy_of_jars(cache_dir: Path) -> Path:
    """Copy the real cache, filled if need be, into another cache directory."""
    jars = ensure_broker_jars(default_cache_dir(), find_java())
    shutil.copytree(jars, cache_dir / jars.name)
    return cache_dir / jars.name


@pytest.mark.parametrize(
    ("version", "found"),
    [("11.0.22", "java has version 11: "), ("1.8.0_392", "java has version 8: ")],
)
def test_old_java_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, found: str
) -> None:
    """A Java that is too old is named in one line with what to install."""
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match=found) as refused:
        find_java()
    assert "openjdk-17-jre-headless" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_java_home_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty JAVA_HOME directory is an error even with a good java on PATH."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        JavaMissing, match=rf"{tmp_path}/bin/java \(JAVA_HOME\) does not exist"
    ):
        find_java()
