"""What commands tell on standard error, as text and as JSON."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from pathlib import Path

import pytest

from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.totals import ChannelTotals, Verdict
from streaming.cli.log import FIGURES
from streaming.cli.progress import progress_lines
from tests.cli.test_cli import sds_monitor
from tests.cli.test_live import Terminal, log_on


def test_program_that_ends_says_why_in_one_object(tmp_path: Path) -> None:
    """A log for programs has no other line."""
    environment = {"JAVA_HOME": "", "PATH": str(tmp_path)}
    found = sds_monitor("broker", "--fetch-only", "--log-format", "json", **environment)
    assert found.returncode == 3
    told = json.loads(found.stderr)
    assert told.keys() == {"time", "level", "logger", "message"}
    assert (told["level"], told["logger"]) == ("critical", "sds-monitor")
    assert "Java 17" in told["message"]
    assert datetime.fromisoformat(told["time"]).utcoffset() is not None


@pytest.mark.parametrize("command", ["run", "demo", "simulate", "mirror", "replay"])
def test_wrong_setting_is_told_in_the_format_that_was_asked_for(command: str) -> None:
    """Also if the environment asks for it, and the wrong one stands before it."""
    found = sds_monitor(command, "--no-such-flag", SDS_MONITOR_LOG_FORMAT="json")
    assert found.returncode == 2
    assert "no-such-flag" in found.stderr
    found = sds_monitor(command, "--log-format", "xml")
    assert found.returncode == 2
    assert "'xml' is not one of 'text', 'json'" in found.stderr


def make_snapshot(records: int) -> Snapshot:
    """A job that has read so many records of two channels."""
    channels = {
        "fine": ChannelTotals(verdict=Verdict.OK),
        "lossy": ChannelTotals(verdict=Verdict.FAILING),
    }
    job = JobFigures(records=records, records_behind=7, event_time_lag_seconds=1.5)
    return Snapshot(channels=channels, job=job)


def test_progress_is_told_now_and_then_and_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ten seconds apart, the last always, and none twice."""
    caplog.set_level(logging.INFO, "sds-monitor")
    now_s = 0.0
    line = "{0.job.records} read".format
    with progress_lines(line, lambda: now_s) as show:
        for now_s in (0.0, 1.0, 9.0, 10.0, 11.0):
            show(make_snapshot(records=round(now_s)))
    assert caplog.messages == ["0 read", "10 read", "11 read"]
    caplog.clear()
    with progress_lines(line, lambda: now_s) as show:
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
    """What is wrong in our own code comes with its traceback."""
    terminal = Terminal()
    with log_on(terminal):
        logging.getLogger("elsewhere").warning("%d away", 3)
    at, message = terminal.getvalue().split(" ", 1)
    assert message == "3 away\n"
    assert len(at.split(":")) == 3
