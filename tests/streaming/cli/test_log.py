"""What commands write to standard error, as text and as JSON."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.verdict import Verdict
from streaming.cli.live import logged_progress
from streaming.cli.log import FIGURES, LogFormat, requested_format
from tests.support.cli.command import sds_monitor
from tests.support.cli.terminal import Terminal, log_on
from tests.support.snapshots import snapshot_of


def test_failed_command_writes_one_json_object(tmp_path: Path) -> None:
    """A JSON log has no other line."""
    environment = {"JAVA_HOME": "", "PATH": str(tmp_path)}
    found = sds_monitor("broker", "--fetch-only", "--log-format", "json", **environment)
    assert found.returncode == 3
    told = json.loads(found.stderr)
    assert told.keys() == {"time", "level", "logger", "message"}
    assert (told["level"], told["logger"]) == ("critical", "sds-monitor")
    assert "Java 17" in told["message"]
    assert datetime.fromisoformat(told["time"]).utcoffset() is not None


@pytest.mark.parametrize("command", ["run", "demo", "simulate", "mirror", "replay"])
def test_wrong_flag_is_reported_in_the_requested_format(command: str) -> None:
    """Also if it comes before `--log-format`, or that is wrong itself."""
    found = sds_monitor(command, "--no-such-flag", "--log-format", "json")
    assert found.returncode == 2
    told = json.loads(found.stderr)
    assert told["level"] == "critical"
    assert "--no-such-flag" in told["message"]
    found = sds_monitor(command, "--log-format", "xml")
    assert found.returncode == 2
    assert "'xml' is not one of 'text', 'json'" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "environment", "asked"),
    [
        ("run --log-format json", "", "json"),
        ("run --log-format=json --topic x", "text", "json"),
        ("run --log-format json --log-format text", "json", "text"),
        ("inspect -- --log-format json", "", "text"),
        ("run --log-format", "json", "text"),
        ("run", "json", "json"),
        ("run", "xml", "text"),
    ],
)
def test_format_is_known_before_flags_are_read(
    arguments: str, environment: str, asked: str
) -> None:
    """The last flag precedes the environment; an invalid format means text."""
    variables = {"SDS_MONITOR_LOG_FORMAT": environment}
    assert requested_format(arguments.split(), variables) == asked


def test_format_set_in_a_file_applies_to_warnings_on_the_file(tmp_path: Path) -> None:
    """For example on a password that others can read."""
    config = tmp_path / "config.toml"
    config.touch(0o644)
    config.write_text('bootstrap = "b:1"\nlog-format = "json"\nkafka-password = "x"\n')
    found = sds_monitor("mirror", "--config", str(config))
    assert found.returncode == 2
    warning, end = map(json.loads, found.stderr.splitlines())
    assert (warning["level"], end["level"]) == ("warning", "critical")
    assert warning["message"].endswith(f"chmod 600 {config}")


BROKEN = """
from streaming.cli import main
from streaming.cli.inspect import command

command.callback = lambda **_: 1 // 0
main()
"""


@pytest.mark.parametrize("log_format", LogFormat)
def test_unexpected_error_has_a_traceback(
    log_format: LogFormat,
) -> None:
    """In the object, or below the line that names it; exit code 70."""
    found = subprocess.run(
        [sys.executable, "-c", BROKEN, "inspect"],
        capture_output=True,
        text=True,
        env=os.environ | {"SDS_MONITOR_LOG_FORMAT": log_format},
        check=False,
    )
    assert found.returncode == 70
    if log_format is LogFormat.JSON:
        told = json.loads(found.stderr)
        assert told["level"] == "critical"
        message, traceback = told["message"], told["exception"]
    else:
        message, traceback = found.stderr.split("\n", 1)
        message = message.removeprefix("sds-monitor: ")
    assert message.startswith("unexpected error: ZeroDivisionError(")
    assert traceback.startswith("Traceback (most recent call last):\n")
    assert "in <lambda>" in traceback


def make_snapshot(records: int) -> Snapshot:
    """A job that has read so many records of two channels."""
    channels = {
        "fine": ChannelTotals(verdict=Verdict.OK),
        "lossy": ChannelTotals(verdict=Verdict.FAILING),
    }
    job = JobFigures(records=records, records_behind=7, event_time_lag_seconds=1.5)
    return snapshot_of(channels=channels, job=job)


def test_progress_is_logged_every_ten_seconds_and_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No value is logged twice."""
    caplog.set_level(logging.INFO, "sds-monitor")
    now_s = 0.0
    line = "{0.job.records} read".format
    with logged_progress(line, lambda: now_s) as show:
        for now_s in (0.0, 1.0, 9.0, 10.0, 11.0):
            show(make_snapshot(records=round(now_s)))
    assert caplog.messages == ["0 read", "10 read", "11 read"]
    caplog.clear()
    with logged_progress(line, lambda: now_s) as show:
        show(make_snapshot(records=1))
    assert caplog.messages == ["1 read"]
    (record,) = caplog.records
    assert getattr(record, FIGURES) == {
        "records": 1,
        "records_behind": 7,
        "lag_seconds": 1.5,
        "channels": {verdict.value: 0 for verdict in Verdict} | {"ok": 1, "failing": 1},
    }


def test_text_has_the_time_and_the_message() -> None:
    """In one line, for every library."""
    terminal = Terminal()
    with log_on(terminal):
        logging.getLogger("elsewhere").warning("%d away", 3)
    at, message = terminal.getvalue().split(" ", 1)
    assert message == "3 away\n"
    assert len(at.split(":")) == 3
