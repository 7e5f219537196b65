"""``sds-monitor run`` with a wrong clock, and with more clients than descriptors."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from tests.support.frames import FrameFactory, value_of
from tests.support.streaming.command import is_ready, page_of, started
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

LEFT = 46
"""Descriptors that are left to the job before its clients come."""

SLOW_CLOCK = """\
import time
time_, time_ns_ = time.time, time.time_ns
time.time = lambda: time_() - 180
time.time_ns = lambda: time_ns_() - 180_000_000_000
"""
"""Run at the start of each process of Python: its clock is three minutes slow."""


def live_records(count: int) -> list[TopicRecord]:
    """Messages of one channel that were received just now, on one partition."""
    now_ms = time.time_ns() // 1_000_000
    frames = FrameFactory("town")
    return [
        TopicRecord(
            0,
            now_ms + n,
            b"town",
            value_of(frames.content(f"m{now_ms}-{n}", "ana", now_ms + n)),
            (),
        )
        for n in range(count)
    ]


@pytest.fixture
def slow_clock(tmp_path: Path) -> dict[str, str]:
    """Variables of a process whose clock is slow, and those of its workers."""
    directory = tmp_path / "slow"
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(SLOW_CLOCK)
    paths = [str(directory), os.getcwd(), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def test_slow_clock_is_reported_before_anyone_looks_for_dead_letters(
    topic: Callable[..., KafkaSettings], tmp_path: Path, slow_clock: dict[str, str]
) -> None:
    """In log, metrics and the first sentence of the page; the job goes on."""
    kafka = topic()
    with started(kafka, tmp_path, environment=slow_clock) as process:
        url = page_of(process)
        wait_for(lambda: is_ready(url))
        write(live_records(10), kafka)

        def exported(name: str) -> float:
            for line in httpx.get(f"{url}metrics").text.splitlines():
                series, _, value = line.rpartition(" ")
                if series == name:
                    return float(value)
            return 0.0

        dead = 'sds_undecodable_frames_total{reason="future_timestamp"}'
        wait_for(lambda: exported(dead) == 10)
        wait_for(lambda: 170 < exported("sds_monitor_clock_behind_seconds") < 190)
        assert exported("sds_monitor_ok") == 0
        first = httpx.get(url).text
        assert "The monitor&#39;s clock differs from other clocks by over " in first
        assert "behind Kafka&#39;s." in httpx.get(f"{url}monitor").text
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert (
        "s behind Kafka's: set both clocks by NTP" in (tmp_path / "stderr").read_text()
    )


@contextmanager
def endless_clients(url: str) -> Iterator[None]:
    """Clients that take every connection there is, and half of them a request too."""
    address = urlsplit(url)
    stop = threading.Event()

    def attack() -> None:
        taken: list[socket.socket] = []
        while not stop.wait(0.02):
            with suppress(OSError):
                taken.append(
                    socket.create_connection((address.hostname, address.port), 0.5)
                )
                if len(taken) % 2:
                    taken[-1].sendall(b"GET /monitor HTTP/1.1\r\nHost: localhost\r\n")
            if len(taken) > 100:
                taken.pop(0).close()
        for one in taken:
            one.close()

    threads = [threading.Thread(target=attack) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_no_number_of_clients_ends_the_job(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """It reads on, and answers once they are gone."""
    kafka = topic()
    written = 0
    with started(kafka, tmp_path, "--log-format", "json") as process:
        url = page_of(process)
        wait_for(lambda: is_ready(url))
        write(live_records(10), kafka)
        written += 10
        wait_for(lambda: httpx.get(f"{url}api/v1/channels").json()["channel_count"])
        monitor = psutil.Process(process.pid)
        limit = monitor.num_fds() + LEFT
        monitor.rlimit(psutil.RLIMIT_NOFILE, (limit, limit))
        log = tmp_path / "stderr"
        with endless_clients(url):
            for _ in range(3):
                write(live_records(10), kafka)
                written += 10
                said = f'"records": {written},'
                while said not in log.read_text():
                    assert process.poll() is None, log.read_text()
                    time.sleep(0.1)
        wait_for(lambda: is_ready(url))
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["totals"]["messages"] == written
    assert "Traceback" not in log.read_text()


def test_soft_limit_of_descriptors_is_raised_to_the_hard_one(tmp_path: Path) -> None:
    """At the start, of this process and its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    kafka = KafkaSettings("127.0.0.1:1", "frames")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        with started(kafka, tmp_path, "--kafka-timeout", "60") as process:
            page_of(process)
            limits = psutil.Process(process.pid).rlimit(psutil.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert limits == (hard, hard)
