"""docs/history.md agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from connectors.history.parquet import ParquetHistory
from connectors.history.schema import CHANNEL_MINUTES, INCIDENTS
from docs import make_history
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


def test_tables_of_fields_are_up_to_date() -> None:
    """After a change of the schemas run ``python -m docs.make_history``."""
    assert make_history.PAGE.read_text(encoding="utf-8") == make_history.page()


def test_sql_examples_give_the_promised_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each example runs unchanged."""
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
            minute(MONDAY_MS, messages=5),
            minute(MONDAY_MS + 60_000, messages=7),
            minute(TUESDAY_MS, messages=8, told=1),
            minute(TUESDAY_MS, messages=9, gaps_lost=2, told=2),
        ],
    )
    stand, hours, merge = examples()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            "CREATE TABLE incidents AS FROM 'history/incidents/*/*.parquet' LIMIT 0"
        )
        connection.execute(merge)
        history.write(INCIDENTS, [ended])
        connection.execute(merge)
        merged = connection.sql("SELECT message_id, told FROM incidents ORDER BY ALL")
        assert merged.fetchall() == [("a", 1), ("b", 3)]
        found = connection.sql(stand).project("channel, kind, message_id, lacked_by")
        assert found.fetchall() == [("town", "lost", "a", ["bob"])]
        counted = connection.sql(hours).project(
            "channel, epoch_ms(hour), messages, lost"
        )
        assert counted.fetchall() == [
            ("town", MONDAY_MS, 2, 0),
            ("town", TUESDAY_MS, 2, 2),
        ]
