"""Queries of the history, at rest and while it is written."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.history.layout import settled
from connectors.history.parquet import ParquetHistory
from connectors.history.query import (
    channel_minutes,
    find_incidents,
    greatest_told,
)
from connectors.history.schema import CHANNEL_MINUTES, INCIDENTS, TABLES
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    IncidentPlace,
    IncidentQuery,
)
from sds_core.observer.sds import kind as sds
from streaming.ledger.findings import Findings
from tests.support.history.rows import (
    DAY_MS,
    MONDAY_MS,
    TUESDAY_MS,
    incident_rows,
    lost,
    minute,
)
from tests.support.properties import CAREFUL
from tests.support.streaming.ledger import ledger_in

pytestmark = pytest.mark.slow

EVERYTHING = IncidentQuery()
CHANNELS = ("town", "to\x00wn")
HALF_DAY_MS = DAY_MS // 2


def ids(found: Sequence[ChannelIncident]) -> list[str]:
    """Message ids."""
    return [one.incident.message_id for one in found]


@st.composite
def tellings(draw: st.DrawFn) -> list[ChannelIncident]:
    """What a job may tell one after the other.

    Incidents are found, end, are told again, and are found anew, over some days.
    """
    clock_ms = MONDAY_MS
    found_ms: dict[tuple[str, IncidentKind, str], int] = {}
    told = []
    for _ in range(draw(st.integers(0, 12))):
        clock_ms += draw(st.integers(0, 2)) * HALF_DAY_MS
        key = (
            draw(st.sampled_from(CHANNELS)),
            draw(st.sampled_from(IncidentKind)),
            draw(st.sampled_from(["m", "é"])),
        )
        if key not in found_ms or draw(st.booleans()):
            found_ms[key] = clock_ms
        channel, kind, message_id = key
        ended_ms = draw(st.none() | st.just(clock_ms))
        incident = Incident(kind, message_id, "s", 5, found_ms[key], ended_ms)
        told.append(ChannelIncident(channel, incident, tap_hole=False))
    return told


queries = st.builds(
    IncidentQuery,
    st.none() | st.sampled_from([*CHANNELS, "' OR true --"]),
    st.none() | st.sampled_from(IncidentKind),
    st.none() | st.integers(0, 14).map(lambda n: MONDAY_MS + n * HALF_DAY_MS),
    st.booleans(),
    st.none() | st.integers(0, 5),
    st.none()
    | st.builds(
        IncidentPlace,
        st.integers(0, 14).map(lambda n: MONDAY_MS + n * HALF_DAY_MS),
        st.sampled_from([*CHANNELS, "' OR true --"]),
        st.sampled_from(IncidentKind),
        st.sampled_from(["m", "é", "", "' OR true --"]),
    ),
)


@pytest.mark.slow
@given(tellings(), st.lists(st.tuples(st.integers(0, 12), st.booleans())), queries)
@settings(CAREFUL, max_examples=60)
def test_history_finds_what_the_store_beside_the_checkpoint_finds(
    told: list[ChannelIncident], cuts: list[tuple[int, bool]], query: IncidentQuery
) -> None:
    """For any order of writes and compactions, also with repeated rows."""
    with TemporaryDirectory() as place:
        findings = Findings(ledger_in(Path(place)), sds.CHANNELS)
        for one in told:
            findings.record_incidents({one.channel: [one.incident]})
        directory = Path(place) / "history"
        history = ParquetHistory(directory, file_limit=1)
        (directory / "lock").touch()
        rows = incident_rows(*told)
        compactions = dict(cuts)
        for begin, end in pairwise([0, *sorted(compactions), len(rows)]):
            history.write(INCIDENTS, rows[max(0, begin - 1) : end])
            if compactions.get(end):
                history.compact(0)
        assert find_incidents(directory, query) == findings.find_incidents(query)


def test_minutes_of_a_channel_come_in_order(
    directory: Path, history: ParquetHistory
) -> None:
    """Within the range, each in its latest version."""
    history.write(
        CHANNEL_MINUTES,
        [
            minute(TUESDAY_MS, told=1, messages=3),
            minute(TUESDAY_MS - 60_000, told=3, messages=2),
            minute(TUESDAY_MS - 60_000, told=2, messages=1),
            minute(MONDAY_MS, told=4, messages=4),
            minute(TUESDAY_MS, told=5) | {"channel": "village"},
        ],
    )

    def messages(since_ms: int, until_ms: int) -> list[int]:
        rows = channel_minutes(directory, "town", since_ms, until_ms)
        assert [row["minute"] for row in rows] == sorted(row["minute"] for row in rows)
        return [row["messages"] for row in rows]

    assert messages(MONDAY_MS, TUESDAY_MS + 1) == [4, 2, 3]
    assert messages(MONDAY_MS, TUESDAY_MS) == [4, 2]
    assert messages(TUESDAY_MS, 10**18) == [3]
    assert messages(-(10**18), MONDAY_MS) == []
    assert channel_minutes(directory, "nowhere", 0, 10**18) == []


def test_only_requested_fields_are_read(
    directory: Path, history: ParquetHistory
) -> None:
    """Key and sequence number are read as well."""
    history.write(
        CHANNEL_MINUTES,
        [minute(MONDAY_MS, told=1, messages=1), minute(MONDAY_MS, told=2, messages=2)],
    )
    rows = channel_minutes(
        directory, "town", 0, 10**18, ["messages", "ack_latency_ms_definite_buckets"]
    )
    assert rows == [
        {
            "channel": "town",
            "minute": MONDAY_MS,
            "messages": 2,
            "ack_latency_ms_definite_buckets": [0] * 13,
            "told": 2,
        }
    ]


def test_history_without_rows_is_empty(
    directory: Path, history: ParquetHistory
) -> None:
    """A monitor that has just started holds only its lock."""
    (directory / "lock").touch()
    assert find_incidents(directory, EVERYTHING) == []
    assert channel_minutes(directory, "town", 0, 1) == []


def test_missing_history_is_an_error(tmp_path: Path) -> None:
    """A mistyped directory is detected."""
    path = tmp_path / "nowhere"
    with pytest.raises(NoHistory, match=r"no history was found in .*nowhere"):
        find_incidents(path, EVERYTHING)
    with pytest.raises(NoHistory):
        channel_minutes(path, "town", 0, 1)


def test_parent_of_a_history_is_no_history(
    directory: Path, history: ParquetHistory
) -> None:
    """For a checkpoint, the error names the history inside it."""
    history.write(CHANNEL_MINUTES, [minute(MONDAY_MS)])
    checkpoint = directory.with_name("checkpoint")
    checkpoint.mkdir()
    with pytest.raises(NoHistory, match="give the directory to which the monitor"):
        find_incidents(checkpoint, EVERYTHING)
    inner = directory.rename(checkpoint / "history")
    with pytest.raises(NoHistory) as caught:
        find_incidents(checkpoint, EVERYTHING)
    text = (
        f"no history was found in {checkpoint}: give {inner}, which contains a history"
    )
    assert str(caught.value) == text
    assert find_incidents(inner, EVERYTHING) == []


@pytest.mark.parametrize("since_ms", [None, TUESDAY_MS])
@pytest.mark.parametrize("damage", ["short", "other bytes", "text", "gone", "field"])
def test_damaged_file_is_named(
    directory: Path, history: ParquetHistory, damage: str, since_ms: int | None
) -> None:
    """The error is one line; no rows are left out silently."""
    for at in (MONDAY_MS, TUESDAY_MS):
        history.write(INCIDENTS, incident_rows(lost("m", at)))
    path = directory / "incidents/day=2026-08-10/0000000000.parquet"
    spoil(path, damage)
    with pytest.raises(DamagedHistory) as caught:
        find_incidents(directory, IncidentQuery(since_ms=since_ms))
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path} cannot be read (")
    assert len(str(caught.value).splitlines()) == 1


def spoil(path: Path, damage: str) -> None:
    """Do to a file what disks and people do."""
    content = path.read_bytes()
    match damage:
        case "short":
            path.write_bytes(content[:-9])
        case "other bytes":
            path.write_bytes(content[:40] + bytes(20) + content[60:])
        case "field":
            read = pq.read_table(path, partitioning=None)
            pq.write_table(read.rename_columns({"told": "uold"}), path)
        case "text":
            path.write_text("PAR1 but no table, PAR1")
        case "gone":
            path.unlink()
            path.symlink_to("nowhere")


_SEARCH = """
import sys
from contextlib import suppress
from pathlib import Path
from connectors.history.query import find_incidents
from sds_core.observer.incidents import IncidentQuery

directory, path, field, channel, since_ms = sys.argv[1:]
content = Path(path).read_bytes()
end = content.index(b"ARROW:schema")
begin = content.rindex(field.encode(), 0, end)
for place in range(begin, min(begin + 160, end)):
    for mask in (0x01, 0x24):
        damaged = bytearray(content)
        damaged[place] ^= mask
        Path(path).write_bytes(damaged)
        query = IncidentQuery(channel or None, since_ms=int(since_ms) or None)
        with suppress(ValueError):
            find_incidents(Path(directory), query)
"""


@pytest.mark.parametrize(
    ("field", "channel", "since_ms"),
    [("channel", "town", 0), ("ended", "", TUESDAY_MS)],
)
def test_damaged_statistics_do_not_end_the_process(
    directory: Path, history: ParquetHistory, field: str, channel: str, since_ms: int
) -> None:
    """PyArrow aborts if it reads some of them."""
    history.write(INCIDENTS, incident_rows(lost("m")))
    (path,) = directory.rglob("*.parquet")
    values = [str(one) for one in (directory, path, field, channel, since_ms)]
    done = subprocess.run([sys.executable, "-c", _SEARCH, *values], check=False)
    assert done.returncode == 0


def test_older_days_without_open_incidents_are_not_read(
    directory: Path, history: ParquetHistory
) -> None:
    """Damage in such a day is not even noticed; but the day before is read too."""
    ended = lost("old", ended_ms=MONDAY_MS + 5)
    late = lost("late", TUESDAY_MS, ended_ms=TUESDAY_MS + 5)
    wednesday_ms = TUESDAY_MS + DAY_MS
    history.write(INCIDENTS, incident_rows(ended, late, lost("new", wednesday_ms)))
    history.write(CHANNEL_MINUTES, [minute(MONDAY_MS), minute(TUESDAY_MS)])
    for path in directory.rglob("day=2026-08-10/*.parquet"):
        spoil(path, "other bytes")
    since = IncidentQuery(since_ms=wednesday_ms)
    assert ids(find_incidents(directory, since)) == ["new"]
    assert len(channel_minutes(directory, "town", TUESDAY_MS, 10**18)) == 1
    with pytest.raises(DamagedHistory):
        find_incidents(directory, IncidentQuery(since_ms=wednesday_ms - 1))
    with pytest.raises(DamagedHistory):
        channel_minutes(directory, "town", TUESDAY_MS - 1, 10**18)


@pytest.mark.parametrize("since_ms", [None, TUESDAY_MS])
@pytest.mark.parametrize("standing", [False, True])
def test_incident_that_a_new_job_found_on_the_day_before_is_its_own(
    directory: Path, history: ParquetHistory, standing: bool, since_ms: int | None
) -> None:
    """The row of the earlier job, which had a longer deadline, does not count."""
    tellings = [
        lost("m", TUESDAY_MS + 60_000),
        lost("m", TUESDAY_MS - 60_000),
        lost("m", TUESDAY_MS - 60_000, ended_ms=TUESDAY_MS + 500_000),
    ]
    for row in incident_rows(*tellings):
        history.write(INCIDENTS, [row])
    history.compact(2**50)
    query = IncidentQuery(since_ms=since_ms, standing=standing)
    found = [one.incident for one in find_incidents(directory, query)]
    expected = [] if standing or since_ms is not None else [tellings[-1].incident]
    assert found == expected


def test_greatest_number_of_all_readable_rows_is_found(
    directory: Path, history: ParquetHistory
) -> None:
    """In any table and day; damaged files are skipped."""
    assert greatest_told(directory, TABLES) == 0
    history.write(INCIDENTS, incident_rows(lost("m"), lost("n", TUESDAY_MS), first=5))
    history.write(CHANNEL_MINUTES, [minute(MONDAY_MS, told=9), minute(TUESDAY_MS, 7)])
    assert greatest_told(directory, TABLES) == 9
    for damage in ("short", "text"):
        spoil(directory / "channel_minutes/day=2026-08-10/0000000000.parquet", damage)
        assert greatest_told(directory, TABLES) == 7


def test_reader_misses_no_row_while_files_change(
    directory: Path, history: ParquetHistory
) -> None:
    """Files are added, compacted and removed during the read."""
    rows = incident_rows(*(lost(str(n)) for n in range(3)))
    history.write(INCIDENTS, rows)
    end = threading.Event()

    def work() -> None:
        while not end.is_set():
            for row in rows:
                history.write(INCIDENTS, [row])
            history.compact(0)

    writer = threading.Thread(target=work)
    writer.start()
    try:
        for _ in range(20):
            assert ids(find_incidents(directory, EVERYTHING)) == ["0", "1", "2"]
    finally:
        end.set()
        writer.join()


def test_listing_is_repeated_until_it_does_not_change() -> None:
    """A listing taken during a compaction may lack files."""
    listings = iter(["old", "", "new", "new", "newer"])
    assert settled(lambda: next(listings)) == "new"
