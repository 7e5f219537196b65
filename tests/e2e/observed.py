"""A monitor with its Prometheus and Alertmanager, on traffic faster than life."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from connectors.prometheus.collector import SnapshotCollector
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from dashboards.links import Links
from dashboards.rules import rule_files
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.snapshot import Snapshot
from sds_core.simulation.scenario import Scenario
from tests.support.accelerated import Play, prepared_play, simulated
from tests.support.alertmanager import running_alertmanager
from tests.support.prometheus import Labels, Prometheus, running_prometheus
from tests.support.waiting import wait_for
from tests.support.webhook import Webhook, listening_webhook

SPEED = 60
"""A minute in a second. Faster, a batch of the job would take too much of the time
after which the monitor is called behind."""

GRAFANA_URL = "http://grafana.example.org"

_SEED = 7


@dataclass(frozen=True)
class Observed:
    """A play that is over, and those who watched.

    Attributes:
        monitor_url: Of the status page.
        prometheus: Has scraped the monitor all the while, and goes on.
        webhook: Was told of alerts.
        begun_s: Wall time of the begin, Unix seconds.
        ended_s: Wall time of the end.
    """

    monitor_url: str
    prometheus: Prometheus
    webhook: Webhook
    begun_s: float
    ended_s: float

    def alerts(self, state: str) -> list[Labels]:
        """Labels of the alerts that were in a state at any time since the begin."""
        since_ms = round((time.time() - self.begun_s) * 1000)
        selector = f'ALERTS{{alertstate="{state}"}}[{since_ms}ms]'
        return [
            {name: value for name, value in labels.items() if name != "alertstate"}
            for labels, _ in self.prometheus.query(f"count_over_time({selector})")
        ]


@contextmanager
def observed(
    spark: SparkSession,
    bootstrap: str,
    directory: Path,
    scenarios: Sequence[Scenario],
    table: ChannelTable,
) -> Iterator[Observed]:
    """Play scenarios to their end; what watched them answers until the block ends.

    Args:
        spark: Runs the job.
        bootstrap: Of Kafka.
        directory: For what all of them keep; its name is that of the topic.
        scenarios: All at once, in one topic.
        table: What the operator says of channels.
    """
    # It ends now: nothing may lie in the future when it is written.
    records = simulated(scenarios, _SEED, time.time_ns() // 1_000_000)
    kafka = KafkaSettings(bootstrap, directory.name)
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
            _faster(_shipped("prometheus.yml"), monitor_url, alertmanager),
            rule_files(Links(monitor_url, GRAFANA_URL), SPEED),
            lookback_s=300 / SPEED,
        ) as prometheus,
    ):
        wait_for(prometheus.is_scraping)
        begun_s = time.time()
        play.begin()
        wait_for(lambda: play.is_over)
        yield Observed(monitor_url, prometheus, webhook, begun_s, time.time())


def as_long_as(other: Scenario, scenario: Scenario) -> Scenario:
    """A scenario that settles until another one ends, with taps of its own names."""
    return replace(
        scenario,
        settle_s=other.duration_s + other.settle_s - scenario.duration_s,
        taps=tuple(
            replace(tap, name=f"{scenario.name}-{tap.name}") for tap in scenario.taps
        ),
    )


@contextmanager
def _served(play: Play) -> Iterator[str]:
    """The play's page and metrics; gives their URL."""
    current = partial(_judged, play)
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


def _judged(play: Play) -> Snapshot:
    wall_ms = play.clock()
    judged = judge_blindness(play.job.board.snapshot, wall_ms)
    return judged.with_table(judged.table, wall_ms)


def _shipped(name: str) -> dict[str, Any]:
    file = files("dashboards") / "provisioning" / name
    return dict(yaml.safe_load(file.read_text("utf-8")))


def _faster(
    shipped: Mapping[str, Any], monitor_url: str, alertmanager: str
) -> dict[str, Any]:
    """The shipped configuration in the play's time, for the monitor alone."""
    seconds = int(shipped["global"]["scrape_interval"].removesuffix("s"))
    often = f"{seconds * 1000 // SPEED}ms"
    (scrape,) = (
        one for one in shipped["scrape_configs"] if one["job_name"] == "sds-monitor"
    )
    return {
        "global": {
            "scrape_interval": often,
            # The exporter is no faster than in life.
            "scrape_timeout": often,
            "evaluation_interval": often,
        },
        "alerting": {"alertmanagers": [_target(alertmanager)]},
        "scrape_configs": [
            scrape | _target(monitor_url.removeprefix("http://"))
        ],
    }


def _target(address: str) -> dict[str, Any]:
    return {"static_configs": [{"targets": [address]}]}
