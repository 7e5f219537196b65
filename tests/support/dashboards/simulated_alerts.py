"""Prints which alerts a simulated incident fires.

``python -m tests.support.dashboards.simulated_alerts --scenario unrepaired``

A simulation goes through the monitor without Kafka and Spark, its series through
promtool with the rules that are committed. The examples of the runbooks are made so.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import click
import yaml
from prometheus_client import CollectorRegistry

from connectors.kafka.producer import TopicRecord
from connectors.prometheus.collector import SnapshotCollector
from connectors.simulator.records import simulation_of
from connectors.simulator.scenario_files import load_scenario
from dashboards.rules import alerts
from sds_core.observer.histogram import Histogram
from sds_core.observer.snapshot import JobFigures, Snapshot
from tests.support.monitor import Monitor

RULES = Path(__file__).parents[3] / "dashboards/generated/prometheus"
START_MS = 1_763_712_000_000
SCRAPE_S = 15
_PARTITIONS = 4

_FIRED = re.compile(
    r"alertname: (?P<name>\w+), time: (?P<time>\w+),\s+exp:\[\s*\],?\s+"
    r"got:\[(?P<got>.*?)\n\s*\]",
    re.DOTALL,
)
_NOT_SHOWN = {"alertname", "job", "name"}
_ONE = re.compile(r"Labels:\{(?P<labels>.*?)\}\s+Annotations:\{(?P<notes>.*)\}")


class Firing(NamedTuple):
    """An alert that fires.

    Attributes:
        name: Of the alert.
        labels: What tells it from others of the name.
        description: With its figures.
    """

    name: str
    labels: tuple[tuple[str, str], ...]
    description: str

    def __str__(self) -> str:
        """Return name and labels in one line, without labels that are always equal."""
        shown = [value for name, value in self.labels if name not in _NOT_SHOWN]
        return " ".join((self.name, *shown))


def simulated_alerts(
    scenario: str, seed: int, report: Path | None = None
) -> dict[int, list[Firing]]:
    """Run a scenario at normal speed through the rules, scraped every 15 s.

    Args:
        scenario: Name or path.
        seed: Decides what the scenario leaves to chance.
        report: Where to write the report with detail.

    Returns:
        By minute since the beginning, what fires then.
    """
    monitor = Monitor()
    chosen = load_scenario(scenario)
    records = list(simulation_of(chosen, seed, START_MS, _PARTITIONS).records)
    series: defaultdict[str, dict[int, float]] = defaultdict(dict)
    batches = Histogram()
    for scrape, (batch, clock_ms) in enumerate(_batches(records)):
        monitor.read(batch, clock_ms)
        batches.observe(1_000)
        for name, value in _samples(_running(monitor.snapshot, batches)):
            series[name][scrape] = value
    if report:
        report.write_text(json.dumps(monitor.report(with_detail=True)))
    return _fired(series, scrape)


def _batches(records: Sequence[TopicRecord]) -> Iterator[tuple[list[TopicRecord], int]]:
    """Yield what each scrape has read, and its event time."""
    times = [record.timestamp_ms for record in records]
    least = list(accumulate(reversed(times), min))[::-1]
    begin = 0
    while begin < len(records):
        until_ms = least[begin] // (SCRAPE_S * 1000) * SCRAPE_S * 1000 + SCRAPE_S * 1000
        end = next(
            (i for i in range(begin, len(times)) if least[i] >= until_ms), len(times)
        )
        yield list(records[begin:end]), min([until_ms, *least[end : end + 1]])
        begin = end


def _running(snapshot: Snapshot, batches: Histogram) -> Snapshot:
    """Return the figures as a job that is not behind exports them."""
    return replace(
        snapshot,
        primed=True,
        tap_labels=tuple(sorted(snapshot.taps)),
        views={
            prefix: replace(views, labels=tuple(sorted(views.totals)))
            for prefix, views in snapshot.views.items()
        },
        job=JobFigures(
            running=True, event_time_lag_seconds=0.0, batch_duration=batches
        ),
    )


def _samples(snapshot: Snapshot) -> Iterator[tuple[str, float]]:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: snapshot))
    for family in registry.collect():
        for sample in family.samples:
            labels = sample.labels | {"job": "sds-monitor"}
            # Nothing is decided by the buckets.
            if not sample.name.endswith("_bucket"):
                pairs = ", ".join(f'{k}="{v}"' for k, v in sorted(labels.items()))
                yield f"{sample.name}{{{pairs}}}", sample.value


def _fired(series: dict[str, dict[int, float]], last: int) -> dict[int, list[Firing]]:
    """Query promtool for all alerts at every minute: it prints unexpected ones."""
    minutes = range(last * SCRAPE_S // 60 + 1)
    group = {
        "interval": f"{SCRAPE_S}s",
        "input_series": [
            {
                "series": name,
                "values": " ".join(
                    str(values.get(scrape, "_")) for scrape in range(last + 1)
                ),
            }
            for name, values in series.items()
        ],
        "alert_rule_test": [
            {"alertname": name, "eval_time": f"{minute}m", "exp_alerts": []}
            for name in sorted({alert.name for alert in alerts()})
            for minute in minutes
        ],
    }
    asked: dict[str, Any] = {
        "rule_files": [str(file) for file in sorted(RULES.glob("*.yml"))],
        "evaluation_interval": "1m",
        # Else the order is left to chance, and alerts see what was recorded before.
        "group_eval_order": [
            group["name"]
            for name in ("recording", "alerts")
            for group in yaml.safe_load((RULES / f"{name}.yml").read_text())["groups"]
        ],
        "tests": [group],
    }
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "asked.yml"
        file.write_text(yaml.safe_dump(asked, width=1_000_000))
        done = subprocess.run(
            ["promtool", "test", "rules", file], capture_output=True, text=True
        )
    found: defaultdict[int, list[Firing]] = defaultdict(list)
    for told in _FIRED.finditer(done.stdout + done.stderr):
        for one in _ONE.finditer(told["got"]):
            labels, notes = _pairs(one["labels"]), _pairs(one["notes"])
            found[_minute(told["time"])].append(
                Firing(told["name"], tuple(labels.items()), notes["description"])
            )
    return found


def _pairs(text: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', text))


def _minute(duration: str) -> int:
    hours, minutes = re.match(r"(?:(\d+)h)?(?:(\d+)m)?", duration).groups("0")  # type: ignore[union-attr]
    return 60 * int(hours) + int(minutes)


def told(fired: dict[int, list[Firing]]) -> Iterator[str]:
    """Yield a line for each alert when it begins and when it ends."""
    before: set[str] = set()
    for minute in range(max(fired, default=-1) + 1):
        now = fired.get(minute, [])
        for one in now:
            if str(one) not in before:
                yield f"{minute:3d} min  {one}: {one.description}"
        for gone in sorted(before - {str(one) for one in now}):
            yield f"{minute:3d} min  {gone}: ends"
        before = {str(one) for one in now}


@click.command()
@click.option("--scenario", required=True, help="Name, or path of a TOML file.")
@click.option("--seed", default=1, show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="With detail.")
def main(scenario: str, seed: int, report: Path | None) -> None:
    """Print the alerts of a simulation by minute."""
    for line in told(simulated_alerts(scenario, seed, report)):
        click.echo(line)


if __name__ == "__main__":
    main()
