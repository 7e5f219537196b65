"""From a node to the report, through restarts, outages and a SIGKILL."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from sds_core.simulation.comparison import compare
from sds_core.simulation.log import PUBSUB_TOPIC
from sds_core.simulation.scenario import Scenario
from sds_core.waku import WakuMessage
from tests.support.kafka import free_port
from tests.support.soak.breaks import Kill, breaks_of
from tests.support.soak.commands import Command, sample
from tests.support.soak.mirrored import STORE_S, assert_all_mirrored, assert_holes
from tests.support.soak.stage import Stage, missing_numbers, tap_records
from tests.support.waiting import wait_for
from tests.support.waku_node import Cause, ConformanceNode

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

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


@pytest.mark.timeout(1_200)
def test_report_is_the_truth_after_everything_went_wrong(tmp_path: Path) -> None:
    """Node restarts, a flood, Kafka away, a killed mirror: nothing else is lost.

    The report equals the simulator's truth of what the mirror wrote; that is all the
    node ever offered, but for at most the page in flight at the kill; and the tap's
    numbers have holes where the node's own log says that the mirror could not have
    heard everything, and nowhere else.
    """
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
            "state": tmp_path / "mirror",
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
        with Command("mirror", tmp_path / "mirror.log", **mirror) as mirroring:
            mirroring.metrics_url()
            wait_for(lambda: node.calls)
            with Command("run", tmp_path / "run.log", **monitor) as running:
                url = running.metrics_url()
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
                mirroring.kill()
                kill = Kill(killed_ms, wall_ms())
                mirroring.start()
                at(0.7)
                flood(node)
                at(0.85)
                node.restart(down_s=2)
                playing.join()
                time.sleep(STORE_S)
                assert mirroring.end() == 0
                assert running.process.poll() is None
                records = tap_records(kafka)
                missing = missing_numbers(records)
                observer = mirroring.observer()
                series = f'sds_tap_missing_records_total{{observer="{observer}"}}'
                wait_for(lambda: sample(url, "sds_monitor_records_behind") == 0)
                tap_missing = sample(url, series)
                assert running.end() == 0
        report_file = tmp_path / "report.json"
        last = Command(
            "run",
            tmp_path / "last.log",
            **monitor,
            until_caught_up=True,
            report=report_file,
        )
        with last:
            assert last.process.wait(300) == 0
        report = json.loads(report_file.read_text())
    truth = stage.truth(records)
    differing = [str(one) for one in compare(truth, report) if not one.same]
    assert not differing, differing[:20]
    frames = {one.hash for one in node.offers if one.message.payload != NO_FRAME}
    assert_all_mirrored(node, records, [kill], frames)
    assert_holes(missing, records, breaks_of(node, CACHE, kill))
    assert tap_missing == len(missing)
    # In each of them but the kill the node did drop something.
    assert {one.cause for one in node.dropped} >= {Cause.OVERFLOW, Cause.RESTART}
