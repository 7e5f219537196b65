"""A monitor with its Prometheus and Alertmanager, on accelerated traffic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from connectors.simulator.records import AnyScenario
from dashboards import Links
from dashboards.rules import rule_files
from sds_core.observer.channel_table import ChannelTable
from streaming.cli.serving import status_server
from tests.support.accelerated import Play, simulated
from tests.support.alertmanager import running_alertmanager
from tests.support.prometheus import Labels, Prometheus, running_prometheus
from tests.support.running_audit import running_audit
from tests.support.running_mirror import running_mirror
from tests.support.waiting import wait_for
from tests.support.waku_node import ConformanceNode
from tests.support.webhook import Alert, Webhook, listening_webhook

SPEED = 60
"""A minute in a second.

Faster, a batch of the job, which is no faster than in life, would pass for a monitor
that is behind."""

GRAFANA_URL = "http://grafana.example.org"

_SEED = 7


@dataclass(frozen=True)
class Observed:
    """A run that has ended, with the programs that observed it.

    What happened before it began is left out: Prometheus takes seconds until it
    scrapes, which at this speed is a monitor that is down for minutes.

    Attributes:
        prometheus: Has scraped the monitor all the while, and goes on.
        webhook: Was told of alerts, and goes on.
        begun_s: Wall time of the begin, Unix seconds.
        ended_s: Wall time of the end.
    """

    prometheus: Prometheus
    webhook: Webhook
    begun_s: float
    ended_s: float

    def alerts(self, state: str) -> list[Labels]:
        """Return labels of alerts that were in a state at any time since the start."""
        since_ms = round((_wall_s() - self.begun_s) * 1000)
        selector = f'ALERTS{{alertstate="{state}"}}[{since_ms}ms]'
        return [
            {name: value for name, value in labels.items() if name != "alertstate"}
            for labels, _ in self.prometheus.query(f"count_over_time({selector})")
        ]

    def wait_for_pending(self, but: str = "") -> None:
        """Wait until nothing but one alert, if named, is about to fire: it has, or not.

        What the traffic was to bring about is then there, however long it must hold.
        """
        pending = f'ALERTS{{alertstate="pending", alertname!="{but}"}}'
        wait_for(lambda: not self.prometheus.query(pending))

    def told(self, status: str) -> list[Alert]:
        """Return the alerts that the webhook got as `firing` or `resolved`."""
        return [
            alert
            for alert in list(self.webhook.told)
            if alert["status"] == status
            and datetime.fromisoformat(alert["startsAt"]).timestamp() >= self.begun_s
        ]


Observe = Callable[..., AbstractContextManager[Observed]]
"""Plays scenarios: `observed` with the session, the broker and a directory given."""


@contextmanager
def observed(
    spark: SparkSession,
    bootstrap: str,
    directory: Path,
    scenarios: Sequence[AnyScenario],
    table: ChannelTable,
) -> Iterator[Observed]:
    """Run scenarios to their end; the programs answer until the block ends.

    A mirror and its audit run beside them and hear nothing, of which nobody is to be
    told.

    Args:
        spark: Runs the job.
        bootstrap: Of Kafka.
        directory: For what all of them keep; its name is that of the topic.
        scenarios: All at once, in one topic.
        table: What the operator says of channels.
    """
    # It ends now: nothing may lie in the future when it is written.
    play = Play(simulated(scenarios, _SEED, round(_wall_s() * 1000)), SPEED)
    kafka = KafkaSettings(bootstrap, directory.name)
    with (
        ConformanceNode() as node,
        running_mirror(node, bootstrap, directory / "mirror") as mirror,
        running_audit(node, bootstrap, directory / "mirror") as audit,
        status_server(play.shown, "127.0.0.1", 0, played=True) as monitor_url,
        listening_webhook() as webhook,
        running_alertmanager(
            directory / "alertmanager", _shipped("alertmanager.yml"), webhook.url
        ) as alertmanager,
        running_prometheus(
            directory / "prometheus",
            _scraping(
                {
                    "sds-monitor": monitor_url.removeprefix("http://"),
                    "sds-mirror": mirror,
                    "sds-audit": audit,
                },
                alertmanager,
            ),
            rule_files(_links(monitor_url), SPEED),
            lookback_s=300 / SPEED,
        ) as prometheus,
        play.staged(spark, kafka, directory / "checkpoint", table),
    ):
        wait_for(lambda: prometheus.is_scraping() and not prometheus.query("ALERTS"))
        begun_s = _wall_s()
        play.begin()
        wait_for(lambda: play.is_over)
        yield Observed(prometheus, webhook, begun_s, _wall_s())


def as_long_as(other: AnyScenario, scenario: AnyScenario) -> AnyScenario:
    """Return a scenario that settles until another one ends, with its own tap names."""
    return replace(
        scenario,
        settle_s=other.duration_s + other.settle_s - scenario.duration_s,
        taps=tuple(
            replace(tap, name=f"{scenario.name}-{tap.name}") for tap in scenario.taps
        ),
    )


def _shipped(name: str) -> dict[str, Any]:
    file = files("dashboards") / "provisioning" / name
    return dict(yaml.safe_load(file.read_text("utf-8")))


def _links(monitor_url: str) -> Links:
    """Links of a site without published documentation: the monitor has the runbooks."""
    return Links(monitor_url, GRAFANA_URL, f"{monitor_url}/runbooks")


def _scraping(targets: Mapping[str, str], alertmanager: str) -> dict[str, Any]:
    """Return the shipped scrape configuration with these targets by job."""
    shipped = {one["job_name"] for one in _shipped("prometheus.yml")["scrape_configs"]}
    assert targets.keys() <= shipped
    return {
        "global": {
            # Half a minute in the play, where 15 s are shipped: the exporter is no
            # faster than in life, and has to answer within the interval.
            "scrape_interval": "500ms",
            "scrape_timeout": "500ms",
            "evaluation_interval": "250ms",
        },
        "alerting": {"alertmanagers": [_target(alertmanager)]},
        "scrape_configs": [
            {"job_name": job, **_target(address)} for job, address in targets.items()
        ],
    }


def _wall_s() -> float:
    return time.time_ns() / 1e9


def _target(address: str) -> dict[str, Any]:
    return {"static_configs": [{"targets": [address]}]}
