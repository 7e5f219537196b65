"""Writing the history: complete files, few of them, and no loss by a crash."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from glob import escape, glob
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.history.errors import DamagedHistory
from connectors.history.layout import day_directory, day_of, file_path
from connectors.history.parquet import ParquetHistory
from connectors.history.query import channel_minutes, find_incidents
from connectors.history.schema import CHANNEL_MINUTES, CHANNEL_VERDICTS, INCIDENTS
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from tests.support.history.rows import (
    DAY_MS,
    MONDAY_MS,
    TUESDAY_MS,
    description,
    incident_rows,
    lost,
    minute,
)

NOW_MS = TUESDAY_MS
GROUP_ROWS = 16_384


def files(directory: Path) -> list[str]:
    """All that lies in the history."""
    found = (path for path in directory.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(directory)) for path in found)


def find(directory: Path) -> list[ChannelIncident]:
    """Every incident."""
    return find_incidents(directory, IncidentQuery())


def test_rows_are_stored_by_the_day_of_their_event_time(
    directory: Path, history: ParquetHistory
) -> None:
    """It is the day in UTC of the finding or minute, before 1970 too."""
    moments = (MONDAY_MS, TUESDAY_MS - 1, TUESDAY_MS, -1)
    rows = incident_rows(*(lost(str(n), at) for n, at in enumerate(moments)))
    history.write(INCIDENTS, rows)
    history.write(CHANNEL_MINUTES, [minute(TUESDAY_MS)])
    assert files(directory) == [
        "channel_minutes/day=2026-08-11/0000000000.parquet",
        "incidents/day=1969-12-31/0000000000.parquet",
        "incidents/day=2026-08-10/0000000000.parquet",
        "incidents/day=2026-08-11/0000000000.parquet",
    ]


def test_file_is_compressed_and_describes_its_fields(
    directory: Path, history: ParquetHistory
) -> None:
    """It has checksums and can be read without this program."""
    history.write(INCIDENTS, incident_rows(lost("m")))
    (path,) = directory.rglob("*.parquet")
    with pq.ParquetFile(path) as file:
        written = file.schema_arrow
        assert written.equals(INCIDENTS.schema)
        assert [*map(description, written)] == [*map(description, INCIDENTS.schema)]
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_no_rows_make_no_file(directory: Path, history: ParquetHistory) -> None:
    """A batch without news leaves nothing behind."""
    history.write(INCIDENTS, [])
    assert files(directory) == []


def test_invalid_row_writes_nothing(directory: Path, history: ParquetHistory) -> None:
    """Rows of other days are not written either."""
    rows = incident_rows(lost("m"), lost("n", TUESDAY_MS))
    rows[1]["told"] = "soon"
    with pytest.raises(ValueError, match="soon"):
        history.write(INCIDENTS, rows)
    assert files(directory) == []


def test_day_with_too_many_files_is_compacted(
    directory: Path, history: ParquetHistory
) -> None:
    """The latest row of each key stays, and other days are unchanged."""
    standing, ended = lost("m"), lost("m", ended_ms=MONDAY_MS + 5)
    for n, one in enumerate([standing, lost("n"), ended], start=1):
        history.write(INCIDENTS, incident_rows(one, first=n))
        history.write(CHANNEL_MINUTES, [minute(MONDAY_MS, told=n, messages=n)])
    history.write(INCIDENTS, incident_rows(lost("x", TUESDAY_MS), first=9))
    recently_ms = newest_ms(directory) + 3_600_000
    history.compact(recently_ms)
    assert files(directory) == [
        "channel_minutes/day=2026-08-10/0000000003.parquet",
        "incidents/day=2026-08-10/0000000003.parquet",
        "incidents/day=2026-08-11/0000000000.parquet",
    ]
    rows = pq.read_table(directory / files(directory)[1], partitioning=None)
    assert rows["told"].to_pylist() == [2, 3]
    history.write(INCIDENTS, incident_rows(lost("y"), first=10))
    assert "incidents/day=2026-08-10/0000000004.parquet" in files(directory)


def newest_ms(directory: Path) -> int:
    """When a file was written last, Unix ms."""
    return max(p.stat().st_mtime_ns for p in directory.rglob("*.parquet")) // 1_000_000


def test_day_without_a_new_file_for_an_hour_is_compacted(
    directory: Path, history: ParquetHistory
) -> None:
    """A complete day becomes one file."""
    for n in (1, 2):
        history.write(INCIDENTS, incident_rows(lost(str(n)), first=n))
    hour_later_ms = newest_ms(directory) + 3_600_000
    history.compact(hour_later_ms)
    assert len(files(directory)) == 2
    history.compact(hour_later_ms + 1)
    assert len(files(directory)) == 1
    assert len(find(directory)) == 2


def test_memory_of_a_compaction_does_not_grow_with_the_day(tmp_path: Path) -> None:
    """Four times as many rows take less than twice the memory.

    A peak also depends on how Arrow's threads take turns, so it is measured repeatedly.
    """
    few, many = (
        [peak_of_compaction(tmp_path / f"{groups}-{run}", groups) for run in range(3)]
        for groups in (10, 40)
    )
    assert min(many) < 2 * max(few)


def peak_of_compaction(directory: Path, groups: int) -> int:
    """Compact a day with so many groups of rows; return the peak of Arrow, bytes."""
    history = ParquetHistory(directory, file_limit=1)
    day = day_directory(directory / CHANNEL_VERDICTS.name, day_of(MONDAY_MS))
    day.mkdir(parents=True)
    rows = pa.Table.from_pylist(
        [{"channel": "town", "minute": MONDAY_MS, "told": 1}] * GROUP_ROWS,
        schema=CHANNEL_VERDICTS.schema,
    )
    for number in (0, 1):
        path = file_path(day, number)
        with pq.ParquetWriter(path, CHANNEL_VERDICTS.schema) as writer:
            for group in range(number, groups, 2):
                begin_ms = MONDAY_MS + group * GROUP_ROWS
                minutes = range(begin_ms, begin_ms + GROUP_ROWS)
                writer.write_table(with_minutes(rows, minutes))
    usual = pa.default_memory_pool()
    measured = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(measured)
    try:
        history.compact(0)
    finally:
        pa.set_memory_pool(usual)
    return int(measured.max_memory())


def with_minutes(rows: pa.Table, times_ms: range) -> pa.Table:
    """Return rows at other times."""
    place = rows.schema.get_field_index("minute")
    field = rows.schema.field(place)
    return rows.set_column(place, field, pa.array(times_ms, field.type))


def test_latest_row_does_not_depend_on_the_order_of_writing(
    directory: Path, history: ParquetHistory
) -> None:
    """Rows repeated after a crash may be older than existing ones."""
    standing, ended = incident_rows(lost("m"), lost("m", ended_ms=MONDAY_MS + 5))
    for row in (ended, standing, standing):
        history.write(INCIDENTS, [row])
    assert [one.incident.ended_ms for one in find(directory)] == [MONDAY_MS + 5]
    history.compact(NOW_MS)
    assert [one.incident.ended_ms for one in find(directory)] == [MONDAY_MS + 5]


def test_fields_missing_in_older_rows_are_null(
    directory: Path, history: ParquetHistory
) -> None:
    """Older files are read and compacted together with new ones."""
    history.write(CHANNEL_MINUTES, [minute(MONDAY_MS, messages=1)])
    (path,) = directory.rglob("*.parquet")
    with pq.ParquetFile(path) as file:
        old = file.read().drop_columns(["replicas"])
    pq.write_table(old, path)
    history.write(CHANNEL_MINUTES, [minute(MONDAY_MS + 60_000, replicas=2)])
    for _ in range(2):
        rows = channel_minutes(directory, "town", MONDAY_MS, TUESDAY_MS)
        assert [row["replicas"] for row in rows] == [None, 2]
        assert [row["messages"] for row in rows] == [1, 0]
        history.compact(newest_ms(directory) + 3_600_001)


def test_fields_of_a_newer_release_survive_a_merge(directory: Path) -> None:
    """As after the monitor has gone back to an older release."""
    field = pa.field("severity", pa.string())
    newer = replace(INCIDENTS, schema=INCIDENTS.schema.insert(3, field))
    rows = incident_rows(lost("a"), lost("b"))
    ParquetHistory(directory, tables=[newer]).write(
        newer, [row | {"severity": "high"} for row in rows]
    )
    history = ParquetHistory(directory, file_limit=1)
    history.write(INCIDENTS, incident_rows(lost("a", ended_ms=MONDAY_MS), first=3))
    history.compact(NOW_MS)
    (path,) = directory.rglob("*.parquet")
    merged = pq.read_table(path, partitioning=None).sort_by("told")
    assert merged["severity"].to_pylist() == ["high", None]
    assert [one.incident.message_id for one in find(directory)] == ["a", "b"]


def test_whole_days_expire(directory: Path, history: ParquetHistory) -> None:
    """All days before the given one, in both tables."""
    for at in (MONDAY_MS - DAY_MS, MONDAY_MS, TUESDAY_MS):
        history.write(INCIDENTS, incident_rows(lost(str(at), at)))
        history.write(CHANNEL_MINUTES, [minute(at)])
    history.expire(date(2026, 8, 11))
    assert files(directory) == [
        "channel_minutes/day=2026-08-11/0000000000.parquet",
        "incidents/day=2026-08-11/0000000000.parquet",
    ]
    history.expire(date(2026, 8, 11))
    assert len(files(directory)) == 2


def test_other_files_are_left_alone(directory: Path, history: ParquetHistory) -> None:
    """They are neither read nor removed."""
    history.write(INCIDENTS, incident_rows(lost("m")))
    day = directory / "incidents" / "day=2026-08-10"
    strangers = [
        day / "mine.parquet",
        day / ".hidden",
        day.with_name("day=soon") / "0000000000.parquet",
    ]
    for path in strangers:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    history.compact(NOW_MS)
    history.expire(date(2026, 8, 10))
    assert len(find(directory)) == 1
    assert all(path.exists() for path in strangers)


@pytest.mark.parametrize("damage", ["cut", "field"])
def test_damaged_file_prevents_only_the_compaction_of_its_day(
    directory: Path, history: ParquetHistory, damage: str
) -> None:
    """The file is named, and nothing of its day is removed."""
    for at in (MONDAY_MS, TUESDAY_MS):
        for n in range(3):
            history.write(INCIDENTS, incident_rows(lost(str(n), at)))
    damaged = directory / "incidents/day=2026-08-10/0000000001.parquet"
    if damage == "cut":
        damaged.write_bytes(damaged.read_bytes()[:-9])
    else:
        read = pq.read_table(damaged, partitioning=None)
        pq.write_table(read.rename_columns({"kind": "lind"}), damaged)
    with pytest.raises(DamagedHistory) as caught:
        history.compact(NOW_MS)
    assert caught.value.path == damaged
    assert [name.split("/")[1:] for name in files(directory)] == [
        *(["day=2026-08-10", f"000000000{n}.parquet"] for n in range(3)),
        ["day=2026-08-11", "0000000003.parquet"],
    ]


class Crashes:
    """Copies of a directory, one as a crash would leave it before each step.

    Steps are those that change names: the interpreter tells of each to its audit
    hooks, which can be added and not taken away.
    """

    STEPS = ("os.mkdir", "os.rename", "os.remove", "os.rmdir")

    def __init__(self, directory: Path, copies: Path) -> None:
        self._directory = directory
        self._copies = copies
        self._watching = False
        self.left: list[Path] = []
        sys.addaudithook(self._before_step)

    def during(self, work: Callable[[], None]) -> None:
        """Do the work, and see what each crash meanwhile would leave."""
        self._watching = True
        try:
            work()
        finally:
            self._watching = False

    def _before_step(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watching or event not in self.STEPS:
            return
        self._watching = False
        copy = self._copies / str(len(self.left))
        shutil.copytree(self._directory, copy)
        self.left.append(copy)
        self._watching = True


@pytest.fixture
def crashes(directory: Path, tmp_path: Path) -> Crashes:
    """Of the history's directory."""
    return Crashes(directory, tmp_path / "crashes")


def test_crash_during_compaction_changes_no_result(
    directory: Path, history: ParquetHistory, crashes: Crashes
) -> None:
    """After any step of it; the next compaction completes the work."""
    tellings = [lost("m"), lost("n"), lost("m", ended_ms=MONDAY_MS + 5), lost("o")]
    for n, one in enumerate(tellings, start=1):
        history.write(INCIDENTS, incident_rows(one, first=n))
        history.write(CHANNEL_MINUTES, [minute(MONDAY_MS, told=n, messages=n)])
    found = find(directory)
    minutes = channel_minutes(directory, "town", MONDAY_MS, TUESDAY_MS)
    assert (len(found), len(minutes)) == (3, 1)

    crashes.during(lambda: history.compact(NOW_MS))

    # Of each table: before the new file is there, and before each old one goes.
    assert len(crashes.left) == 2 * (1 + 4)
    for left in crashes.left:
        for _ in range(2):
            assert find(left) == found
            assert channel_minutes(left, "town", MONDAY_MS, TUESDAY_MS) == minutes
            ParquetHistory(left, file_limit=1).compact(NOW_MS)
        assert not [name for name in files(left) if "/." in name]
        assert len(files(left)) == 2


def test_crash_during_a_write_leaves_complete_files(
    directory: Path, history: ParquetHistory, crashes: Crashes
) -> None:
    """Some days may have their rows; a second write completes them."""
    history.write(INCIDENTS, incident_rows(lost("m")))
    rows = incident_rows(lost("n"), lost("o", TUESDAY_MS), first=2)
    crashes.during(lambda: history.write(INCIDENTS, rows))
    assert len(crashes.left) == 3
    counts = []
    for left in crashes.left:
        counts.append(len(find(left)))
        again = ParquetHistory(left)
        again.write(INCIDENTS, rows)
        assert find(left) == find(directory)
        again.compact(NOW_MS)
        assert not [name for name in files(left) if "/." in name]
    assert counts == [1, 2, 2]


def test_crashes_leave_nothing_that_a_query_of_all_files_reads(
    directory: Path, history: ParquetHistory, crashes: Crashes
) -> None:
    """DuckDB's `*` also stands for a dot at the beginning of a name."""
    history.write(INCIDENTS, incident_rows(lost("m")))
    history.write(INCIDENTS, incident_rows(lost("n"), first=2))

    def work() -> None:
        history.write(INCIDENTS, incident_rows(lost("o"), first=3))
        history.compact(NOW_MS)
        history.expire(date(2026, 8, 11))

    crashes.during(work)
    for left in crashes.left:
        pattern = f"{escape(str(left))}/incidents/*/*.parquet"
        found = glob(pattern, include_hidden=True)
        complete = [str(left / name) for name in files(left)]
        assert sorted(found) == [one for one in complete if "/." not in one]


def test_crash_during_expiry_restores_no_old_rows(
    directory: Path, history: ParquetHistory, crashes: Crashes
) -> None:
    """A day is complete or gone."""
    history.write(INCIDENTS, incident_rows(lost("m")))
    ended = incident_rows(lost("m", ended_ms=MONDAY_MS + 5), first=2)
    history.write(INCIDENTS, ended)
    crashes.during(lambda: history.expire(date(2026, 8, 11)))
    counts = [len(find(left)) for left in crashes.left]
    assert counts == [1, 1, 0, 0, 0, 0]
    for left in crashes.left:
        assert not find_incidents(left, IncidentQuery(standing=True))
        ParquetHistory(left).expire(date(2026, 8, 11))
        assert files(left) == []
