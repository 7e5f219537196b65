"""A monitor, its Prometheus and its Alertmanager, on traffic sixty times as fast."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from connectors.kafka.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from connectors.prometheus.collector import SnapshotCollector
from connectors.simulator.scenario_files import load_scenario
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from dashboards.links import Links
from dashboards.rules import rule_files
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.snapshot import Snapshot
from sds_core.simulation.scenario import Scenario
from streaming.session import SessionSettings, make_session
from tests.support.accelerated import Play, prepared_play, simulated
from tests.support.alertmanager import running_alertmanager
from tests.support.prometheus import Prometheus, running_prometheus
from tests.support.waiting import wait_for
from tests.support.webhook import Webhook, listening_webhook

SPEED = 60
SEED = 7
NAME = "Three people & a cable"
"""What the operator calls the channel with the incident."""

_GRAFANA = "http://grafana.example.org"
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Observed:
    """A play from its begin to its end, and those who watched.

    Attributes:
        monitor_url: Of the status page.
        prometheus: Has scraped the monitor all the while.
        webhook: Was told of alerts.
        begun_s: Wall time of the begin, Unix seconds.
        ended_s: Wall time at which all was read.
    """

    monitor_url: str
    prometheus: Prometheus
    webhook: Webhook
    begun_s: float
    ended_s: float


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session as the product makes it, with two cores."""
    session = make_session(SessionSettings("local[2]", shuffle_partitions=2))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def incident(
    spark: SparkSession,
    kafka_broker: EmbeddedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Observed]:
    """An incident in two channels, one of them muted, beside calm and quiet ones."""
    scenario = load_scenario(str(Path(__file__).with_name("incident.toml")))
    beside = [load_scenario(name) for name in ("quiet", "clean")]
    scenarios = [scenario, *(_as_long_as(scenario, one) for one in beside)]
    table = ChannelTable(
        [
            ChannelEntry("incident", name=NAME),
            ChannelEntry("muted", mute_until_ms=_now_ms() + _DAY_MS),
        ]
    )
    directory = tmp_path_factory.mktemp("incident")
    with _observed(spark, kafka_broker, directory, scenarios, table) as observed:
        yield observed


@pytest.fixture(scope="session")
def blind_tap(
    spark: SparkSession,
    kafka_broker: EmbeddedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Observed]:
    """A single tap that is down, deaf, and loses records."""
    scenarios = [load_scenario("tap-blind")]
    directory = tmp_path_factory.mktemp("blind-tap")
    with _observed(
        spark, kafka_broker, directory, scenarios, ChannelTable()
    ) as observed:
        yield observed


@contextmanager
def _observed(
    spark: SparkSession,
    broker: EmbeddedBroker,
    directory: Path,
    scenarios: Sequence[Scenario],
    table: ChannelTable,
) -> Iterator[Observed]:
    """Play scenarios to their end; what watched them answers until the block ends."""
    # Nothing may lie in the future when it is written.
    records = simulated(scenarios, SEED, _now_ms())
    kafka = KafkaSettings(broker.bootstrap, f"e2e-{directory.name}")
    with (
        prepared_play(
            spark, kafka, directory / "checkpoint", records, SPEED, table
        ) as play,
        _served(play) as monitor_url,
        listening_webhook() as webhook,
        running_alertmanager(
            directory / "alertmanager", _shipped("alertmanager.yml"), webhook.url
        ) as alertmanager,
        running_prometheus(
            directory / "prometheus",
            _configuration(monitor_url, alertmanager),
            rule_files(Links(monitor_url, _GRAFANA), SPEED),
            lookback_s=300 / SPEED,
        ) as prometheus,
    ):
        wait_for(prometheus.is_scraping)
        begun_s = time.time()
        play.begin()
        wait_for(lambda: play.is_over)
        yield Observed(monitor_url, prometheus, webhook, begun_s, time.time())


@contextmanager
def _served(play: Play) -> Iterator[str]:
    """The play's page and metrics; gives their URL."""

    def current() -> Snapshot:
        wall_ms = play.clock()
        judged = judge_blindness(play.job.board.snapshot, wall_ms)
        return judged.with_table(judged.table, wall_ms)

    registry = CollectorRegistry()
    registry.register(SnapshotCollector(current))
    sources = Sources(
        current,
        play.job.find_incidents,
        play.job.find_minutes,
        files("dashboards") / "runbooks",
    )
    with WebServer(create_app(sources, registry), port=0) as server:
        yield server.url


def _configuration(monitor_url: str, alertmanager: str) -> dict[str, Any]:
    """As shipped, as many times as fast, for the monitor alone."""
    shipped = _shipped("prometheus.yml")
    (scrape,) = (
        one for one in shipped["scrape_configs"] if one["job_name"] == "sds-monitor"
    )
    target = monitor_url.removeprefix("http://")
    often = f"{15_000 // SPEED}ms"
    return {
        "global": {
            "scrape_interval": often,
            "scrape_timeout": often,
            "evaluation_interval": often,
        },
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]
        },
        "scrape_configs": [scrape | {"static_configs": [{"targets": [target]}]}],
    }


def _shipped(name: str) -> dict[str, Any]:
    file = files("dashboards") / "provisioning" / name
    return dict(yaml.safe_load(file.read_text("utf-8")))


def _as_long_as(other: Scenario, scenario: Scenario) -> Scenario:
    """A scenario with a tap of its own, as long as another one."""
    return replace(
        scenario,
        settle_s=other.duration_s + other.settle_s - scenario.duration_s,
        taps=tuple(
            replace(tap, name=f"{scenario.name}-{tap.name}") for tap in scenario.taps
        ),
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
