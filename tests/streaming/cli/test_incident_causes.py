"""``sds-monitor incidents`` prints the likely causes of what it lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connectors.history.parquet import ParquetHistory
from connectors.history.schema import INCIDENTS, NumberedIncident, incident_row
from sds_core.observer.report import build_report
from tests.support.causes import explained_channel
from tests.support.cli.incidents import ALL, LOST, invoke
from tests.support.snapshots import snapshot_of

CLOCK_MS = 1_786_277_300_000

CAUSES = [
    "likely cause; channel town; only b<o>b\\u202e lacks the 9 undelivered messages: "
    "all others have them",
    "likely cause; channel town; nobody requests repair, so SDS-R is probably off: no "
    "request for an hour, although requests for 9 messages were due",
]


@pytest.fixture
def report(tmp_path: Path) -> str:
    """Path of a report in which two channels have the same likely causes."""
    channels = {name: explained_channel(CLOCK_MS) for name in ("town", "quiet")}
    snapshot = snapshot_of(clock_ms=CLOCK_MS, channels=channels)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(build_report(snapshot, 0, {}, [LOST])))
    return str(path)


@pytest.mark.parametrize("by", [(), ("--by", "participant")])
def test_causes_of_channels_with_incidents_come_last(
    report: str, by: tuple[str, ...]
) -> None:
    """A line each; a channel of which nothing is listed has none."""
    lines = invoke("--from-report", report, *by).stdout.splitlines()
    assert lines[-2:] == CAUSES
    assert not any("quiet" in line for line in lines)


@pytest.mark.parametrize("by", [(), ("--by", "participant")])
def test_json_lines_are_incidents_alone(report: str, by: tuple[str, ...]) -> None:
    """Programs read causes from the report or the API."""
    lines = invoke("--from-report", report, "--json", *by).stdout.splitlines()
    assert lines
    assert all(json.loads(line)["channel"] == "town" for line in lines)
    assert all("kind" in json.loads(line) for line in lines)


def test_history_has_no_causes(tmp_path: Path) -> None:
    """It has messages, and no evidence."""
    rows = [incident_row(NumberedIncident(1, one)) for one in ALL]
    ParquetHistory(tmp_path).write(INCIDENTS, rows)
    assert "likely cause" not in invoke("--history", str(tmp_path)).stdout
