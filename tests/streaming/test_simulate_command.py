"""``sds-monitor simulate``: through real Kafka and the real job, to the truth."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaSettings
from sds_core.simulation.comparison import compare
from tests.support.identities import assert_identities
from tests.support.waiting import wait_for

SCENARIO = """
name = "two-rooms"
description = "Two rooms, loss everywhere, one participant cut off."
duration_s = 300
settle_s = 200
participants = 5
channels = [
    { name = "room", count = 2, participants = 4, traffic = { mean_interval_s = 8 } },
]
[network]
loss = 0.1
partitions = [{ from_s = 100, until_s = 160, participants = 1 }]
[[taps]]
name = "near"
loss = 0.4
[[taps]]
name = "far"
loss = 0.4
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "streaming.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_the_monitor_finds_the_truth_of_a_simulation(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """Two taps of one network: what both saw is counted once."""
    kafka = topic(partitions=0)
    (tmp_path / "rooms.toml").write_text(SCENARIO)
    done = run(
        "simulate",
        *("--bootstrap", kafka.bootstrap, "--topic", kafka.topic),
        *("--scenario", str(tmp_path / "rooms.toml"), "--seed", "5", "--speed", "0"),
        *("--truth", str(tmp_path / "truth.json")),
    )
    assert done.returncode == 0, done.stderr
    truth = json.loads((tmp_path / "truth.json").read_text())
    # A fast run ends about now, though its traffic lasts eight minutes.
    assert abs(truth["window"]["last_event"] - time.time_ns() // 1_000_000) < 60_000
    done = run(
        "run",
        *("--bootstrap", kafka.bootstrap, "--topic", kafka.topic),
        *("--checkpoint", str(tmp_path / "checkpoint"), "--until-caught-up"),
        *("--report", str(tmp_path / "report.json"), "--metrics-port", "0"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert_identities(report)
    assert [one for one in compare(truth, report) if not one.same] == []
    assert report["totals"]["replicas"] > 0
    assert report["totals"]["gaps"]["opened"] > 0


@pytest.mark.kafka
def test_speed_is_a_factor_of_real_time(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """Ten seconds of traffic at speed 4 take 2.5 s."""
    kafka = topic(partitions=0)
    begun = time.monotonic()
    done = run(
        "simulate",
        *("--bootstrap", kafka.bootstrap, "--topic", kafka.topic),
        *("--scenario", str(_short(tmp_path)), "--speed", "4"),
        *("--truth", str(tmp_path / "truth.json")),
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begun > 10 / 4 - 1
    window = json.loads((tmp_path / "truth.json").read_text())["window"]
    assert 5_000 < window["last_event"] - window["first_event"] <= 11_000


@pytest.mark.kafka
@pytest.mark.slow
def test_records_that_kafka_did_not_acknowledge_are_not_counted(
    tmp_path: Path,
) -> None:
    """The broker is killed meanwhile: what the log counts is in the topic."""
    with EmbeddedBroker(tmp_path / "kafka") as broker:
        kafka = KafkaSettings(broker.bootstrap, "frames")
        flags = ("--topic", kafka.topic, "--kafka-timeout", "3")
        with subprocess.Popen(
            [
                *(sys.executable, "-m", "streaming.cli", "simulate", *flags),
                *("--bootstrap", kafka.bootstrap, "--speed", "20"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                process.stdout.readline()
                wait_for(lambda: in_topic(kafka) > 100)
                os.kill(broker.pid, signal.SIGKILL)
                output, errors = process.communicate(timeout=120)
            finally:
                process.kill()
    told = re.search(r"acknowledged only ([\d,]+) records", errors)
    assert told is not None, errors
    assert process.returncode == 3
    assert "records of scenario" not in output
    with EmbeddedBroker(tmp_path / "kafka") as broker:
        there = in_topic(KafkaSettings(broker.bootstrap, "frames"))
    # Kafka may have stored records whose acknowledgement was lost.
    assert 100 < int(told[1].replace(",", "")) <= there


def in_topic(kafka: KafkaSettings) -> int:
    """How many records a topic holds."""
    with closing(TopicOffsets(kafka)) as offsets:
        return sum(offsets.latest(offsets.partitions()).values())


@pytest.mark.kafka
def test_existing_topic_keeps_its_partitions(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """Each of them gets heartbeats, whatever `--partitions` is."""
    kafka = topic(partitions=2)
    done = run(
        "simulate",
        *("--bootstrap", kafka.bootstrap, "--topic", kafka.topic),
        *("--scenario", str(_short(tmp_path)), "--speed", "0", "--partitions", "7"),
    )
    assert done.returncode == 0, done.stderr
    offsets = TopicOffsets(kafka)
    try:
        ends = offsets.latest([0, 1])
    finally:
        offsets.close()
    assert min(ends.values()) >= 4


@pytest.mark.kafka
def test_invalid_topic_name_is_refused(
    topic: Callable[..., KafkaSettings],
) -> None:
    """It is a mistake of the user, not of the network."""
    kafka = topic(partitions=0)
    done = run("simulate", "--bootstrap", kafka.bootstrap, "--topic", "a b")
    assert done.returncode == 2
    assert "'a b'" in done.stderr


@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize("flag", ["--speed", "--duration"])
def test_invalid_numbers_are_refused(flag: str, value: str) -> None:
    """In one line."""
    done = run("simulate", "--bootstrap", "127.0.0.1:1", flag, value)
    assert done.returncode == 2
    assert flag in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_wrong_scenarios_are_refused_in_one_line(tmp_path: Path) -> None:
    """With the place, the value and what is allowed."""
    (tmp_path / "wrong.toml").write_text(SCENARIO.replace("loss = 0.1", "loss = 7"))
    for scenario, said in (
        ("nowhere", "lossy"),
        (str(tmp_path / "wrong.toml"), "network.loss"),
        (str(tmp_path / "none.toml"), "No such file"),
    ):
        done = run("simulate", "--bootstrap", "127.0.0.1:1", "--scenario", scenario)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_truth_that_could_not_be_written_is_refused_before_anything_runs(
    tmp_path: Path,
) -> None:
    """A wrong path must not waste an hour of simulation."""
    path = tmp_path / "no" / "truth.json"
    done = run("simulate", "--bootstrap", "127.0.0.1:1", "--truth", str(path))
    assert done.returncode == 2
    assert str(path.parent) in done.stderr


def _short(directory: Path) -> Path:
    path = directory / "short.toml"
    path.write_text(
        SCENARIO.replace("duration_s = 300", "duration_s = 10")
        .replace("settle_s = 200", "settle_s = 0")
        .replace("partitions = [{ from_s = 100, until_s = 160, participants = 1 }]", "")
    )
    return path
