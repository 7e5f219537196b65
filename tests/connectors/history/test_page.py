"""docs/history.md agrees with the code."""

from __future__ import annotations

import re
import shutil
import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from connectors.history.layout import day_of
from connectors.history.parquet import ParquetHistory
from connectors.history.schema import (
    CHANNEL_MINUTES,
    CHANNEL_VERDICTS,
    INCIDENTS,
    NumberedVerdict,
    Row,
    verdict_row,
)
from docs import make_history
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.shown_verdicts import ShownVerdict, day_begin_ms
from streaming.cli.output import wall_ms
from tests.support.history.rows import (
    MONDAY_MS,
    TUESDAY_MS,
    incident_rows,
    lost,
    minute,
)

HOUR_MS = 3_600_000


def examples() -> list[str]:
    """The page's SQL."""
    text = make_history.PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```sql\n(.*?);\n```$", text, re.MULTILINE | re.DOTALL)


def verdict(minute_ms: int, shown: str, told: int = 1) -> Row:
    """Return a row of channel town."""
    numbered = NumberedVerdict(told, "town", ShownVerdict(minute_ms, shown, "why"))
    return verdict_row(numbered, CHANNEL_FIGURES)


def test_tables_of_fields_are_up_to_date() -> None:
    """After a change of the schemas run ``python -m docs.make_history``."""
    assert make_history.PAGE.read_text(encoding="utf-8") == make_history.page()


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_sql_examples_give_the_promised_result(
    zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each example runs unchanged, in the order of the page, in an empty database."""
    monkeypatch.chdir(tmp_path)
    history = ParquetHistory(Path("history"))
    tellings = [
        lost("a", lacking={"bob": MONDAY_MS}),
        lost("b", TUESDAY_MS),
        lost("b", TUESDAY_MS, ended_ms=TUESDAY_MS + 1),
    ]
    standing, gone, ended = incident_rows(*tellings)
    history.write(INCIDENTS, [standing, gone])
    history.write(
        CHANNEL_MINUTES,
        [
            minute(MONDAY_MS - HOUR_MS, messages=3),
            minute(MONDAY_MS, messages=5),
            minute(MONDAY_MS + 60_000, messages=7),
            minute(TUESDAY_MS, messages=8, told=1),
            minute(TUESDAY_MS, messages=9, gaps_lost=2, told=2),
        ],
    )
    stand, hours, minutes_by_verdict, create, merge = examples()
    history.write(
        CHANNEL_VERDICTS,
        [
            verdict(MONDAY_MS, "ok"),
            verdict(MONDAY_MS + 60_000, "degraded", told=2),
            verdict(MONDAY_MS + 60_000, "failing", told=3),
            verdict(MONDAY_MS + 180_000, "ok"),
            verdict(TUESDAY_MS, "not_watched"),
        ],
    )
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        connection.execute(create)
        connection.execute(merge)
        history.write(INCIDENTS, [ended])
        connection.execute(merge)
        merged = connection.sql("SELECT message_id, told FROM incidents ORDER BY ALL")
        assert merged.fetchall() == [("a", 1), ("b", 3)]
        found = connection.sql(stand).project("channel, kind, message_id, lacked_by")
        assert found.fetchall() == [("town", "lost", "a", ["bob"])]
        times = connection.sql(stand).project("found").fetchall()
        assert times == [(datetime.fromtimestamp(MONDAY_MS / 1000, UTC),)]
        counted = connection.sql(hours).project(
            "channel, epoch_ms(hour), messages, lost"
        )
        assert counted.fetchall() == [
            ("town", MONDAY_MS, 4, 0),
            ("town", TUESDAY_MS, 2, 2),
        ]
        assert connection.sql(minutes_by_verdict).fetchall() == [
            ("town", "not_watched", 1_440),
            ("town", "ok", 1_438),
            ("town", "failing", 2),
        ]


def test_rows_of_a_release_with_another_field_can_be_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the table has the column; the files need not have all columns any more."""
    monkeypatch.chdir(tmp_path)
    first, second = incident_rows(lost("a"), lost("b"))
    _, _, _, create, merge = examples()
    ParquetHistory(Path("history")).write(INCIDENTS, [first])
    field = pa.field("severity", pa.string())
    newer = replace(INCIDENTS, schema=INCIDENTS.schema.insert(3, field))
    with duckdb.connect() as connection:
        connection.execute(create)
        connection.execute(merge)
        shutil.rmtree("history")
        rows = [row | {"severity": "high"} for row in (first | {"told": 3}, second)]
        ParquetHistory(Path("history")).write(newer, rows)
        connection.execute("ALTER TABLE incidents ADD COLUMN severity VARCHAR")
        connection.execute(merge)
        merged = connection.sql(
            "SELECT message_id, sender, severity, told FROM incidents ORDER BY ALL"
        )
        assert merged.fetchall() == [
            ("a", "alice", "high", 3),
            ("b", "alice", "high", 2),
        ]


def test_last_verdict_of_the_present_day_counts_until_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not until midnight."""
    monkeypatch.chdir(tmp_path)
    begin_ms = wall_ms()
    day_ms = day_begin_ms(begin_ms)
    ParquetHistory(Path("history")).write(CHANNEL_VERDICTS, [verdict(day_ms, "ok")])
    _, _, minutes_by_verdict, *_ = examples()
    query = re.sub(r"2026-08-1\d", str(day_of(day_ms)), minutes_by_verdict)
    with duckdb.connect() as connection:
        ((minutes,),) = connection.sql(query).project("minutes").fetchall()
    least, most = ((now_ms - day_ms) // 60_000 for now_ms in (begin_ms, wall_ms()))
    assert least <= minutes <= most


def test_example_of_the_readme_counts_the_messages_with_incidents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It runs unchanged; several rows of one incident count once."""
    text = (make_history.PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (example,) = [one for one in blocks if "duckdb" in one]
    monkeypatch.chdir(tmp_path)
    history = ParquetHistory(Path("history"))
    incidents = [lost("a", lacking={"bob": MONDAY_MS}), lost("b")]
    history.write(INCIDENTS, incident_rows(*incidents, incidents[0]))
    exec(example, {})  # noqa: S102 - code of ours
    row = re.search(r"town.*lost.*", capsys.readouterr().out)
    assert row is not None
    assert re.findall(r"\d+", row[0]) == ["2"]


def test_what_duckdb_needs_for_time_zones_is_declared() -> None:
    """It is installed with us, and not only because another package brings it."""
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    declared = tomllib.loads(text)["project"]["dependencies"]
    assert any(re.match(r"pytz\b", one) for one in declared)
    assert make_history.PAGE.read_text(encoding="utf-8").count("`pytz`") == 1


def test_hourly_example_counts_the_first_minute_of_a_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages of all hours are those that the channel had at the end."""
    monkeypatch.chdir(tmp_path)
    rows = [minute(MONDAY_MS, messages=5), minute(MONDAY_MS + HOUR_MS, messages=8)]
    ParquetHistory(Path("history")).write(CHANNEL_MINUTES, rows)
    _, hours, *_ = examples()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(hours).project("messages").fetchall()
    assert found == [(5,), (3,)]


def test_hourly_example_counts_a_channel_that_was_forgotten_and_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its totals begin at 0: without negative numbers."""
    monkeypatch.chdir(tmp_path)
    rows = [
        minute(MONDAY_MS, messages=900, gaps_lost=4),
        minute(TUESDAY_MS, messages=5, gaps_lost=1),
        minute(TUESDAY_MS + 60_000, messages=8, gaps_lost=1),
    ]
    ParquetHistory(Path("history")).write(CHANNEL_MINUTES, rows)
    _, hours, *_ = examples()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(hours).project("messages, lost").fetchall()
    assert found == [(900, 4), (8, 1)]
