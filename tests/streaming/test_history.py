"""Incidents and minutes reach the history and are found there."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from connectors.broker.broker import EmbeddedBroker
from connectors.history.errors import NoHistory
from connectors.history.layout import day_directory, day_of, file_path, files
from connectors.history.parquet import QUIET_MS
from connectors.history.query import channel_minutes
from connectors.history.query import find_incidents as query_history
from connectors.history.schema import CHANNEL_MINUTES, INCIDENTS
from connectors.history.topics import HistoryTopics
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.settings import Client, KafkaSettings
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from sds_core.observer.incidents import Incident, IncidentKind, IncidentQuery
from sds_core.observer.sds.channel_minute import ChannelMinute
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from streaming.findings import Destination, Findings
from streaming.history import (
    RECENT_MS,
    HistoryExporter,
    HistoryInUse,
    HistoryUnwritable,
)
from streaming.lookup import find_incidents, find_minutes
from streaming.settings import HistorySettings
from tests.support.kafka import NOBODY, refused_sockets_stay_open
from tests.support.properties import CAREFUL

EVERYTHING = IncidentQuery()
MINUTE_MS = 60_000
DAY_MS = 86_400_000
MONDAY_MS = 1_786_320_000_000
"""2026-08-10 00:00 UTC."""
HALF_DAY_MS = DAY_MS // 2


def lost(
    message_id: str, found_ms: int = MONDAY_MS, ended_ms: int | None = None
) -> Incident:
    """A lost message."""
    return Incident(IncidentKind.LOST, message_id, "ana", 1, found_ms, ended_ms)


def minutes(count: int, messages: int = 1) -> list[ChannelMinute]:
    """Minutes of a channel, one after the other."""
    return [
        ChannelMinute(MONDAY_MS + n * MINUTE_MS, ChannelTotals(messages=messages + n))
        for n in range(count)
    ]


class Checkpoint:
    """The findings of a job, and its history.

    Args:
        directory: Directory of the SQLite file.
        history: Directory of the history.
        first_sequence: See `Findings`.
    """

    def __init__(self, directory: Path, history: Path, first_sequence: int = 1) -> None:
        self.directory = directory
        self.settings = HistorySettings(history, has_topics=False)
        self._first_sequence = first_sequence
        self.findings: Findings
        self.restart()

    def restart(self) -> None:
        """Open the file as the next process does."""
        path = self.directory / "incidents.sqlite"
        self.findings = Findings(path, self._first_sequence)

    def exporter(
        self, clock_ms: int = MONDAY_MS, topics: HistoryTopics | None = None
    ) -> HistoryExporter:
        """An exporter that is not started."""
        return HistoryExporter(self.settings, self.findings, topics, lambda: clock_ms)

    def export(
        self, clock_ms: int = MONDAY_MS, topics: HistoryTopics | None = None
    ) -> None:
        """Start an exporter, and end it at once."""
        with self.exporter(clock_ms, topics):
            pass

    def pending(self, destination: Destination) -> int:
        """Number of rows that a destination has not confirmed."""
        return len(self.findings.pending(destination, 1_000_000))

    def incidents(self, query: IncidentQuery = EVERYTHING) -> list[tuple[str, bool]]:
        """Message id of each incident found, and whether it stands."""
        return [
            (one.incident.message_id, one.incident.ended_ms is None)
            for one in find_incidents(self.findings, self.settings, query)
        ]

    def minute_messages(self) -> list[int]:
        """The count of messages at the end of each minute in the history."""
        rows = channel_minutes(
            self.settings.directory, "town", MONDAY_MS, MONDAY_MS + 30 * DAY_MS
        )
        return [row["messages"] for row in rows]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """A new checkpoint with a new history."""
    return Checkpoint(tmp_path / "monitor", tmp_path / "history")


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)


def test_end_of_the_block_exports_all_rows_that_are_left(
    checkpoint: Checkpoint,
) -> None:
    """Even more rows than are in memory at a time."""
    told = minutes(2_100)
    checkpoint.findings.record_minutes({"town": told})
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    checkpoint.export()
    assert checkpoint.findings.count_pending() == 0
    assert checkpoint.minute_messages() == [one.totals.messages for one in told]
    found = query_history(checkpoint.settings.directory, EVERYTHING)
    assert found == checkpoint.findings.find_incidents(EVERYTHING)


def test_minutes_are_found_in_files_and_in_the_outbox(
    checkpoint: Checkpoint,
) -> None:
    """Each minute once, in its newest version, and only in the range."""

    def found(since: int, until: int) -> list[int]:
        rows = find_minutes(
            checkpoint.findings,
            checkpoint.settings,
            "town",
            MONDAY_MS + since * MINUTE_MS,
            MONDAY_MS + until * MINUTE_MS,
        )
        return [row["messages"] for row in rows]

    checkpoint.findings.record_minutes({"town": minutes(3)})
    checkpoint.export()
    checkpoint.findings.record_minutes(
        {"town": minutes(5, 10)[2:], "village": minutes(9)}
    )
    assert found(0, 9) == [1, 2, 12, 13, 14]
    assert found(1, 4) == [2, 12, 13]
    assert find_minutes(checkpoint.findings, None, "town", 0, 1 << 62) == []


def test_rows_of_the_job_before_are_exported_soon_after_a_start(
    checkpoint: Checkpoint,
) -> None:
    """Not only at the end, which a killed process does not reach."""
    checkpoint.findings.record_minutes({"town": minutes(1)})
    with checkpoint.exporter():
        wait_until(lambda: checkpoint.findings.count_pending() == 0)
        assert checkpoint.minute_messages() == [1]


def test_rows_that_were_written_twice_count_once(checkpoint: Checkpoint) -> None:
    """As after a crash between writing rows and confirming them."""
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    checkpoint.findings.record_minutes({"town": minutes(3)})
    before = shutil.copytree(checkpoint.directory, checkpoint.directory / "before")
    checkpoint.export()
    shutil.copy(before / "incidents.sqlite", checkpoint.directory)
    checkpoint.restart()
    checkpoint.findings.record_incidents({"town": [lost("m", ended_ms=MONDAY_MS + 1)]})
    checkpoint.export()
    assert checkpoint.minute_messages() == [1, 2, 3]
    found = query_history(checkpoint.settings.directory, EVERYTHING)
    assert found == checkpoint.findings.find_incidents(EVERYTHING)
    assert len(files(day_directory(_table(checkpoint, "incidents"), _MONDAY))) == 2


_MONDAY = day_of(MONDAY_MS)


def _table(checkpoint: Checkpoint, name: str) -> Path:
    return checkpoint.settings.directory / name


def test_rows_wait_while_the_disk_fails(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """No row is lost, and the log names the failure."""
    checkpoint.findings.record_minutes({"town": minutes(2)})
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    in_the_way = _table(checkpoint, CHANNEL_MINUTES.name)
    in_the_way.parent.mkdir()
    in_the_way.write_text("")
    checkpoint.export()
    assert (
        checkpoint.findings.count_pending()
        == checkpoint.pending(Destination.PARQUET)
        == 3
    )
    line = caplog.messages[0]
    assert line.startswith("the history waits: ")
    assert str(in_the_way) in line
    in_the_way.unlink()
    checkpoint.export()
    assert checkpoint.findings.count_pending() == 0
    assert checkpoint.minute_messages() == [1, 2]
    assert checkpoint.incidents() == [("m", True)]


def test_row_that_no_file_can_hold_does_not_end_the_job(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """An unforeseen error does not end the thread; the log has its traceback."""
    long_ago = ChannelMinute(-(10**15), ChannelTotals())
    checkpoint.findings.record_minutes({"town": [long_ago]})
    with checkpoint.exporter():
        wait_until(lambda: bool(caplog.records))
        checkpoint.findings.record_incidents({"town": [lost("m")]})
    assert checkpoint.pending(Destination.PARQUET) == 2
    assert checkpoint.pending(Destination.TOPICS) == 0
    assert caplog.records[0].exc_info


def test_damaged_file_does_not_delay_rows(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the files of its day are not merged."""
    day = day_directory(_table(checkpoint, INCIDENTS.name), _MONDAY)
    day.mkdir(parents=True)
    for number in range(2):
        path = file_path(day, number)
        path.write_text("no rows")
        os.utime(path, (0, (time.time_ns() // 1_000_000 - 2 * QUIET_MS) / 1000))
    checkpoint.findings.record_minutes({"town": minutes(1)})
    checkpoint.export()
    assert checkpoint.minute_messages() == [1]
    (line,) = caplog.messages
    assert f"{file_path(day, 0)} cannot be read" in line
    assert len(files(day)) == 2


@refused_sockets_stay_open
def test_rows_wait_for_kafka_without_delaying_anything(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Files are written meanwhile; at the end Kafka is not tried again."""
    checkpoint.findings.record_minutes({"town": minutes(2)})
    with checkpoint.exporter(topics=HistoryTopics(NOBODY)):
        wait_until(lambda: bool(caplog.records))
        checkpoint.findings.record_incidents({"town": [lost("m")]})
    assert checkpoint.minute_messages() == [1, 2]
    assert checkpoint.pending(Destination.PARQUET) == 0
    assert (
        checkpoint.findings.count_pending()
        == checkpoint.pending(Destination.TOPICS)
        == 3
    )
    (line,) = caplog.messages
    assert NOBODY.bootstrap in line


@pytest.mark.kafka
def test_topics_get_waiting_rows_in_order(
    checkpoint: Checkpoint, kafka_broker: EmbeddedBroker
) -> None:
    """They hold the same rows as the files."""
    told = [lost("a"), lost("b"), lost("a", ended_ms=MONDAY_MS + 1)]
    for incident in told:
        checkpoint.findings.record_incidents({"town": [incident]})
    checkpoint.findings.record_minutes({"town": minutes(2)})
    kafka = KafkaSettings(kafka_broker.bootstrap, "left.incidents", timeout_s=20.0)
    checkpoint.export(topics=HistoryTopics(kafka, kafka.topic, "left.minutes"))
    assert checkpoint.findings.count_pending() == 0
    incidents = _values(kafka, 3)
    assert [(one["message_id"], one["ended"]) for one in incidents] == [
        ("a", None),
        ("b", None),
        ("a", MONDAY_MS + 1),
    ]
    assert [one["told"] for one in incidents] == [1, 2, 3]
    rows = channel_minutes(
        checkpoint.settings.directory, "town", MONDAY_MS, MONDAY_MS + DAY_MS
    )
    assert _values(replace(kafka, topic="left.minutes"), 2) == rows


def _values(kafka: KafkaSettings, count: int) -> list[dict[str, object]]:
    found = fetch(Client.CONFLUENT, kafka, [OffsetRange(0, 0, count)])
    return [json.loads(record.value or b"") for records in found for record in records]


def test_topics_that_are_switched_on_later_get_only_later_rows(
    checkpoint: Checkpoint,
) -> None:
    """Without topics no row waits for them."""
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    checkpoint.export()
    assert checkpoint.pending(Destination.TOPICS) == 0


def test_days_that_are_old_by_event_time_are_deleted(checkpoint: Checkpoint) -> None:
    """A day is deleted whole, once all of it is too old."""
    checkpoint.settings = replace(checkpoint.settings, days=1)
    checkpoint.findings.record_incidents(
        {"town": [lost("old"), lost("new", MONDAY_MS + DAY_MS)]}
    )
    checkpoint.export(MONDAY_MS + 2 * DAY_MS - 1)
    checkpoint.export(MONDAY_MS + 2 * DAY_MS - 1)
    assert checkpoint.incidents() == [("new", True), ("old", True)]
    checkpoint.export(MONDAY_MS + 2 * DAY_MS)
    assert checkpoint.incidents() == [("new", True)]


def test_incidents_older_than_a_day_are_found_in_the_history(
    checkpoint: Checkpoint,
) -> None:
    """They are deleted beside the checkpoint."""
    newer = lost("newer", MONDAY_MS + 1)
    checkpoint.findings.record_incidents({"town": [lost("old"), newer]})
    checkpoint.export(MONDAY_MS + 1 + RECENT_MS)
    (kept,) = checkpoint.findings.find_incidents(EVERYTHING)
    assert kept.incident == newer
    assert checkpoint.incidents() == [("newer", True), ("old", True)]
    assert checkpoint.incidents(IncidentQuery(limit=1)) == [("newer", True)]


def test_incident_that_is_in_no_file_yet_stays_beside_the_checkpoint(
    checkpoint: Checkpoint,
) -> None:
    """No matter how old it is."""
    checkpoint.findings.record_incidents({"town": [lost("a"), lost("b")]})
    checkpoint.export()
    checkpoint.findings.record_incidents({"town": [lost("b", ended_ms=MONDAY_MS + 1)]})
    checkpoint.findings.forget_before(MONDAY_MS + DAY_MS)
    assert len(checkpoint.findings.find_incidents(EVERYTHING)) == 1
    assert checkpoint.incidents() == [("a", True), ("b", False)]


def test_older_version_in_the_history_does_not_count(checkpoint: Checkpoint) -> None:
    """An incident that has just ended is not found as standing."""
    checkpoint.findings.record_incidents(
        {"town": [lost("a"), lost("b", MONDAY_MS + DAY_MS)]}
    )
    checkpoint.export(MONDAY_MS + DAY_MS + 1)
    ended = lost("b", MONDAY_MS + DAY_MS, ended_ms=MONDAY_MS + DAY_MS + 2)
    checkpoint.findings.record_incidents({"town": [ended]})
    assert checkpoint.incidents(IncidentQuery(standing=True)) == [("a", True)]
    assert checkpoint.incidents(IncidentQuery(standing=True, limit=1)) == [("a", True)]


def test_missing_history_directory_is_an_error(checkpoint: Checkpoint) -> None:
    """An empty answer would be wrong, also of the API."""
    checkpoint.findings.record_incidents({"town": [lost("a")]})
    checkpoint.export(MONDAY_MS + 1 + RECENT_MS)
    shutil.rmtree(checkpoint.settings.directory)
    with pytest.raises(NoHistory):
        checkpoint.incidents()
    find = partial(find_incidents, checkpoint.findings, checkpoint.settings)
    sources = Sources(
        lambda: Snapshot(primed=True), find, lambda *asked: [], checkpoint.directory
    )
    app = create_app(sources, CollectorRegistry())
    with WebServer(app, "127.0.0.1", 0) as server:
        answer = httpx.get(f"{server.url}/api/v1/incidents")
    assert answer.status_code == 500
    assert str(checkpoint.settings.directory) in answer.json()["error"]


_SCENES = st.lists(
    st.tuples(
        st.sampled_from(["tell", "end", "export"]),
        st.sampled_from(["town", "to\x00wn"]),
        st.sampled_from(IncidentKind),
        st.sampled_from(["m", "é"]),
        st.integers(0, 3),
    ),
    max_size=12,
)
_QUERIES = st.builds(
    IncidentQuery,
    st.none() | st.sampled_from(["town", "to\x00wn"]),
    st.none() | st.sampled_from(IncidentKind),
    st.none() | st.integers(0, 8).map(lambda n: MONDAY_MS + n * HALF_DAY_MS),
    st.booleans(),
    st.none() | st.integers(0, 5),
)


@pytest.mark.slow
@given(_SCENES, st.lists(_QUERIES, min_size=4, max_size=4))
@settings(CAREFUL, max_examples=40)
def test_lookups_find_what_a_file_that_forgets_nothing_has(
    scenes: list[tuple[str, str, IncidentKind, str, int]],
    queries: Iterable[IncidentQuery],
) -> None:
    """Incidents begin, end and begin anew; some are exported meanwhile."""
    clock_ms = MONDAY_MS
    with TemporaryDirectory() as place:
        job = Checkpoint(Path(place) / "monitor", Path(place) / "history")
        whole = Findings(Path(place) / "whole.sqlite", 1)
        told: dict[tuple[str, IncidentKind, str], Incident] = {}
        for what, channel, kind, message_id, half_days in scenes:
            clock_ms += half_days * HALF_DAY_MS
            if what == "export":
                job.export(clock_ms)
                continue
            key = (channel, kind, message_id)
            incident = Incident(kind, message_id, "ana", 1, clock_ms)
            if what == "end" and key in told:
                found_ms = told[key].found_ms
                incident = Incident(kind, message_id, "ana", 1, found_ms, clock_ms)
            told[key] = incident
            for findings in (job.findings, whole):
                findings.record_incidents({channel: [incident]})
        for query in queries:
            found = find_incidents(job.findings, job.settings, query)
            assert found == whole.find_incidents(query)


def test_new_checkpoint_can_continue_an_old_history(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    """Its later rows replace those of the previous job."""
    checkpoint.findings.record_incidents({"town": [lost("a"), lost("b")]})
    checkpoint.findings.record_minutes({"town": minutes(2)})
    checkpoint.export()
    later = Checkpoint(tmp_path / "later", checkpoint.settings.directory, 1_000)
    later.findings.record_incidents({"town": [lost("b", ended_ms=MONDAY_MS + 1)]})
    later.findings.record_minutes({"town": minutes(3, messages=10)[1:]})
    later.export()
    found = query_history(checkpoint.settings.directory, EVERYTHING)
    assert [one.incident.ended_ms for one in found] == [None, MONDAY_MS + 1]
    assert later.minute_messages() == [1, 11, 12]


def test_history_has_one_writer(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Two would use the same file numbers; the second is refused."""
    other = Checkpoint(tmp_path / "other", checkpoint.settings.directory)
    with (
        checkpoint.exporter(),
        pytest.raises(HistoryInUse, match="another --history"),
    ):
        other.export()
    other.export()


def test_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    """Before the job begins."""
    (tmp_path / "file").write_text("")
    checkpoint = Checkpoint(tmp_path / "monitor", tmp_path / "file" / "history")
    with pytest.raises(HistoryUnwritable, match=r"file.history cannot be written to"):
        checkpoint.export()


@pytest.fixture(autouse=True)
def warnings_are_seen(caplog: pytest.LogCaptureFixture) -> None:
    """Those of our own logger alone, without those of Kafka libraries."""
    caplog.set_level(logging.CRITICAL)
    caplog.set_level(logging.WARNING, logger="sds-monitor")
