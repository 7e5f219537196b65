"""The commit of a batch, ended between each two of its steps.

The process ends at the step: the next one has the files as they are then, and Spark
repeats the batch, or plans it again in two parts.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connectors.kafka.producer import TopicRecord
from connectors.recording import load_recording
from sds_core.observer.dead_letter_view import DeadLetter
from sds_core.observer.incidents import IncidentQuery
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.record import RawRecord
from sds_core.observer.settings import DEFAULTS
from streaming.ledger.findings import Destination
from tests.support.monitor import batches
from tests.support.streaming.history import pending
from tests.support.streaming.steps import Killed, Steps
from tests.support.toy.league import LEAGUE
from tests.support.toy.pipeline import Pipeline
from tests.support.toy.protocol import TOY

ALL_PROTOCOLS = (*PROTOCOLS, TOY, LEAGUE)
KINDS = kinds_of(ALL_PROTOCOLS)
HOUR_MS = 3_600_000
SETTINGS = replace(DEFAULTS, forget_ms=2 * HOUR_MS)
ALL = 1_000_000
LEFT_OUT = (b"mountain-hut", b"ana-and-ben")
"""Channels of the recording that are not read: to the taps, these are holes."""

Batch = tuple[Sequence[RawRecord], int]


class DeadLetterTopic:
    """Gets dead letters; those with the same source are one."""

    def __init__(self) -> None:
        self.letters: dict[tuple[int, int], Any] = {}

    def write(self, letters: Sequence[DeadLetter]) -> int:
        """Add letters; all are written."""
        for one in letters:
            self.letters[one.partition, one.offset] = one
        return 0


def raw(records: Sequence[TopicRecord], begin: int = 0) -> list[RawRecord]:
    """The records of a topic with one partition."""
    return [
        RawRecord(0, begin + n, one.timestamp_ms, one.key, one.value, list(one.headers))
        for n, one in enumerate(records)
    ]


def traffic() -> list[Batch]:
    """The recording with what is no frame, and records of both toys, in batches.

    After it comes silence, in which first minutes end and then all is forgotten.
    """
    records = [
        replace(one, partition=0) for one in load_recording() if one.key not in LEFT_OUT
    ]
    records.sort(key=lambda one: one.timestamp_ms)
    tap = ("observer", b"tap-1")
    for n in range(0, len(records), 30):
        at_ms = records[n].timestamp_ms
        records.insert(n, TopicRecord(0, at_ms, b"town", b"no frame", (tap,)))
        for name, value in (
            ("toy", f"hall{n % 3}/ada/3"),
            ("league", f"north/m{n % 11}/{n % 5}"),
        ):
            header = ("protocol", name.encode())
            key = value.partition("/")[0].encode()
            records.insert(n, TopicRecord(0, at_ms, key, value.encode(), (tap, header)))
    numbered = raw(records)
    found: list[Batch] = []
    begin = 0
    for batch, clock_ms in batches(records, len(records) // 3 + 1):
        found.append((numbered[begin : begin + len(batch)], clock_ms))
        begin += len(batch)
    end_ms = found[-1][1]
    return found + [
        ([], end_ms + later_ms)
        for later_ms in (HOUR_MS, HOUR_MS + 1, 4 * HOUR_MS, 4 * HOUR_MS + 1)
    ]


def outcome(pipeline: Pipeline) -> dict[str, Any]:
    """Figures, history, incidents and topics, as anybody can see them."""
    snapshot, stores = pipeline.board.snapshot, pipeline.stores
    found: dict[str, Any] = {
        "views": {p: dict(one.totals) for p, one in snapshot.views.items()},
        "remainders": stores.register.remainders(KINDS),
        "taps": dict(snapshot.taps),
        "undecodable": dict(snapshot.undecodable),
        "labels": {prefix: set(one.labels) for prefix, one in stores.labels.items()},
        "keys": stores.register.keys(),
        "details": stores.details and stores.details.latencies("sds"),
        "dead letters": pipeline.dead_letters.letters,
    }
    for prefix, store in stores.by_kind.items():
        found[f"incidents of {prefix}"] = store.findings.find_incidents(IncidentQuery())
        newest = {}
        for row in pending(store.findings, Destination.TOPICS):
            _, *rest = row
            key = rest[:2] if len(rest) > 1 else (rest[0].channel, rest[0].incident.key)
            newest[tuple(key)] = rest
        found[f"history of {prefix}"] = newest
        found[f"last hour of {prefix}"] = store.recent.at(1 << 60)
    return found


def ledger_of(pipeline: Pipeline) -> dict[str, Any]:
    """An outcome without the topic of dead letters, which has no transaction."""
    found = outcome(pipeline)
    del found["dead letters"]
    return found


@pytest.fixture(scope="module")
def before(
    tmp_path_factory: pytest.TempPathFactory,
) -> list[tuple[Pipeline, Batch]]:
    """Each batch, with the job before it; the last ones end the traffic."""
    directory = tmp_path_factory.mktemp("before")
    pipeline = Pipeline(
        directory / "0", ALL_PROTOCOLS, 2, DeadLetterTopic(), settings=SETTINGS
    )
    found = []
    for number, batch in enumerate(traffic()):
        found.append((pipeline, batch))
        pipeline = continued(pipeline, directory / str(number + 1))
        pipeline.batch(*batch)
    found.append((pipeline, ([], 0)))
    return found


def continued(pipeline: Pipeline, directory: Path) -> Pipeline:
    """A job on a copy of a checkpoint, with the same dead-letter topic."""
    topic = DeadLetterTopic()
    topic.letters |= pipeline.dead_letters.letters
    return pipeline.copy(directory, topic)


@pytest.mark.slow
@pytest.mark.parametrize("again", ["as it was", "in two parts"])
@pytest.mark.parametrize("number", [1, 4, 6])
def test_commit_that_ends_between_two_steps_changes_nothing(
    number: int,
    again: str,
    before: list[tuple[Pipeline, Batch]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At any of them; the batches are one of records, and two of timeouts."""
    start, (records, clock_ms) = before[number]
    after, at_end = outcome(before[number + 1][0]), outcome(before[-1][0])
    half = len(records) // 2
    first = records[:half], clock_of(records[:half], start)
    second = records[half:], clock_ms
    undisturbed = continued(start, tmp_path / "undisturbed")
    undisturbed.batch(*first)
    after_first = ledger_of(undisturbed)
    names: list[str] = []
    for end_at in range(1, 1_000):
        place = tmp_path / str(end_at)
        pipeline = continued(start, place / "first")
        steps = Steps(
            end_at, partial(shutil.copytree, place / "first", place / "killed")
        )
        with monkeypatch.context() as patches:
            steps.watch_ledger(patches)
            steps.watch(patches, pipeline.dead_letters, "write")
            steps.watch(patches, pipeline.board, "read", "publish")
            with suppress(Killed):
                pipeline.batch(records, clock_ms)
        if not steps.ended:
            shutil.copytree(place / "first", place / "killed")
        pipeline.plan(records if again == "as it was" else None, clock_ms)
        pipeline.move(place / "killed")
        if steps.ended and again == "as it was":
            pipeline.batch(records, clock_ms)
        elif steps.ended:
            pipeline.batch(*first)
            # No row of the batch that Spark planned again remains.
            assert ledger_of(pipeline) == after_first, steps.names[-1]
            pipeline.batch(*second)
        assert outcome(pipeline) == after, steps.names[-1]
        for _, batch in before[number + 1 : -1]:
            pipeline.batch(*batch)
        assert outcome(pipeline) == at_end, steps.names[-1]
        shutil.rmtree(place)
        names = steps.names
        if not steps.ended:
            break
    assert {"before COMMIT", "after COMMIT", "before publish"} <= set(names)


def test_traffic_has_all_that_is_stored(before: list[tuple[Pipeline, Batch]]) -> None:
    """Otherwise the test above would show less than it says."""
    found = outcome(before[5][0])
    empty = {name for name, content in found.items() if not content}
    assert empty == {"remainders", *(one for one in empty if one.endswith("mvds"))}
    assert outcome(before[-1][0])["remainders"].keys() == {"sds", "tap"}
    assert any(one.tap_hole for one in found["incidents of sds"])
    for number, tables in {
        1: ("incidents", "outbox", "minutes", "acknowledgements", "parts"),
        4: ("outbox", "minutes"),
        6: ("remainders",),
    }.items():
        with before[number + 1][0].ledger.transaction() as connection:
            for table in tables:
                rows = f"SELECT count(*) FROM undo_{table}"  # noqa: S608 - ours
                assert connection.execute(rows).fetchone() > (0,), (number, table)


def clock_of(records: Sequence[RawRecord], start: Pipeline) -> int:
    """An admission time for some records of a batch."""
    return max((one.timestamp_ms for one in records), default=start.clock_ms)
