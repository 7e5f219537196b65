"""Processes of the contenders: their CPU time, memory and batches."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import psutil

from connectors.kafka.settings import KafkaSettings
from tests.support.streaming.command import page_of, started

TIMEOUT_S = 600.0
_POLL_S = 0.05


class ContenderFailed(RuntimeError):
    """A contender ended with an error, or did not end."""


def tree_of(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and its descendants, seconds.

    That of descendants that ended is included once their parent has waited for them.
    """
    total = 0.0
    for process in tree_of(pid):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
            total += times.children_user + times.children_system
    return total


def memory_bytes(pid: int) -> int:
    """Return the memory of a process and its descendants.

    Pages that several processes share count once (proportional set size).
    """
    total = 0
    for process in tree_of(pid):
        with contextlib.suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total


def is_java(process: psutil.Process) -> bool:
    """Whether a process is a running JVM."""
    try:
        return process.name() == "java"
    except psutil.NoSuchProcess:
        return False


def heap_bytes(pid: int) -> int:
    """Return what a collection leaves of the heap of a JVM: the live objects.

    The size of the heap right after a collection includes what was made since.
    """
    said = subprocess.run(  # noqa: S603 - fixed words
        ["jcmd", str(pid), "GC.class_histogram"],  # noqa: S607 - of the JDK in PATH
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # Total, objects, bytes.
    return int(said.split()[-1])


class Commit(NamedTuple):
    """The end of a batch.

    Attributes:
        planned_s: When Spark had written the batch's plan, Unix seconds.
        at_s: When it had written the commit, Unix seconds.
        cpu_s: CPU time of all processes of the job until then, seconds.
        records: Records read until then.
    """

    planned_s: float
    at_s: float
    cpu_s: float
    records: int

    @property
    def seconds(self) -> float:
        """From the plan to the commit."""
        return self.at_s - self.planned_s


class CommitWatch:
    """Follows the commits of a Spark query by the files of its checkpoint.

    Any query has them, so the job and the other contenders are timed alike.

    Args:
        checkpoint: Directory of the checkpoint; need not exist yet.
        pid: The driver's process.
    """

    def __init__(self, checkpoint: Path, pid: int) -> None:
        self._checkpoint = checkpoint
        self._pid = pid
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.commits: list[Commit] = []

    @contextmanager
    def running(self) -> Iterator[CommitWatch]:
        """Follow in the background."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            self._thread.join()

    def _run(self) -> None:
        while True:
            ending = self._ending.wait(_POLL_S)
            while commit := self._next():
                self.commits.append(commit)
            if ending:
                return

    def _next(self) -> Commit | None:
        """Return the next commit; None if there is none yet."""
        number = str(len(self.commits))
        committed = self._checkpoint / "commits" / number
        planned = self._checkpoint / "offsets" / number
        if not committed.exists():
            return None
        # Records up to the end of the batch.
        offsets = json.loads(planned.read_text().splitlines()[2])
        if "records" in offsets:
            records = int(offsets["records"])
        else:
            records = sum(sum(topic.values()) for topic in offsets.values())
        return Commit(
            planned.stat().st_mtime,
            committed.stat().st_mtime,
            cpu_s(self._pid),
            records,
        )


class Drain(NamedTuple):
    """What a contender read, and how long it took.

    Attributes:
        records: Records in the time that counts.
        seconds, cpu_s: That time, and the CPU time of all its processes.
    """

    records: int
    seconds: float
    cpu_s: float

    @property
    def per_second(self) -> float:
        """Records per second."""
        return self.records / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU time per record, microseconds."""
        return self.cpu_s / self.records * 1e6


def warm(commits: Sequence[Commit], left_out: int) -> Drain:
    """Return the rate without the first batches.

    Args:
        commits: The batches that had records.
        left_out: Number of batches that do not count.

    Raises:
        ContenderFailed: There were too few.
    """
    full = [
        after
        for before, after in zip([Commit(0, 0, 0, 0), *commits], commits, strict=False)
        if after.records > before.records
    ]
    if len(full) < left_out + 2:
        message = f"only {len(full)} batches, of which {left_out} are left out"
        raise ContenderFailed(message)
    first, last = full[left_out - 1], full[-1]
    return Drain(
        last.records - first.records,
        last.at_s - first.at_s,
        last.cpu_s - first.cpu_s,
    )


def run_contender(module: str, *words: str) -> dict[str, Any]:
    """Run a contender to its end; returns the object that its last line holds.

    Raises:
        ContenderFailed: It ended with an error.
    """
    command = [sys.executable, "-m", f"benchmarks.contenders.{module}", *words]
    done = subprocess.run(  # noqa: S603 - fixed words
        command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    if done.returncode:
        message = f"{' '.join(command)}: {done.stderr[-3000:]}"
        raise ContenderFailed(message)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def sums_of(metrics: str) -> dict[str, float]:
    """Return the series of a page of metrics by name, summed over their labels."""
    sums: dict[str, float] = {}
    for line in metrics.splitlines():
        if not line.startswith("#"):
            name, value = line.partition("{")[0].split(" ")[0], line.split(" ")[-1]
            sums[name] = sums.get(name, 0.0) + float(value)
    return sums


@dataclass
class Monitor:
    """A running ``sds-monitor run``.

    Attributes:
        process: The driver.
        url: Its status page.
        directory: Holds checkpoint and report.
        watch: Its commits.
        started_s: `time.monotonic` at its start.
    """

    process: subprocess.Popen[str]
    directory: Path
    watch: CommitWatch
    started_s: float
    url: str = field(default="")

    @property
    def report(self) -> dict[str, Any]:
        """The report that it wrote at its end."""
        report: dict[str, Any] = msgspec.json.decode(
            (self.directory / "report.json").read_bytes()
        )
        return report

    def sums(self) -> dict[str, float]:
        """Return `/metrics` by name, each summed over its labels.

        Raises:
            ContenderFailed: It does not answer.
        """
        try:
            text = httpx.get(f"{self.url}metrics", timeout=60).text
        except httpx.HTTPError as error:
            log = (self.directory / "stderr").read_text()[-2000:]
            message = f"/metrics does not answer ({error}): {log}"
            raise ContenderFailed(message) from error
        return sums_of(text)

    def frames(self) -> int:
        """Return how many frames the figures of `/metrics` include."""
        found = self.sums()
        names = ("sds_frames_total", "sds_replicas_total")
        return int(sum(found.get(name, 0.0) for name in names))

    def wait_for_frames(self, count: int) -> None:
        """Wait until the figures include so many frames.

        Raises:
            ContenderFailed: They do not, after the time limit.
        """
        deadline_s = time.monotonic() + TIMEOUT_S
        while (found := self.frames()) < count:
            if time.monotonic() > deadline_s or self.process.poll() is not None:
                log = (self.directory / "stderr").read_text()[-2000:]
                message = f"{found} of {count} frames are in the figures: {log}"
                raise ContenderFailed(message)
            time.sleep(2 * _POLL_S)

    def wait_for_end(self) -> None:
        """Wait until the command ends.

        Raises:
            ContenderFailed: It ended with an error.
        """
        if self.process.wait(TIMEOUT_S):
            log = (self.directory / "stderr").read_text()[-2000:]
            raise ContenderFailed(log)

    def follow(self) -> None:
        """Wait until it serves its page."""
        self.url = page_of(self.process)


@contextmanager
def monitor(kafka: KafkaSettings, *flags: str, **program: Any) -> Iterator[Monitor]:
    """Run ``sds-monitor run`` on a topic with a new checkpoint.

    Args:
        kafka: Cluster and topic.
        flags: Further options.
        program: Python and environment, for `started`.
    """
    with tempfile.TemporaryDirectory(
        # A process of Spark may write for a moment after the command's end.
        prefix="sds-monitor-bench-",
        ignore_cleanup_errors=True,
    ) as name:
        directory = Path(name)
        started_s = time.monotonic()
        with started(kafka, directory, *flags, **program) as process:
            watch = CommitWatch(directory / "checkpoint", process.pid)
            with watch.running():
                yield Monitor(process, directory, watch, started_s)
