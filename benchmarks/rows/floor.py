"""What the job costs when there is little to do: start, end, idle batch, memory."""

from __future__ import annotations

import itertools
import shutil
import sysconfig
import time
import venv
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.context import Context
from benchmarks.data import FEW, records_of
from benchmarks.live import COSTS_S, FLAGS, say_costs
from benchmarks.processes import Monitor, monitor
from benchmarks.topics import Feed, Writer, at_rate, heartbeats
from connectors.kafka.producer import TopicRecord
from connectors.kafka.settings import KafkaSettings

ROW = "little to do"
_ROOT = Path(__file__).parents[2]
_SOURCES = ("connectors", "dashboards", "sds_core", "streaming")
_SETTLED_S = 75
"""After a minute Spark ends the processes with which it planned the query."""
_BEFORE = 100
"""Frames in the topic when the command starts."""


def floor(context: Context) -> None:
    """Follow 3 frames a second on 8 channels, then heartbeats only."""
    frames = (record for record in records_of(FEW) if record.value)
    kafka = context.empty("floor")
    _write(kafka, itertools.islice(frames, _BEFORE))
    with monitor(kafka, *FLAGS) as job:
        job.follow()
        feed, idle = Feed(kafka, at_rate(frames, 3)), Feed(kafka, _idle())
        with feed.running():
            time.sleep(_SETTLED_S)
            what = "3 frames/s on 8 channels"
            say_costs(context, ROW, what, job, feed, seconds=2 * COSTS_S)
        with idle.running():
            time.sleep(3)
            say_costs(context, ROW, "heartbeats only", job, idle, seconds=COSTS_S)


def start(context: Context) -> None:
    """Start and end the command on some frames: prepared, and on a fresh clone."""
    kafka = context.empty("start")
    frames = (record for record in records_of(FEW) if record.value)
    _write(kafka, itertools.islice(frames, _BEFORE))
    for number in range(context.repeat):
        with monitor(kafka, *FLAGS) as job:
            _say_start(context, job, "after `sds-monitor prepare`")
            ended_s = time.monotonic()
            job.process.terminate()
            job.wait_for_end()
            context.say(ROW, "SIGTERM to end", "s", time.monotonic() - ended_s)
        clone = _clone(context.directory / f"clone-{number}")
        environment = {"PYTHONPATH": str(clone), "PYTHONSAFEPATH": "1"}
        python = clone / "environment" / "bin" / "python"
        with monitor(kafka, *FLAGS, python=python, environment=environment) as job:
            _say_start(context, job, "on a fresh clone")


def _say_start(context: Context, job: Monitor, how: str) -> None:
    job.follow()
    job.wait_for_frames(_BEFORE)
    started_s = time.monotonic() - job.started_s
    what = f"time from the command to the first figures, {how}"
    context.say(ROW, what, "s", started_s)


def _clone(place: Path) -> Path:
    """Copy the sources, with an environment in which nothing was prepared.

    Neither has Python compiled the sources, nor was `sds-monitor prepare` run. What pip
    has installed and compiled is that of the running environment, because a download
    says nothing about this program.
    """
    for name in _SOURCES:
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(_ROOT / name, place / name, ignore=unwanted)
    venv.create(place / "environment", symlinks=True)
    (packages,) = place.glob("environment/lib/python*/site-packages")
    (packages / "installed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place


def _write(kafka: KafkaSettings, frames: Iterable[TopicRecord]) -> None:
    """Write frames, then a heartbeat to each partition, so that all can be read."""
    writer = Writer(kafka)
    for frame in itertools.chain(frames, heartbeats({"tap-idle": 0})):
        now_ms = time.time_ns() // 1_000_000
        writer.write(replace(frame, timestamp_ms=now_ms))
    writer.flush()


def _idle() -> Iterator[tuple[float, TopicRecord]]:
    """Yield a heartbeat per second and partition, without an end."""
    for second in itertools.count():
        for one in heartbeats({"tap-idle": second + 1}):
            yield second, one
