"""Incidents and minutes are found in the history and beside the checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from connectors.history.errors import NoHistory
from connectors.history.schema import NumberedMinute, minute_row
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from sds_core.observer.incidents import (
    Incident,
    IncidentKind,
    IncidentPlace,
    IncidentQuery,
)
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.kind import CHANNELS
from sds_core.planning.hours import hour_rows
from streaming.history import RECENT_MS
from streaming.ledger.findings import Findings
from tests.support.properties import CAREFUL
from tests.support.snapshots import snapshot_of
from tests.support.streaming.history import (
    DAY_MS,
    EVERYTHING,
    HALF_DAY_MS,
    MINUTE_MS,
    MONDAY_MS,
    Checkpoint,
    lost,
    minutes,
)
from tests.support.streaming.ledger import ledger_in
from tests.support.web.stored import stored

COUNTERS, GAUGES = ("messages", "bytes_content"), ("epoch_messages_max",)


def test_minutes_are_found_in_files_and_in_the_outbox(
    checkpoint: Checkpoint,
) -> None:
    """Each minute once, in its newest version, and only in the range."""

    def found(since: int, until: int) -> list[int]:
        rows = checkpoint.stored().find_minutes(
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


@pytest.mark.parametrize("with_history", [True, False])
def test_hours_are_those_of_the_minutes(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, with_history: bool
) -> None:
    """Of files and outbox, and without a history of the last hour."""
    asked = MONDAY_MS + 5 * MINUTE_MS, MONDAY_MS + 140 * MINUTE_MS
    some = minutes(150)
    some[20].totals.epoch_messages_max = some[70].totals.epoch_messages_max = 9
    checkpoint.recent.record({"town": some})
    checkpoint.findings.record_minutes({"town": some[:120], "village": minutes(9, 7)})
    checkpoint.export()
    # The outbox has a newer version of the second hour's last minute.
    checkpoint.findings.record_minutes(
        {"town": [*minutes(120, 1_000)[119:], *some[120:]]}
    )
    job = checkpoint.stored(with_history)
    found_minutes = job.find_minutes("town", *asked)
    expected = hour_rows(found_minutes, GAUGES)
    assert [len(found_minutes), len(expected)] == (
        [135, 3] if with_history else [57, 2]
    )
    if with_history:
        # It does not depend on the number of minutes in files.
        monkeypatch.delattr("streaming.lookup.query_minutes")
    found = job.find_hours("town", *asked, COUNTERS, GAUGES)
    fields = ("minute", *COUNTERS, *GAUGES)
    assert [[row.get(one) for one in fields] for row in found] == [
        [row.get(one) for one in fields] for row in expected
    ]


def test_job_without_a_history_finds_the_minutes_of_the_last_hour(
    checkpoint: Checkpoint,
) -> None:
    """With the figures of charts, and of no other channel."""
    checkpoint.recent.record({"town": minutes(3, 10), "village": minutes(9)})
    rows = checkpoint.stored(with_history=False).find_minutes(
        "town", MONDAY_MS + MINUTE_MS, MONDAY_MS + 9 * MINUTE_MS
    )
    assert [row["minute"] for row in rows] == [
        MONDAY_MS + MINUTE_MS,
        MONDAY_MS + 2 * MINUTE_MS,
    ]
    totals = [NumberedMinute(1, "town", 0, one.totals) for one in minutes(3, 10)]
    for row, whole in zip(rows, map(minute_row, totals[1:]), strict=True):
        fields = [CHANNEL_FIGURES.column_of(one) for one in CHANNEL_FIGURES.grown]
        assert {name: row[name] for name in fields} == {
            name: whole[name] for name in fields
        }


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


@pytest.mark.parametrize("days", [0, 2])
def test_messages_of_a_participant_are_found_before_the_limit_applies(
    checkpoint: Checkpoint, days: int
) -> None:
    """Beside the checkpoint, and in the history that has them later."""
    kind = IncidentKind.UNDELIVERED

    def undelivered(message_id: str, **values: Any) -> Incident:
        return Incident(kind, message_id, "ana", 1, MONDAY_MS, **values)

    mine = [undelivered(name, lacking={"eve": 5, "bob": 6}) for name in ("x", "y")]
    others = [lost("lost", MONDAY_MS + 1), undelivered("other", lacking={"bob": 5})]
    others.append(undelivered("ended", ended_ms=MONDAY_MS + 2, lacking={"eve": 5}))
    checkpoint.findings.record_incidents({"town": [*others, *mine]})
    checkpoint.export(MONDAY_MS + days * DAY_MS)
    for limit, expected in ((1, ["x"]), (None, ["x", "y"])):
        query = IncidentQuery(participant="eve", limit=limit)
        assert [name for name, _ in checkpoint.incidents(query)] == expected


def test_missing_history_directory_is_an_error(checkpoint: Checkpoint) -> None:
    """An empty answer would be wrong, also of the API."""
    checkpoint.findings.record_incidents({"town": [lost("a")]})
    checkpoint.export(MONDAY_MS + 1 + RECENT_MS)
    shutil.rmtree(checkpoint.settings.directory)
    with pytest.raises(NoHistory):
        checkpoint.incidents()
    find = checkpoint.stored().find_incidents
    sources = Sources(
        lambda: snapshot_of(primed=True),
        stored(find_incidents=find),
        checkpoint.directory,
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
    st.none()
    | st.builds(
        IncidentPlace,
        st.integers(0, 8).map(lambda n: MONDAY_MS + n * HALF_DAY_MS),
        st.sampled_from(["town", "to\x00wn"]),
        st.sampled_from(IncidentKind),
        st.sampled_from(["m", "é"]),
    ),
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
        whole = Findings(ledger_in(Path(place) / "whole"), CHANNELS)
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
            found = job.stored().find_incidents(query)
            assert found == whole.find_incidents(query)
