"""From a node to the report, through restarts, outages and a SIGKILL."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from sds_core.simulation.comparison import compare
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.waku import PUBSUB_TOPIC
from sds_core.waku import WakuMessage
from tests.support.kafka import free_port
from tests.support.soak.breaks import Break, Kill, breaks_of
from tests.support.soak.stage import Stage, TapRecord, missing_numbers, tap_records
from tests.support.waiting import wait_for
from tests.support.waku_node import Cause, ConformanceNode, Endpoint

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

DURATION_S = float(os.environ.get("SDS_MONITOR_SOAK_SECONDS", "160"))
CACHE = 3_000
"""Messages in the node's relay cache: a quarter of a minute of the traffic."""

SEED = 7
PARTITIONS = 4

NO_FRAME = b"nothing of SDS"


def scenario() -> Scenario:
    """About 200 frames a second, of which one in twenty is lost on each link."""
    return Scenario.from_mapping(
        {
            "name": "soak",
            "description": "lossy traffic for a real node",
            "duration_s": DURATION_S,
            "settle_s": 10,
            "participants": 60,
            "channels": [
                {
                    "name": "soak",
                    "count": 100,
                    "participants": 6,
                    "traffic": {"mean_interval_s": 0.62, "ephemeral_share": 0.1},
                }
            ],
            "network": {"loss": 0.05},
            # Everything that the network carries comes to the node.
            "taps": [{"name": "node", "loss": 0.0}],
        }
    )


Process = subprocess.Popen[bytes]


@contextmanager
def started(command: str, log: Path, **options: object) -> Iterator[Process]:
    """One of our commands; killed at the end of the block if it still runs."""
    words = [sys.executable, "-m", "streaming.cli", command]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value is True else [flag, str(value)]
    with log.open("ab") as file:
        process = subprocess.Popen(words, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def url_in(log: Path) -> str:
    """Where the command that wrote a log serves its metrics, the latest one."""
    found: list[str] = []

    def said() -> bool:
        found[:] = re.findall(r"metrics (http://\S+)", log.read_text())
        return bool(found)

    wait_for(said)
    return found[-1]


def observer(log: Path) -> str:
    """Tap id of the mirror that wrote a log."""
    found = re.search(r"^observer (\S+)", log.read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def flood(node: ConformanceNode) -> None:
    """Bring the node more of other, newer traffic than its cache holds."""
    for _ in range(3 * CACHE):
        other = WakuMessage(
            NO_FRAME, "/other/1/talk/proto", time.time_ns(), ephemeral=True
        )
        node.offer(other, pubsub_topic=PUBSUB_TOPIC)


def wall_ms() -> float:
    """Now, Unix ms."""
    return time.time_ns() / 1_000_000


def sample(url: str, series: str) -> float:
    """One number that is exported; 0 if it is not there yet."""
    text = httpx.get(url).text
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.timeout(1_200)
def test_report_is_the_truth_after_everything_went_wrong(tmp_path: Path) -> None:
    """Node restarts, a flood, Kafka away, a killed mirror: nothing else is lost.

    The report equals the simulator's truth of what the mirror wrote; that is all the
    node ever offered, but for at most the page in flight at the kill; and the tap's
    numbers have holes where the node's own log says that the mirror could not have
    heard everything, and nowhere else.
    """
    log, state = tmp_path / "mirror.log", tmp_path / "mirror"
    with (
        EmbeddedBroker(tmp_path / "kafka", port=free_port()) as broker,
        ConformanceNode(relay_capacity=CACHE) as node,
    ):
        kafka = KafkaSettings(broker.bootstrap)
        # The monitor may be there before the mirror has anything to write.
        ensure_frames_topic(kafka, PARTITIONS)
        mirror = {
            "bootstrap": kafka.bootstrap,
            "rest": node.url,
            "pubsub_topic": PUBSUB_TOPIC,
            "state": state,
            "cache_messages": CACHE,
            "metrics_port": 0,
            # A mirror that has to wait for the machine must not give a request up: it
            # would take the node for unreachable, of which the node knows nothing.
            "rest_timeout": 120,
        }
        monitor = {
            "bootstrap": kafka.bootstrap,
            "checkpoint": tmp_path / "checkpoint",
            "metrics_port": 0,
            # Leaves the machine to the mirror.
            "trigger": 4,
        }
        with started("mirror", log, **mirror) as first:
            url_in(log)
            wait_for(lambda: node.calls)
            with started("run", tmp_path / "run.log", **monitor) as running:
                url = url_in(tmp_path / "run.log")
                # Heartbeats: however slow its start is, it misses nothing of the play.
                wait_for(lambda: sample(url, "sds_monitor_records_total"), 600)
                stage = Stage(scenario(), SEED, node)
                begun_s, playing = time.monotonic(), stage.begin()

                def at(share: float) -> None:
                    moment_s = begun_s + share * DURATION_S
                    time.sleep(max(0, moment_s - time.monotonic()))

                at(0.12)
                node.restart(down_s=2)
                at(0.25)
                broker.stop()
                time.sleep(min(30, 0.1 * DURATION_S))
                broker.start()
                at(0.45)
                node.restart(down_s=2)
                at(0.6)
                killed_ms = wall_ms()
                first.kill()
                first.wait()
                kill = Kill(killed_ms, wall_ms())
                with started("mirror", log, **mirror) as second:
                    at(0.7)
                    flood(node)
                    at(0.85)
                    node.restart(down_s=2)
                    playing.join()
                    # Twice the interval of the store, and what is left to listeners.
                    time.sleep(26)
                    second.send_signal(signal.SIGTERM)
                    assert second.wait(60) == 0
                assert running.poll() is None
                records = tap_records(kafka)
                missing = missing_numbers(records)
                series = f'sds_tap_missing_records_total{{observer="{observer(log)}"}}'
                wait_for(lambda: sample(url, "sds_monitor_records_behind") == 0)
                tap_missing = sample(url, series)
                running.send_signal(signal.SIGTERM)
                assert running.wait(120) == 0
        report_file = tmp_path / "report.json"
        last = started(
            "run",
            tmp_path / "last.log",
            **monitor,
            until_caught_up=True,
            report=report_file,
        )
        with last as process:
            assert process.wait(300) == 0
        report = json.loads(report_file.read_text())
    truth = stage.truth(records)
    differing = [str(one) for one in compare(truth, report) if not one.same]
    assert not differing, differing[:20]
    assert_all_mirrored(node, records, kill)
    assert_holes(missing, records, breaks_of(node, CACHE, kill))
    assert tap_missing == len(missing)
    # In each of them but the kill the node did drop something.
    assert {one.cause for one in node.dropped} >= {Cause.OVERFLOW, Cause.RESTART}


def assert_all_mirrored(
    node: ConformanceNode, records: list[TapRecord], kill: Kill
) -> None:
    """All that was ever offered is in Kafka, but for a page in flight at a kill."""
    mirrored = {record.message_hash for record in records if record.is_frame}
    frames = {one.hash for one in node.offers if one.message.payload != NO_FRAME}
    offered = node.offered_to_anyone() & frames
    assert mirrored <= offered
    lost = offered - mirrored
    assert lost <= node.only_in_pages()
    pages = {
        one.at_ns
        for one in node.handed_out
        if one.hash in lost and one.endpoint is Endpoint.RELAY
    }
    last_before_kill = max(
        one.at_ns
        for one in node.calls
        if one.endpoint is Endpoint.RELAY and one.at_ns / 1e6 <= kill.until_ms
    )
    assert pages <= {last_before_kill}


def assert_holes(
    missing: list[int], records: list[TapRecord], breaks: list[Break]
) -> None:
    """A hole for each time that the node dropped messages, and no other."""
    times = {record.seq: record.at_ms for record in records if record.is_frame}
    # Numbers that are missing one after the other are one hole.
    begins = [times[number - 1] for number in missing if number - 1 in times]
    ends = [times[number + 1] for number in missing if number + 1 in times]
    holes = list(zip(begins, ends, strict=True))
    assert any(one.has_dropped for one in breaks)
    for one in breaks:
        assert not one.has_dropped or any(one.meets(*hole) for hole in holes), one
    for hole in holes:
        assert any(one.meets(*hole) for one in breaks), (hole, breaks)
