"""What ``sds-monitor incidents`` prints: lines, blocks on a terminal, and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from connectors.history.parquet import ParquetHistory
from connectors.history.schema import INCIDENTS, NumberedIncident, incident_row
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.times import with_utc
from tests.support.cli.incidents import ALL, HASH, LONG_ID, LOST, MakeReport, invoke


def test_each_incident_is_one_plain_line(report: MakeReport) -> None:
    """With who lacks it, since when, complete id, hash and hint, and reason."""
    result = invoke("--from-report", str(report(ALL)))
    assert result.exit_code == 1
    lost, late, unacknowledged = result.stdout.splitlines()
    assert lost == (
        f"lost; message {LONG_ID}; channel town; sender alice; lacked by bob since "
        "2026-08-09T12:03:15.001Z, carol since 2026-08-09T12:03:16.000Z; named by "
        "alice; since 2026-08-09T12:03:10.123Z; found 2026-08-09T12:08:10.123Z; "
        "retrieval hint 02ff; why reached nobody but the sender: alice named it, and "
        "for 5 minutes nobody else showed to have it; note the taps were interrupted "
        "shortly before or during the incident, so they may have missed the message"
    )
    assert late.startswith("undelivered, ended 2026-08-09T12:13:20.000Z; message m2; ")
    assert f"Waku hash 0x{HASH.hex()}; " in late
    assert "lacked by" not in late
    assert unacknowledged.startswith(
        "unacknowledged; message m3; channel town; "
        "lacked by nobody that a filter shows; "
    )


def test_terminal_of_a_hundred_columns_has_complete_values(
    report: MakeReport,
) -> None:
    """One block per incident; no value is cut, and no line is too long."""
    result = invoke("--from-report", str(report(ALL)), FORCE_COLOR="1", COLUMNS="100")
    text = re.sub("\x1b[^m]*m", "", result.stdout)
    assert text != result.stdout
    assert max(map(len, text.splitlines())) <= 100
    for whole in (LONG_ID, "0x" + HASH.hex(), "bob since 2026-08-09T12:03:15.001Z"):
        assert whole in text
    (lost, *_), *_ = (block.splitlines() for block in text.split("\n\n"))
    assert lost.rstrip() == "lost"


def test_narrow_terminal_folds_an_id_and_cuts_nothing_off(report: MakeReport) -> None:
    """The parts of the lines make the whole id."""
    result = invoke("--from-report", str(report([LOST])), FORCE_COLOR="1", COLUMNS="50")
    text = re.sub("\x1b[^m]*m", "", result.stdout)
    assert max(map(len, text.splitlines())) <= 50
    assert LONG_ID in re.sub(r"\s", "", text)


def test_json_lines_are_the_objects_of_the_report(report: MakeReport) -> None:
    """The last found first."""
    path = report(ALL)
    result = invoke("--from-report", str(path), "--json")
    assert result.exit_code == 1
    found = [json.loads(line) for line in result.stdout.splitlines()]
    reported = json.loads(path.read_text())["incidents"][::-1]
    assert found == with_utc(reported)
    assert found[0]["since_utc"].endswith("Z")


@pytest.fixture
def channels(tmp_path: Path) -> Path:
    """A channel table that names one of the two channels."""
    path = tmp_path / "channels.toml"
    path.write_text('[[channel]]\nmatch = "tow?"\nname = "Town hall"\n')
    return path


@pytest.mark.parametrize("place", ["--from-report", "--history"])
def test_named_channels_have_names_beside_their_ids(
    report: MakeReport, history: Path, channels: Path, place: str
) -> None:
    """In text and JSON."""
    source = report(ALL) if place == "--from-report" else history
    flags = (place, str(source), "--channels", str(channels))
    lost, late, unacknowledged = invoke(*flags).stdout.splitlines()
    for line in (lost, unacknowledged):
        assert "; channel town; channel name Town hall; " in line
    assert "channel name" not in late
    found = [json.loads(line) for line in invoke(*flags, "--json").stdout.splitlines()]
    names = [one.get("channel_name") for one in found]
    assert names == ["Town hall", None, "Town hall"]


def test_invalid_channel_table_is_wrong_use(report: MakeReport, channels: Path) -> None:
    """The error has the file and the problem."""
    channels.write_text("[[channel]]\n")
    result = invoke("--from-report", str(report(ALL)), "--channels", str(channels))
    assert result.exit_code == 2
    assert f"--channels: {channels}: entry 1 lacks the key 'match'" in result.stderr


def test_incident_before_1970_is_printed(report: MakeReport, tmp_path: Path) -> None:
    """From a report and from a history."""
    incident = Incident(IncidentKind.LOST, "m", "", since_ms=-2, found_ms=-1)
    found = ChannelIncident("town", incident, False)
    history = tmp_path / "history"
    ParquetHistory(history).write(INCIDENTS, [incident_row(NumberedIncident(1, found))])
    for source in (
        ("--from-report", str(report([found]))),
        ("--history", str(history)),
    ):
        assert "found 1969-12-31T23:59:59.999Z" in invoke(*source).stdout


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1", "COLUMNS": "100"}])
def test_untrusted_text_is_escaped(
    report: MakeReport, environment: dict[str, str]
) -> None:
    """Control and direction characters are escaped, markup has no effect."""
    evil = "a\nlost\x1b[2J\u202e[bold]b[/] :boom:\x07"
    incident = Incident(
        IncidentKind.LOST, evil, evil, 1, 2, lacking={evil: 3}, named_by=[evil]
    )
    path = report([ChannelIncident(evil, incident, False)])
    result = invoke("--from-report", str(path), **environment)
    text = re.sub("\x1b\\[[0-9;]*m", "", result.stdout)
    assert not {"\x1b", "\u202e", "\x07"} & set(text)
    assert r"a\nlost\x1b[2J\u202e[bold]b[/] :boom:\x07" in text
    assert sum(line.strip() == "lost" for line in text.splitlines()) == bool(
        environment
    )
