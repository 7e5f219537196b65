"""Measures whether `run` keeps up with 200 frames a second of which 5 % are hostile.

    python -m benchmarks.hostile --help

Simulated traffic is written to the embedded broker at the pace of its times, once as it
is and once with hostile frames in a channel of their own. `run` follows it; each second
its `/metrics` says how far it is behind in event time. The first 30 s, in which it
starts, are left out.

Limits of the result: broker, writer and job share the machine.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import click
import httpx
from prometheus_client.parser import text_string_to_metric_families

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.simulator.records import simulated_records
from sds_core.simulation.truth import Truth
from streaming.cli.values import Number
from tests.support.hostile.mixture import healthy, mixed
from tests.support.streaming.command import page_of, started

_PARTITIONS = 2
_START_S = 30


@click.command(help=__doc__)
@click.option(
    "--seconds",
    type=Number(min=_START_S + 10),
    default=180.0,
    help="Length of the traffic.",
)
def main(seconds: float) -> None:
    """Play both, and print how far the job was behind."""
    click.echo(f"{'traffic':10} records  s behind: median   p95  most   end")
    for name, change in (("healthy", iter), ("hostile", mixed)):
        scenario = healthy(seconds)
        start_ms = time.time_ns() // 1_000_000
        traffic = simulated_records(
            scenario, 1, start_ms, _PARTITIONS, Truth(scenario.name, 1)
        )
        behind, written = _follow(list(change(traffic)), seconds)
        median, p95 = statistics.median(behind), statistics.quantiles(behind, n=20)[-1]
        click.echo(
            f"{name:10} {written:7,} {median:17.1f} {p95:5.1f} {max(behind):5.1f}"
            f" {behind[-1]:5.1f}"
        )


def _follow(records: Iterable[TopicRecord], seconds: float) -> tuple[list[float], int]:
    """Write the records at their pace; return lags in seconds, and their number."""
    behind: list[float] = []
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedBroker() as broker,
    ):
        kafka = KafkaSettings(broker.bootstrap, "frames")
        ensure_frames_topic(kafka, _PARTITIONS)
        written: list[int] = []
        writer = threading.Thread(
            target=lambda: written.append(write(records, kafka, speed=1.0))
        )
        with started(kafka, Path(directory), "--no-history-topics") as process:
            url = page_of(process)
            writer.start()
            time.sleep(_START_S)
            for _ in range(int(seconds) - _START_S):
                time.sleep(1)
                behind.append(_seconds_behind(url))
            writer.join()
    return behind, written[0]


def _seconds_behind(url: str) -> float:
    text = httpx.get(f"{url}metrics", timeout=30).text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "sds_monitor_event_time_lag_seconds":
                return sample.value
    message = "the monitor does not say how far it is behind"
    raise LookupError(message)


if __name__ == "__main__":
    main()
