"""Incidents and minutes, and the outbox in which they wait for the history."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import product, starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.history.schema import NumberedIncident, NumberedMinute
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    IncidentPlace,
    IncidentQuery,
)
from sds_core.observer.kinds import AnyKind
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals
from sds_core.observer.shown_verdicts import ShownVerdict
from streaming.damage import DamagedCheckpoint
from streaming.ledger import ledger
from streaming.ledger.findings import Destination, Findings, OutboxRow
from streaming.ledger.ledger import Ledger
from streaming.ledger.schema import outbox_type
from tests.support.properties import CAREFUL
from tests.support.streaming.history import ROWS, pending
from tests.support.streaming.ledger import ledger_in

FIRST = 1_000
ALL = 1_000_000
EVERYTHING = IncidentQuery()


def lost(message_id: str, found_ms: int = 300_000, **known: Any) -> Incident:
    """A lost message."""
    return Incident(IncidentKind.LOST, message_id, "ana", 1, found_ms, **known)


def minute(minute_ms: int) -> ChannelMinute:
    """A minute of a channel."""
    return ChannelMinute(minute_ms, ChannelTotals())


def found(
    incident: Incident, tap_hole: bool = False, channel: str = "town"
) -> ChannelIncident:
    """An incident of a channel."""
    return ChannelIncident(channel, incident, tap_hole)


def opened(path: Path, first_sequence: int = FIRST) -> Findings:
    """The findings in a file."""
    return Findings(ledger_in(path.parent, first_sequence), CHANNELS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "monitor" / "ledger.sqlite"


@pytest.fixture
def findings(path: Path) -> Findings:
    """An empty file."""
    return opened(path, FIRST)


def test_incident_is_read_whole_after_a_restart(path: Path) -> None:
    """With all its fields."""
    incident = lost(
        "m\n\u202e",
        lacking={"bob": 5},
        named_by=["alice"],
        waku_hash=bytes(32),
        hint=b"\xff",
    )
    opened(path, 1).record_incidents({"town\x00": [incident]})
    assert opened(path, 1).find_incidents(EVERYTHING) == [
        found(incident, channel="town\x00")
    ]


def test_later_version_of_an_incident_replaces_the_earlier_one(
    findings: Findings,
) -> None:
    """By channel, kind and message id; a replayed batch changes nothing."""
    ended = lost("m", ended_ms=400_000)
    other = Incident(IncidentKind.UNDELIVERED, "m", "alice", 1, 2)
    for _ in range(2):
        findings.record_incidents({"town": [lost("m"), other], "village": [lost("m")]})
        findings.record_incidents({"town": [ended]})
    assert findings.find_incidents(EVERYTHING) == [
        found(ended),
        found(lost("m"), channel="village"),
        found(other),
    ]


QUERIES: list[tuple[IncidentQuery, list[str]]] = [
    (EVERYTHING, ["newest", "ended", "standing", "old"]),
    (IncidentQuery(channel="town"), ["ended", "standing", "old"]),
    (IncidentQuery(channel="nowhere"), []),
    (IncidentQuery(kind=IncidentKind.UNDELIVERED), ["standing"]),
    (IncidentQuery(since_ms=500_001), ["newest", "standing"]),
    (IncidentQuery(since_ms=500_000), ["newest", "ended", "standing"]),
    (IncidentQuery(standing=True), ["newest", "standing"]),
    (IncidentQuery(resolved=True), ["ended", "old"]),
    (IncidentQuery(limit=2), ["newest", "ended"]),
    (IncidentQuery(limit=0), []),
    (IncidentQuery("town", IncidentKind.LOST, 500_000, limit=9), ["ended"]),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_query_finds_matching_incidents_found_last_first(
    findings: Findings, query: IncidentQuery, expected: list[str]
) -> None:
    """An incident that still stands matches any time."""
    findings.record_incidents(
        {
            "town": [
                lost("old", 300_000, ended_ms=600_000),
                Incident(IncidentKind.UNDELIVERED, "standing", "bob", 1, 400_000),
                lost("ended", 500_000, ended_ms=600_000),
            ],
            "village": [lost("newest", 600_000)],
        }
    )
    matching = findings.find_incidents(query)
    assert [one.incident.message_id for one in matching] == expected


def test_incidents_after_each_of_them_are_the_rest_of_the_list(
    findings: Findings,
) -> None:
    """Also if many were found at the same time."""
    for channel in ("town", "to\x00wn", "Tōwn"):
        told = [
            Incident(kind, message_id, "ana", 1, found_ms)
            for kind in IncidentKind
            for message_id, found_ms in (("a", 1), ("b", 2), ("é", 2), ("", 2))
        ]
        findings.record_incidents({channel: told})
    every = findings.find_incidents(EVERYTHING)
    assert len(every) == 36
    for number, (channel, incident, _) in enumerate(every):
        place = IncidentPlace(
            incident.found_ms, channel, incident.kind, incident.message_id
        )
        query = IncidentQuery(after=place, limit=5)
        assert findings.find_incidents(query) == every[number + 1 : number + 6]


def test_a_mark_stays_when_the_incident_changes(findings: Findings) -> None:
    """Old incidents are not judged, and marked ones are not judged again."""
    findings.record_incidents({"town": [lost("a"), lost("b"), lost("c", 299_999)]})
    judged: list[str] = []

    def coincides(channel: str, incident: Incident) -> bool:
        judged.append(incident.message_id)
        return incident.message_id != "b"

    findings.mark_incidents(coincides, since_ms=300_000)
    findings.record_incidents({"town": [lost("a", ended_ms=1)]})
    findings.mark_incidents(coincides, since_ms=300_000)
    assert sorted(judged) == ["a", "b", "b"]
    stored = findings.find_incidents(EVERYTHING)
    marks = {one.incident.message_id: one.tap_hole for one in stored}
    assert marks == {"a": True, "b": False, "c": False}


def test_rows_wait_in_the_order_in_which_they_were_recorded(findings: Findings) -> None:
    """Each incident as it was then, and at most as many rows as the limit."""
    findings.record_incidents({"town": [lost("a")]})
    findings.record_minutes(
        {"town": [minute(0), minute(60_000)], "village": [minute(0)]}
    )
    findings.record_incidents({"town": [lost("a", ended_ms=9)]})
    expected: list[OutboxRow] = [
        NumberedIncident(1_000, found(lost("a"))),
        NumberedMinute(1_001, "town", 0, ChannelTotals()),
        NumberedMinute(1_002, "town", 60_000, ChannelTotals()),
        NumberedMinute(1_003, "village", 0, ChannelTotals()),
        NumberedIncident(1_004, found(lost("a", ended_ms=9))),
    ]
    assert pending(findings, Destination.PARQUET) == expected
    minutes = expected[1:4]
    assert findings.pending(Destination.TOPICS, NumberedMinute, 2) == minutes[:2]
    assert findings.count_pending() == 5


def test_row_stays_until_each_destination_has_confirmed_it(findings: Findings) -> None:
    """A slow destination does not delay the other."""
    findings.record_incidents({"town": [lost("a"), lost("b"), lost("c")]})
    findings.confirm_delivered(Destination.PARQUET, NumberedIncident, FIRST + 2)
    assert pending(findings, Destination.PARQUET) == []
    assert len(pending(findings, Destination.TOPICS)) == 3
    assert findings.count_pending() == 3
    findings.confirm_delivered(Destination.TOPICS, NumberedIncident, FIRST + 1)
    (last,) = pending(findings, Destination.TOPICS)
    assert last.sequence == FIRST + 2
    assert findings.count_pending() == 1
    findings.confirm_delivered(Destination.TOPICS, NumberedIncident, FIRST + 2)
    assert findings.count_pending() == 0


def test_rows_of_another_type_do_not_wait(findings: Findings) -> None:
    """Although their numbers lie between those of rows that wait."""
    findings.record_incidents({"town": [lost("a")]})
    findings.record_minutes({"town": [minute(0)]})
    findings.record_incidents({"town": [lost("b")]})
    for destination in Destination:
        findings.confirm_delivered(destination, NumberedMinute, FIRST + 1)
    assert findings.count_pending() == 2
    waiting = [row.sequence for row in pending(findings, Destination.TOPICS)]
    assert waiting == [FIRST, FIRST + 2]


def test_rows_that_an_older_release_has_confirmed_do_not_wait(
    findings: Findings,
) -> None:
    """It stored one number for all types of row of a destination."""
    findings.record_incidents({"town": [lost("a")]})
    findings.record_minutes({"town": [minute(0), minute(60_000)]})
    findings.confirm_delivered(Destination.TOPICS, NumberedMinute, FIRST + 1)
    older = "INSERT INTO delivered VALUES ('sds', 'topics', ?)"
    findings.ledger.write(older, FIRST)
    (last,) = pending(findings, Destination.TOPICS)
    assert last.sequence == FIRST + 2


@pytest.mark.parametrize("kind", [*kinds_of(PROTOCOLS)], ids=lambda kind: kind.prefix)
def test_rows_begin_with_a_byte_and_their_tag(kind: AnyKind) -> None:
    """So that the ledger finds the rows of a type without decoding any."""
    types: list[Any] = [Incident, ShownVerdict]
    if kind.minute is not None:
        types.append(kind.minute)
    for finding in types:
        assert len(msgspec.structs.fields(finding)) < 15
        assert finding.__struct_config__.array_like
    assert len({outbox_type(finding) for finding in types}) == len(types)


def test_mark_is_exported_as_well(findings: Findings) -> None:
    """Every later row of the incident has it too."""
    findings.record_incidents({"town": [lost("a"), lost("b")]})
    findings.mark_incidents(lambda channel, incident: incident.message_id == "a", 0)
    findings.record_incidents({"town": [lost("a", ended_ms=9)]})
    assert pending(findings, Destination.TOPICS)[2:] == [
        NumberedIncident(FIRST + 2, found(lost("a"), tap_hole=True)),
        NumberedIncident(FIRST + 3, found(lost("a", ended_ms=9), tap_hole=True)),
    ]


def test_sequence_goes_on_although_the_outbox_is_empty(path: Path) -> None:
    """A later row has a greater number, whatever the clock says at a restart."""
    findings = opened(path, FIRST)
    findings.record_incidents({"town": [lost("a")]})
    for destination in Destination:
        findings.confirm_delivered(destination, NumberedIncident, FIRST)
    for first_sequence in (1, ALL):
        findings = opened(path, first_sequence)
        findings.record_incidents({"town": [lost("b")]})
    told = [one.sequence for one in pending(findings, Destination.TOPICS)]
    assert told == [FIRST + 1, FIRST + 2]


@pytest.mark.parametrize("limit_bytes", [0, 1 << 30])
def test_damaged_page_is_an_error_with_its_remedy(
    path: Path, monkeypatch: pytest.MonkeyPatch, limit_bytes: int
) -> None:
    """At the start, or when it is read if the file is too large to be checked."""
    monkeypatch.setattr(ledger, "_CHECKED_BYTES", limit_bytes)
    findings = opened(path)
    findings.record_incidents({"town": [lost(str(n)) for n in range(500)]})
    data = bytearray(path.read_bytes())
    # All pages but the first one, which has the names of the tables.
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(
        DamagedCheckpoint, match=r'is damaged.*remove its name from "files"'
    ) as caught:
        Findings(Ledger(path, expected=True), CHANNELS).find_incidents(EVERYTHING)
    assert caught.value.place == path
    assert len(str(caught.value).splitlines()) == 1


def test_row_that_cannot_be_decoded_is_an_error(findings: Findings, path: Path) -> None:
    """Wherever it is read."""
    findings.record_incidents({"town": [lost("a")]})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE incidents SET incident = x'c1'")
        connection.execute("UPDATE outbox SET finding = substr(finding, 1, 10)")
    for read in (
        lambda: findings.find_incidents(EVERYTHING),
        lambda: pending(findings, Destination.TOPICS),
        lambda: findings.mark_incidents(lambda channel, incident: True, 0),
    ):
        with pytest.raises(DamagedCheckpoint, match="a finding cannot be decoded"):
            read()


def test_directory_in_place_of_the_file_is_named(path: Path) -> None:
    """SQLite only says that it cannot open it."""
    path.mkdir(parents=True)
    with pytest.raises(DamagedCheckpoint, match="unable to open database file"):
        opened(path, FIRST)


class Model:
    """What an outbox should hold, in memory."""

    def __init__(self) -> None:
        self.rows: list[OutboxRow] = []
        self.reached = dict.fromkeys(product(Destination, ROWS), 0)

    def add(self, row: Callable[[int], OutboxRow]) -> None:
        """Add a row made of its sequence number."""
        self.rows.append(row(FIRST + len(self.rows)))

    def pending(self, destination: Destination) -> list[OutboxRow]:
        """What a destination lacks."""
        return [
            one
            for one in self.rows
            if one.sequence > self.reached[destination, type(one)]
        ]


def _record_incident(findings: Findings, model: Model, n: int) -> None:
    findings.record_incidents({"town": [lost(str(n))]})
    model.add(lambda sequence: NumberedIncident(sequence, found(lost(str(n)))))


def _record_minutes(findings: Findings, model: Model, n: int) -> None:
    totals = ChannelTotals(messages=n)
    minutes_ms = [60_000 * m for m in range(n)]
    findings.record_minutes({"town": [ChannelMinute(ms, totals) for ms in minutes_ms]})
    for ms in minutes_ms:
        model.add(partial(_minute_row, ms, totals))


def _minute_row(ms: int, totals: ChannelTotals, sequence: int) -> NumberedMinute:
    return NumberedMinute(sequence, "town", ms, totals)


def _deliver(
    destination: Destination, type_: type[OutboxRow]
) -> Callable[[Findings, Model, int], None]:
    def deliver(findings: Findings, model: Model, n: int) -> None:
        rows = [one for one in model.pending(destination) if isinstance(one, type_)][:n]
        if rows:
            findings.confirm_delivered(destination, type_, rows[-1].sequence)
            model.reached[destination, type_] = rows[-1].sequence

    return deliver


STEPS = [
    _record_incident,
    _record_minutes,
    *starmap(_deliver, product(Destination, ROWS[:2])),
]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 4)), max_size=8))
@settings(CAREFUL, max_examples=40)
def test_killed_after_any_step_the_file_holds_what_it_should(
    steps: list[tuple[Callable[..., None], int]],
) -> None:
    """A copy of the files has what each destination lacks."""
    model = Model()
    with TemporaryDirectory() as place:
        path = Path(place) / "a" / "ledger.sqlite"
        findings = opened(path, FIRST)
        for number, (step, n) in enumerate(steps):
            step(findings, model, n)
            copy = shutil.copytree(path.parent, Path(place) / f"copy-{number}")
            reopened = opened(copy / path.name, ALL)
            for destination in Destination:
                assert pending(reopened, destination) == model.pending(destination)
            lacked = {
                one.sequence for there in Destination for one in model.pending(there)
            }
            assert reopened.count_pending() == len(lacked)
