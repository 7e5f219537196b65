"""Whether alerts fire at any speed of the traffic and with wrong clocks of taps.

``python -m tests.support.alert_speeds --speed 5 --offset -90``

Kafka, job, exporter and Prometheus are real, and the rules are those that are shipped,
in real time. So a run at speed 1 takes as long as the scenario; CI has the part that
needs no wall time (`tests/streaming/test_wrong_blind.py`).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click
from pyspark.sql import SparkSession

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from connectors.simulator.scenario_files import load_scenario
from dashboards import Links
from dashboards.rules import rule_files
from sds_core.observer.channel_table import ChannelTable
from streaming.cli.serving import status_server
from streaming.session import make_session
from streaming.settings import SessionSettings
from tests.support.accelerated import Play, simulated
from tests.support.prometheus import Prometheus, running_prometheus
from tests.support.waiting import wait_for

PLAYS = ((10, 0), (5, 0), (5, -90), (5, 90), (1, 0), (1, -90), (1, 90))
"""Speed, and seconds by which the taps' clocks are fast."""

_START_S = 50
"""Longer than a job takes to start; less than a record may lie in the future."""

_SCENARIO = "unrepaired"
_SEED = 1
_HOLDS_S = 130
"""Longer than the alert on a tap's clock must hold."""


class Seen(NamedTuple):
    """What Prometheus saw in a run.

    Attributes:
        alerts: Names of the alerts that fired.
        blind: Greatest number of blind channels while records came.
        held_back: Greatest number of findings for which an alert was held back.
        offset_s: Least and greatest offset of a tap's clock, seconds; empty if it was
            never known.
    """

    alerts: Sequence[str]
    blind: float
    held_back: float
    offset_s: Sequence[float]


def seen(spark: SparkSession, speed: float, offset_s: float) -> Seen:
    """Play the scenario once."""
    scenario = load_scenario(_SCENARIO)
    takes_s = scenario.total_ms / 1000 / speed
    begin_s = _wall_s() + _START_S
    end_ms = round((begin_s + takes_s) * 1000)
    offset_ms = round(offset_s * 1000)
    records = [
        replace(one, timestamp_ms=one.timestamp_ms + offset_ms)
        for one in simulated([scenario], _SEED, end_ms)
    ]
    play = Play(records, speed)
    with tempfile.TemporaryDirectory() as name, EmbeddedBroker() as broker:
        directory = Path(name)
        with (
            status_server(play.shown, "127.0.0.1", 0) as url,
            running_prometheus(
                directory / "prometheus",
                _scraping(url.removeprefix("http://")),
                rule_files(Links(url)),
                lookback_s=300,
            ) as prometheus,
            play.staged(
                spark,
                KafkaSettings(broker.bootstrap),
                directory / "checkpoint",
                ChannelTable(),
            ),
        ):
            # Later, the taps would be slower than they are to be.
            assert _wall_s() < begin_s, f"the job has not started in {_START_S} s"
            time.sleep(begin_s - _wall_s())
            play.begin()
            begun_s = time.monotonic()
            wait_for(lambda: play.is_over, takes_s + 300)
            # Afterwards the topic is silent, and all channels are blind.
            blind = _greatest(
                prometheus, 'max_over_time(sds_channels{verdict="blind"}[1h])'
            )
            # NET_LOSSES is recorded once a minute.
            rest_s = max(75.0, _HOLDS_S - (time.monotonic() - begun_s))
            time.sleep(rest_s if speed > 1 else 75.0)
            return _seen(prometheus, blind)


def _seen(prometheus: Prometheus, blind: float) -> Seen:
    fired = prometheus.query('count_over_time(ALERTS{alertstate="firing"}[1h])')
    offset = "sds_tap_clock_offset_seconds[1h]"
    return Seen(
        sorted({labels["alertname"] for labels, _ in fired}),
        blind,
        _greatest(prometheus, "max_over_time(sds_alert_held_back[1h])"),
        [
            value
            for how in ("min", "max")
            for _, value in prometheus.query(f"{how}({how}_over_time({offset}))")
        ],
    )


def _wall_s() -> float:
    return time.time_ns() / 1e9


def _greatest(prometheus: Prometheus, expression: str) -> float:
    return max((value for _, value in prometheus.query(expression)), default=0.0)


def _scraping(address: str) -> dict[str, object]:
    return {
        "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
        "scrape_configs": [
            {"job_name": "sds-monitor", "static_configs": [{"targets": [address]}]}
        ],
    }


@click.command()
@click.option("--speed", type=float, help="Only this speed.")
@click.option("--offset", type=float, default=0.0, help="Seconds, with --speed.")
def main(speed: float | None, offset: float) -> None:
    """Print what fired in each run; ends with 1 if losses set off no alert."""
    spark = make_session(SessionSettings("local[2]", shuffle_partitions=2))
    plays = PLAYS if speed is None else ((speed, offset),)
    failed = False
    for each, fast_s in plays:
        found = seen(spark, each, fast_s)
        click.echo(f"speed {each:g}, taps {fast_s:+g} s: {found}")
        failed |= "SdsMessagesLost" not in found.alerts or found.blind > 0
    spark.stop()
    raise click.exceptions.Exit(int(failed))


if __name__ == "__main__":
    main()
