"""What a running job takes: memory, threads, files; read from outside."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil

from benchmarks.processes import heap_bytes, is_java, sums_of, tree_of
from benchmarks.results import quantile
from streaming.damage import LEDGER

_SCRAPE_S = 1.0
_PAGES_EVERY = 5
"""Scrapes of /metrics to one of all pages."""
_PAGES = (
    *("", "monitor", "taps", "incidents", "planning", "runbooks", "views/mvds"),
    *("api/v1/channels", "api/v1/taps", "api/v1/incidents?limit=100"),
)

Sample = dict[str, float]
"""A value by the key of its measure (`trends.MEASURES`)."""


@dataclass
class Scraper:
    """Asks a monitor for its metrics each second, and for pages every five.

    Attributes:
        url: Its status page.
        requests: Requests so far.
        failures: Those that were not answered with 200; a line each.
    """

    url: str
    requests: int = 0
    failures: list[str] = field(default_factory=list)
    _sums: dict[str, float] = field(default_factory=dict)
    _lags_s: list[float] = field(default_factory=list)
    _ending: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[Scraper]:
        """Ask in the background."""
        thread = threading.Thread(target=self._run, name="scraper", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            thread.join()

    def take(self) -> dict[str, float]:
        """Return the newest sums of the series, and `age` since the last call.

        `age` is the 95th percentile of the event-time lag, seconds.
        """
        lags_s, self._lags_s = self._lags_s, []
        return {**self._sums, "age": quantile(lags_s or [0.0], 95)}

    def _run(self) -> None:
        number = 0
        with httpx.Client(base_url=self.url, timeout=60) as client:
            while not self._ending.wait(_SCRAPE_S):
                self._sums = sums_of(self._get(client, "metrics")) or self._sums
                lag_s = self._sums.get("sds_monitor_event_time_lag_seconds", 0.0)
                self._lags_s.append(lag_s)
                if number % _PAGES_EVERY == 0:
                    for page in _PAGES:
                        self._get(client, page)
                number += 1

    def _get(self, client: httpx.Client, page: str) -> str:
        self.requests += 1
        try:
            answer = client.get(page)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            self.failures.append(f"{time.strftime('%H:%M:%S')} /{page}: {error}")
            return ""
        return answer.text


class Sampler(NamedTuple):
    """Measures a job and its mirror.

    Attributes:
        job: Process id of the driver.
        mirror: Process id of the mirror.
        checkpoint: Directory of the job's state.
        temporary: Directory of the job's temporary files.
        scraper: Has what the job exports.
    """

    job: int
    mirror: int
    checkpoint: Path
    temporary: Path
    scraper: Scraper

    def sample(self) -> Sample:
        """Return a value of each measure; takes about a second."""
        sums = self.scraper.take()
        return {
            **self._processes(),
            **self._files(),
            "age": sums["age"],
            "state bytes": sums.get("sds_monitor_state_bytes", 0.0),
            "channels": sums.get("sds_monitor_state_channels", 0.0),
            "groups": sums.get("sds_monitor_state_groups", 0.0),
            "series": float(len(sums)),
            "pending": sums.get("sds_monitor_history_pending", 0.0),
        }

    def _processes(self) -> Sample:
        java = next(one for one in tree_of(self.job) if is_java(one))
        heap = float(heap_bytes(java.pid))
        driver, mirror = psutil.Process(self.job), psutil.Process(self.mirror)
        known = {driver.pid, java.pid}
        workers = [one for one in tree_of(self.job) if one.pid not in known]
        roles = {"driver": [driver], "JVM": [java], "mirror": [mirror]}
        values = {"heap": heap, "workers memory": _memory(workers)}
        for role, processes in roles.items():
            values[f"{role} memory"] = _memory(processes)
            values[f"{role} threads"] = float(processes[0].num_threads())
            values[f"{role} descriptors"] = float(processes[0].num_fds())
        return values

    def _files(self) -> Sample:
        history = self.checkpoint / "history"
        sizes = _sizes(self.checkpoint)
        values = {"ledger bytes": 0.0}
        parts: dict[str, list[int]] = {"checkpoint": [], "history": []}
        for path, size in sizes.items():
            if path.name.startswith(LEDGER):
                values["ledger bytes"] += size
            elif path.is_relative_to(history):
                parts["history"].append(size)
            else:
                parts["checkpoint"].append(size)
        parts["temporary"] = [*_sizes(self.temporary).values()]
        for part, found in parts.items():
            values[f"{part} files"] = float(len(found))
            values[f"{part} bytes"] = float(sum(found))
        return values


def _memory(processes: Iterable[psutil.Process]) -> float:
    """Return the proportional set size of some processes, bytes."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_full_info().pss
    return total


def _sizes(directory: Path) -> dict[Path, int]:
    """Return the size of each file, but for those deleted meanwhile."""
    sizes: dict[Path, int] = {}
    # `os.walk` passes over directories that are deleted meanwhile; `Path.rglob` fails.
    for place, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                path = Path(place, name)
                sizes[path] = path.stat().st_size
    return sizes
