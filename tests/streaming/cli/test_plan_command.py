"""``sds-monitor plan forecast``: tables, JSON, and one line for what is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from connectors.history.schema import tables_of
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.planning.hours import DAY_MS, HOUR_MS
from streaming.cli import group
from streaming.cli.actions import plan_forecast
from tests.support.planning.month import Month
from tests.support.planning.stored import store

MONTH = Month(days=30, messages_a_day=2_800.0)
END_MS = MONTH.begin_ms + 30 * DAY_MS
SILENT = MONTH.rows(20)


def invoke(*arguments: str, **environment: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(group, ["plan", "forecast", *arguments], env=environment)


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the end of the month."""
    monkeypatch.setattr(plan_forecast, "wall_ms", lambda: END_MS)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A month of `town`, in which `village` fell silent."""
    directory = tmp_path_factory.mktemp("plan") / "history"
    return store(directory, {"town": MONTH.rows(), "village": SILENT})


def test_table_names_figures_and_limits(history: Path, tmp_path: Path) -> None:
    """One table for the channel, and a line for each limit."""
    names = tmp_path / "channels.toml"
    names.write_text('[[channel]]\nmatch = "town"\nname = "Town hall"\n')
    result = invoke(
        "--history", str(history), "--channels", str(names),
        "--kafka-retention-days", "7",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    title, heading, *lines = result.stdout.splitlines()
    assert title == (
        "Channel town (Town hall): 29 days of history, until 2026-09-09 00:00:00 UTC"
    )
    assert heading.split("  ")[1] == "a day, mean"
    assert lines[0].startswith("  bytes ")
    text = result.stdout
    for part in ("content", "histories", "filters", "requests", "other"):
        assert f"\n    {part} " in text
    assert "  Kafka storage, peak" in text
    assert "  rate-limit budget (90): not within 90 days\n" in text
    assert "  message size (154 kB): not within 90 days\n" in text
    assert "  filter (103,972): 2026-09-" in text
    assert text.endswith(
        "no forecast for village: silent since 2026-08-30 00:00:00 UTC\n"
    )


def test_json_is_one_object(history: Path) -> None:
    """With every day of every figure, and times in both forms."""
    result = invoke("--history", str(history), "--format", "json", "--days", "30")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["begin"] == END_MS
    assert document["begin_utc"] == "2026-09-09T00:00:00.000Z"
    assert document["without_forecast"] == [
        {"channel": "village", "why": "silent since 2026-08-30 00:00:00 UTC"}
    ]
    town = document["channels"]["town"]
    assert town["history_days"] == 29
    assert len(town["figures"]["bytes"]["days"]) == 30
    for figure in town["figures"].values():
        for one in (figure["week"], *figure["days"]):
            assert one["low"] <= one["mid"] <= one["high"]
    limits = {limit["figure"]: limit for limit in town["limits"]}
    assert limits["filter_ids"]["reached"] % HOUR_MS == 0
    assert limits["filter_ids"]["reached_utc"].startswith("2026-09-1")
    assert limits["message_bytes"]["reached"] is None
    total = document["total"]
    assert total["figures"]["bytes"] == town["figures"]["bytes"]
    assert total["limits"] == []


def test_groups_of_another_protocol_have_their_bytes(tmp_path: Path) -> None:
    """Without limits, because nothing of a group has any."""
    tables = tables_of(kinds_of(PROTOCOLS).of("mvds"))
    rows = [
        {
            "minute": row["minute"],
            "messages": row["messages"],
            "bytes_offer": row["bytes_other"],
        }
        for row in MONTH.rows()
    ]
    store(tmp_path, {"0123456789abcdef": rows}, tables.minutes)
    result = invoke("--history", str(tmp_path), "--views", "mvds")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Group 0123456789abcdef: 29 days of history")
    assert "\n    offer " in result.stdout
    assert "not within" not in result.stdout
    # SDS has nothing in this history.
    line = one_error("--history", str(tmp_path))
    assert line == "no forecast: the history has no channel"


def test_settings_come_from_file_and_environment(history: Path, tmp_path: Path) -> None:
    """The file has a table for the command, the environment a variable."""
    path = tmp_path / "monitor.toml"
    path.write_text(f'[plan.forecast]\nhistory = "{history}"\ndays = 7\n')
    result = invoke("--config", str(path), SDS_MONITOR_FORMAT="json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert len(document["channels"]["town"]["figures"]["bytes"]["days"]) == 7


def one_error(*arguments: str) -> str:
    """The one line of an error of wrong use, after which nothing was printed."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return result.stderr.splitlines()[-1].removeprefix("Error: ")


def test_silent_channel_is_one_line(history: Path) -> None:
    """It says since when."""
    line = one_error("--history", str(history), "--channel", "village")
    assert line == ("no forecast for village: silent since 2026-08-30 00:00:00 UTC")


def test_unknown_channel_is_one_line(history: Path) -> None:
    """With the name that may be meant."""
    line = one_error("--history", str(history), "--channel", "twon")
    assert line == "no such channel: 'twon' (did you mean 'town'?)"


def test_history_too_short_is_one_line(tmp_path: Path) -> None:
    """Of several channels, the first one's reason."""
    week = MONTH.rows()[-7 * 24 :]
    store(tmp_path, {"town": week, "village": week[-1:]})
    line = one_error("--history", str(tmp_path))
    assert line == (
        "no forecast for any of 2 channels; town: 6 whole days of history, at least 14 "
        "are needed"
    )
    line = one_error("--history", str(tmp_path), "--channel", "village")
    assert line.startswith("no forecast for village: 0 whole days of history")


def test_jumped_clock_is_one_line(tmp_path: Path) -> None:
    """With the date to which it jumped."""
    late = MONTH.rows()[-1] | {"minute": END_MS + 400 * DAY_MS}
    store(tmp_path, {"town": [*MONTH.rows(), late]})
    line = one_error("--history", str(tmp_path))
    assert line == (
        "no forecast for town: the history has a minute of 2027-10-14 00:00:00 UTC, "
        "which is later than now: a clock jumped"
    )


def test_empty_history_is_one_line(tmp_path: Path) -> None:
    """A directory without one, and a history without rows."""
    assert one_error("--history", str(tmp_path)).startswith(
        "--history: no history was found in"
    )
    (tmp_path / "lock").touch()
    line = one_error("--history", str(tmp_path))
    assert line == "no forecast: the history has no channel"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--days", "6"),
        ("--days", "-1"),
        ("--days", "nan"),
        ("--fit-days", "14"),
        ("--interval", "100"),
        ("--epoch-messages", "0"),
        ("--epoch-messages", "-5"),
        ("--kafka-retention-days", "0"),
        ("--kafka-replication", "0"),
        ("--record-bytes", "-1"),
        ("--format", "yaml"),
        ("--views", "nothing"),
        ("--api", "http://127.0.0.1:1"),
    ],
)
def test_nonsense_is_one_line(history: Path, arguments: tuple[str, str]) -> None:
    """It names the option; nothing is printed."""
    line = one_error("--history", str(history), *arguments)
    assert arguments[0] in line


def test_missing_library_is_one_line(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to install."""
    monkeypatch.setitem(sys.modules, "statsmodels.tsa.statespace.structural", None)
    line = one_error("--history", str(history))
    assert line == "plans need statsmodels: pip install 'sds-monitor[plan]'"
