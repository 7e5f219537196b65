"""Incidents on their way from the view to the operator."""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from pyspark.sql import Row

from connectors.kafka.producer import write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import load_scenario
from sds_core.observer import blob
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    IncidentQuery,
)
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapTotals
from sds_core.simulation.truth import Truth
from streaming.board import Board
from streaming.chunk import CLOCK_KEY
from streaming.cli.actions.simulate import start_of
from streaming.cli.incidents import command
from streaming.cli.output import wall_ms
from streaming.cli.serving import status_server
from streaming.job import Job
from streaming.ledger.findings import Findings
from streaming.ledger.stores import Stores
from streaming.settings import HistorySettings
from streaming.sink import Sink
from tests.support.identities import assert_identities
from tests.support.streaming.jobs import wait_for_end
from tests.support.streaming.ledger import ledger_in

EVERYTHING = IncidentQuery()


def lost(message_id: str, found_ms: int = 300_000, **known: Any) -> Incident:
    """A lost message that was named 300 s before it was found lost."""
    return Incident(
        IncidentKind.LOST, message_id, "alice", found_ms - 300_000, found_ms, **known
    )


@pytest.fixture
def findings(tmp_path: Path) -> Findings:
    """An empty file."""
    return Findings(ledger_in(tmp_path / "monitor"), CHANNELS)


class Feed:
    """A sink with its stores, fed row by row."""

    def __init__(
        self, findings: Findings, observer: ObserverSettings = DEFAULTS
    ) -> None:
        stores = Stores.of(findings.ledger, kinds_of(PROTOCOLS), 9, True, True)
        assert stores.details is not None
        self.details = stores.details
        board = Board()
        board.set(observer=observer)
        self._sink = Sink(board, stores, None, str)
        self._batches = itertools.count()

    def batch(
        self,
        clock_ms: int,
        events: Iterable[DefiniteAcknowledgement | Incident] = (),
        ahead_ms: int = 0,
        **taps: TapTotals,
    ) -> None:
        """One batch that ends at a time, with some events and some taps' figures.

        The channel may be ahead of that time: its partition was read further.
        """
        town = ChannelTotals(clock_ms=clock_ms + ahead_ms, observers=["east", "west"])
        rows = [(CHANNELS.key("town"), town, list(events))]
        rows += [(TAPS.key(name), tap, []) for name, tap in taps.items()]
        self._sink.take(
            [
                Row(
                    key=key,
                    totals=blob.totals_part(blob.pack(totals, None)),
                    events=msgspec.msgpack.encode(events),
                    clock_ms=None,
                )
                for key, totals, events in rows
            ]
            + [Row(key=CLOCK_KEY, totals=None, events=None, clock_ms=clock_ms)],
            next(self._batches),
        )


@pytest.fixture
def feed(findings: Findings) -> Feed:
    """The sink of a job that has just begun."""
    return Feed(findings)


def test_each_kind_of_event_goes_to_its_store(feed: Feed, findings: Findings) -> None:
    """Repeating an event changes nothing."""
    for _ in range(2):
        feed.batch(400_000, [DefiniteAcknowledgement("n", 1, 2), lost("m")])
    assert findings.find_incidents(EVERYTHING) == [
        ChannelIncident("town", lost("m"), tap_hole=False)
    ]
    assert feed.details.latencies("sds") == {"town": [("n", 2)]}


def tap(last_seen_ms: int, *holes: tuple[int, int]) -> TapTotals:
    """A tap's figures."""
    return TapTotals(last_seen_ms=last_seen_ms, holes=list(holes))


@pytest.mark.parametrize(
    ("holes", "marked"),
    [
        ([(485_000, 500_000)], True),
        ([(800_000, 900_000)], True),
        ([(400_000, 484_999)], False),
        ([(800_001, 900_000)], False),
        ([], False),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_incident_is_marked_if_every_tap_had_a_hole_meanwhile(
    feed: Feed,
    findings: Findings,
    holes: list[tuple[int, int]],
    marked: bool,
    later: bool,
) -> None:
    """From 15 s before it began until it was found, even if found later."""
    found = lost("m", 800_000)
    east = tap(900_000, (500_000, 700_000))
    west = tap(900_000, *holes)
    if later:
        feed.batch(801_000, [found], east=east, west=tap(801_000))
        feed.batch(900_000, west=west)
    else:
        feed.batch(900_000, [found], east=east, west=west)
    assert [one.tap_hole for one in findings.find_incidents(EVERYTHING)] == [marked]


def test_channel_that_is_ahead_of_the_taps_makes_no_silence(
    feed: Feed, findings: Findings
) -> None:
    """Tap records after the admission time are not read yet."""
    taps = {name: tap(800_000) for name in ("east", "west")}
    feed.batch(800_000, [lost("m", 810_000)], ahead_ms=20_000, **taps)
    assert not findings.find_incidents(EVERYTHING)[0].tap_hole


def test_open_reader_delays_no_batch(
    feed: Feed, findings: Findings, tmp_path: Path
) -> None:
    """For example a shell that is left open."""
    feed.batch(400_000, [lost("m")])
    path = tmp_path / "monitor" / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM incidents")
        rows.fetchone()
        feed.batch(500_000, [lost("n")])
        rows.close()
    assert len(findings.find_incidents(EVERYTHING)) == 2


def test_hole_found_much_later_marks_nothing(feed: Feed, findings: Findings) -> None:
    """So each batch checks only few incidents."""
    holes = tap(990_000, (500_000, 700_000))
    feed.batch(801_000, [lost("m", 800_000)], east=holes, west=tap(801_000))
    feed.batch(861_000)
    feed.batch(990_000, west=holes)
    assert not findings.find_incidents(EVERYTHING)[0].tap_hole


@pytest.mark.parametrize("tap_hole_ms", [15_000, 90_000, 86_400_000])
def test_incident_in_a_silence_is_marked_when_it_counts_as_a_gap(
    findings: Findings, tap_hole_ms: int
) -> None:
    """However long a silence must be for that."""
    feed = Feed(findings, ObserverSettings(tap_hole_ms=tap_hole_ms))
    silent = {"east": tap(780_000), "west": tap(780_000)}
    feed.batch(800_001, [lost("m", 800_000)], **silent)
    known_ms = 780_001 + tap_hole_ms
    feed.batch(known_ms - 1, **silent)
    marked = known_ms <= 800_001
    assert [one.tap_hole for one in findings.find_incidents(EVERYTHING)] == [marked]
    feed.batch(known_ms, **silent)
    assert findings.find_incidents(EVERYTHING)[0].tap_hole


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "seed", "kinds"),
    [
        ("lost-tail", 3, {"lost", "undelivered", "unacknowledged"}),
        ("lossy", 2, {"undelivered", "undelivered, ended"}),
    ],
)
def test_each_lost_or_undelivered_message_of_a_run_is_listed_and_really_is(
    topic: Callable[..., KafkaSettings],
    live: Callable[..., AbstractContextManager[Job]],
    tmp_path: Path,
    scenario: str,
    seed: int,
    kinds: set[str],
) -> None:
    """What the command lists, against the simulation's account of who got what."""
    kafka = topic(partitions=0)
    truth = _play(kafka, scenario, seed)
    path = tmp_path / "report.json"
    history = HistorySettings(tmp_path / "history", has_topics=False)
    options = {"until_caught_up": True, "report_detail": True, "history": history}
    with live(kafka, **options) as job:
        wait_for_end(job)
        report = job.report(0)
        path.write_text(json.dumps(report))
        with status_server(job, "127.0.0.1", 0) as url:
            asked = CliRunner().invoke(command, ["--api", url, "--json"])
    assert_identities(report)
    read = CliRunner().invoke(command, ["--from-report", str(path), "--json"])
    assert (read.exit_code, read.stdout) == (asked.exit_code, asked.stdout)
    kept = CliRunner().invoke(command, ["--history", str(history.directory), "--json"])
    assert (kept.exit_code, kept.stdout) == (asked.exit_code, asked.stdout)
    assert read.exit_code == 1
    listed = [json.loads(line) for line in read.stdout.splitlines()]
    assert {_worded(one) for one in listed} == kinds
    for one in listed:
        assert not one["tap_hole"]
        assert one["why"]
    _assert_lost(listed, truth)
    _assert_undelivered(listed, truth)


def _play(kafka: KafkaSettings, name: str, seed: int) -> dict[str, Any]:
    """Write a simulation's records to Kafka; returns the truth about it."""
    scenario = load_scenario(name)
    truth = Truth(scenario.name, seed)
    start_ms = start_of(scenario, 0.0, wall_ms())
    partitions = ensure_frames_topic(kafka, 2)
    write(simulated_records(scenario, seed, start_ms, partitions, truth), kafka)
    return truth.document()


def _worded(one: dict[str, Any]) -> str:
    return one["kind"] + ("" if one["ended"] is None else ", ended")


def _assert_lost(listed: list[dict[str, Any]], truth: dict[str, Any]) -> None:
    """All that nobody got, and whose names were told, are there; and no others."""
    found = {(o["channel"], o["message_id"]): o for o in listed if o["kind"] == "lost"}
    stories = {
        (channel, message_id): story
        for channel, told in truth["messages"].items()
        for message_id, story in told.items()
        if story["gap"] is not None and story["gap"]["outcome"] == "lost"
    }
    assert found.keys() == stories.keys()
    for key, one in found.items():
        story = stories[key]
        assert one["since"] == story["gap"]["named_ms"]
        assert one["found"] == story["gap"]["deadline_ms"]
        assert one["sender"] == story["sender"]
        assert one["named_by"] == [story["sender"]]
        assert story["received"].keys() <= {story["sender"]}
        assert not any(sending["seen_by"] for sending in story["transmissions"])
        assert one["lacking"]
        assert one["lacking"].keys() <= set(story["never_received"])
        hashes = {sending["waku_hash"] for sending in story["transmissions"]}
        assert "0x" + one["retrieval_hint"] in hashes
        assert one["waku_hash"] is None


def _assert_undelivered(listed: list[dict[str, Any]], truth: dict[str, Any]) -> None:
    """All who showed so late that they lack a message are there; and no others."""
    found = {
        (o["channel"], o["message_id"]): o for o in listed if o["kind"] == "undelivered"
    }
    lost_to: dict[tuple[str, str], dict[str, int]] = {}
    for channel, told in truth["messages"].items():
        for message_id, story in told.items():
            for who, delivery in story["deliveries"].items():
                if delivery["outcome"] in ("lost", "retracted"):
                    lacking = lost_to.setdefault((channel, message_id), {})
                    if delivery["outcome"] == "lost":
                        lacking[who] = delivery["lacking"]["seen_ms"]
    assert {key: one["lacking"] for key, one in found.items()} == lost_to
    for (channel, message_id), one in found.items():
        story = truth["messages"][channel][message_id]
        assert (one["ended"] is None) == bool(one["lacking"])
        assert one["sender"] == story["sender"]
        seen = [s["waku_hash"] for s in story["transmissions"] if s["seen_by"]]
        assert one["waku_hash"] in seen
        for who in one["lacking"]:
            composed_ms = story["deliveries"][who]["lacking"]["composed_ms"]
            assert story["received"].get(who, math.inf) > composed_ms
