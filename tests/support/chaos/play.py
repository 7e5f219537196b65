"""Plays traffic through everything, kills everything, and judges the report."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.simulator.records import simulation_of
from sds_core.simulation.comparison import compare
from sds_core.simulation.log import PUBSUB_TOPIC
from tests.support.chaos.copying import Copying
from tests.support.chaos.errors import expect
from tests.support.chaos.job import Job
from tests.support.chaos.plan import COPYING, JOB, Strike, Victim, strikes
from tests.support.chaos.traffic import groups, scenario
from tests.support.history.stored import Kept, in_files, in_topics
from tests.support.identities import assert_identities
from tests.support.kafka import free_port
from tests.support.soak.breaks import Kill
from tests.support.soak.commands import Command
from tests.support.soak.mirrored import STORE_S, assert_all_mirrored
from tests.support.soak.stage import Stage, TapRecord, tap_records
from tests.support.waiting import wait_for
from tests.support.waku_node import ConformanceNode

_PARTITIONS = 4
_CACHE = 3_000
_READ_S = 600.0
_KILLED, _UNDISTURBED = "killed", "undisturbed"
"""Directories, and first parts of the names of topics, of the two jobs."""

Say = Callable[[str], None]


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        kills: Number of kills of each victim.
        stops: Number of orderly stops of the broker.
        seconds: Length of the run.
        starts: Starts of the job.
        recoveries_s: Times from a start of the job to its first batch.
        records: Records in the topic, heartbeats included.
        differences: What differs from the undisturbed run or the truth; a line each.
    """

    kills: Counter[str] = field(default_factory=Counter)
    stops: int = 0
    seconds: float = 0.0
    starts: int = 0
    recoveries_s: list[float] = field(default_factory=list)
    records: int = 0
    differences: list[str] = field(default_factory=list)

    def __add__(self, other: Outcome) -> Outcome:
        """Return that of two plays."""
        return Outcome(
            self.kills + other.kills,
            self.stops + other.stops,
            self.seconds + other.seconds,
            self.starts + other.starts,
            self.recoveries_s + other.recoveries_s,
            self.records + other.records,
            self.differences + other.differences,
        )


class Play:
    """A node with simulated traffic, a mirror, its audit, a broker and the job.

    Args:
        directory: For all files.
        seed: Of traffic and kills.
        say: Takes a line for each kill.
    """

    def __init__(self, directory: Path, seed: int, say: Say) -> None:
        self._directory = directory
        self._seed = seed
        self._say = say
        self._mirror_kills: list[Kill] = []
        self._outage: Future[None] = Future()
        self._outage.set_result(None)
        self.outcome = Outcome()

    def run(self, kills: int) -> Outcome:
        """Play until so many kills are done; return what it came to."""
        begun_s = time.monotonic()
        with (
            EmbeddedBroker(self._directory / "kafka", port=free_port()) as self._broker,
            ConformanceNode(relay_capacity=_CACHE) as self._node,
            ThreadPoolExecutor(2) as self._background,
        ):
            self._kafka = KafkaSettings(self._broker.bootstrap)
            ensure_frames_topic(self._kafka, _PARTITIONS)
            self._groups = replace(self._kafka, topic="groups")
            ensure_frames_topic(self._groups, 1)
            try:
                stage = self._act(kills)
                self._judge(stage)
            except AssertionError as error:
                ended = f"{type(error).__name__}: {error}"
                self._say(ended)
                self.outcome.differences.append(ended)
        self.outcome.seconds = time.monotonic() - begun_s
        return self.outcome

    def _act(self, kills: int) -> Stage:
        """Play and kill; everything has ended when this returns."""
        stage = Stage(scenario(), self._seed, self._node)
        mirror = Command(
            "mirror",
            self._directory / "mirror.log",
            bootstrap=self._kafka.bootstrap,
            rest=self._node.url,
            pubsub_topic=PUBSUB_TOPIC,
            state=self._directory / "mirror",
            cache_messages=_CACHE,
            metrics_port=0,
            # On a busy machine it must not take the node for unreachable.
            rest_timeout=120,
        )
        copying = Copying(self._directory, self._kafka)
        with mirror, copying.running():
            wait_for(lambda: self._node.calls)
            playing = stage.begin()
            writing = self._background.submit(self._write_groups, stage.ending)
            try:
                with self._monitor(_KILLED) as command:
                    job = Job(command, self._checkpoint(_KILLED), Random(self._seed))
                    self._strike_all(kills, job, mirror, copying)
                    self.outcome.starts = job.starts
                    self.outcome.recoveries_s = job.recoveries_s
                    stage.ending.set()
                    expect(writing.result() > 0, "no record of MVDS was written")
                    time.sleep(STORE_S)
                    expect(mirror.end() == 0, "the mirror did not end in order")
                    expect(command.end() == 0, "the job did not end in order")
                    copying.finish({one.waku_hash for one in self._frames()})
            finally:
                stage.ending.set()
                playing.join()
        return stage

    def _write_groups(self, ending: threading.Event) -> int:
        """Write the payloads of MVDS in real time; return the number of records.

        Their topic has one partition. If a tap is late, the order in which a job takes
        payloads of several partitions depends on its batches.
        """
        start_ms = time.time_ns() // 1_000_000
        records, _ = simulation_of(groups(), self._seed, start_ms, partitions=1)
        return write(records, self._groups, 1.0, ending)

    def _strike_all(
        self, kills: int, job: Job, mirror: Command, copying: Copying
    ) -> None:
        begun_s = time.monotonic()
        for number, strike in enumerate(strikes(kills, self._seed), 1):
            if strike.victim in JOB:
                said = job.strike(strike)
            else:
                time.sleep(strike.delay_s)
                said = self._strike_other(strike, mirror, copying)
            if strike.victim.is_killed:
                self.outcome.kills[strike.victim] += 1
            else:
                self.outcome.stops += 1
            passed_s = time.monotonic() - begun_s
            self._say(f"{number:4} {passed_s:7.1f} s  {strike.victim:15}  {said}")
        self._outage.result()
        job.wait_until_read()

    def _strike_other(self, strike: Strike, mirror: Command, copying: Copying) -> str:
        if strike.victim in COPYING:
            return copying.strike(strike.victim)
        if strike.victim is Victim.MIRROR:
            expect(mirror.process.poll() is None, "the mirror ended by itself")
            killed_ms = time.time_ns() / 1e6
            mirror.kill()
            self._mirror_kills.append(Kill(killed_ms, time.time_ns() / 1e6))
            mirror.start()
            return "started again"
        self._outage.result()
        if strike.victim is Victim.BROKER:
            os.kill(self._broker.pid, signal.SIGKILL)
        self._broker.stop()
        # The next kill need not wait for its return.
        self._outage = self._background.submit(self._bring_back, strike.down_s)
        return f"away for {strike.down_s:.1f} s"

    def _bring_back(self, down_s: float) -> None:
        time.sleep(down_s)
        self._broker.start()

    def _checkpoint(self, name: str) -> Path:
        return self._directory / name / "checkpoint"

    def _monitor(self, name: str, **options: object) -> Command:
        (self._directory / name).mkdir(exist_ok=True)
        return Command(
            "run",
            self._directory / name / "run.log",
            bootstrap=self._kafka.bootstrap,
            topic=f"{self._kafka.topic},{self._groups.topic}",
            checkpoint=self._checkpoint(name),
            incidents_topic=f"{name}.incidents",
            minutes_topic=f"{name}.minutes",
            metrics_port=0,
            # One batch after the other: most kills meet one.
            trigger=0,
            report_detail=True,
            **options,
        )

    def _judge(self, stage: Stage) -> None:
        """Compare the report with the undisturbed one's and with the truth."""
        found, differences = self.outcome, self.outcome.differences
        killed, undisturbed = self._report(_KILLED), self._report(_UNDISTURBED)
        differences += differing("report", killed, undisturbed)
        for part, ours, theirs in zip(
            Kept._fields,
            self._history(_KILLED),
            self._history(_UNDISTURBED),
            strict=True,
        ):
            differences += differing(f"history.{part}", ours, theirs)
        records = tap_records(self._kafka)
        found.records = len(records)
        # The truth of MVDS counts all of the simulation, also what was not written.
        if not undisturbed["views"]["mvds"]["totals"]["payloads"]:
            differences.append("views.mvds: the report has no payload")
        differences += [
            f"truth: {one}"
            for one in compare(stage.truth(records), killed)
            if not one.same
        ]
        frames = {one.hash for one in self._node.offers}
        assert_all_mirrored(self._node, records, self._mirror_kills, frames)

    def _report(self, name: str) -> dict[str, Any]:
        """Let a job read the rest of the topic, and return its report."""
        path = self._directory / name / "report.json"
        with self._monitor(name, until_caught_up=True, report=path) as command:
            expect(command.process.wait(_READ_S) == 0, f"{name}: no report")
        report = json.loads(path.read_text())
        assert_identities(report)
        assert isinstance(report, dict)
        del report["generated_at"]
        return report

    def _frames(self) -> list[TapRecord]:
        return [one for one in tap_records(self._kafka) if one.is_frame]

    def _history(self, name: str) -> Kept:
        """Return what the history holds, in its files and in its topics alike."""
        kept = in_files(self._checkpoint(name) / "history")
        sent = in_topics(self._kafka, f"{name}.incidents", f"{name}.minutes")
        for part, ours, theirs in zip(Kept._fields, kept, sent, strict=True):
            self.outcome.differences += differing(f"{name}.{part}", ours, theirs)
        return kept


def differing(path: str, ours: Any, theirs: Any) -> Iterator[str]:
    """Yield a line for each value that differs between two trees."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in sorted({*ours, *theirs}, key=str):
            yield from differing(f"{path}.{key}", ours.get(key), theirs.get(key))
    elif ours != theirs:
        yield f"{path}: {ours!r:.200} instead of {theirs!r:.200}"
