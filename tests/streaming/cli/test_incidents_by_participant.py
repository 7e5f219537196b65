"""What ``sds-monitor incidents --by participant`` prints."""

from __future__ import annotations

import json
from pathlib import Path

from connectors.history.parquet import ParquetHistory
from connectors.history.schema import INCIDENTS, NumberedIncident, incident_row
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.settings import ObserverSettings
from tests.support.cli.incidents import ALL, LOST, MakeReport, invoke

NOW_MS = 1_786_277_000_000
"""2026-08-09 12:03:20 UTC."""


def undelivered(message_id: str, **values: object) -> ChannelIncident:
    """A message of channel `town` that bob lacks since 12:03:20 UTC."""
    incident = Incident(
        IncidentKind.UNDELIVERED,
        message_id,
        "alice",
        NOW_MS,
        NOW_MS + 300_000,
        lacking={},
    )
    for name, value in values.items():
        setattr(incident, name, value)
    return ChannelIncident("town", incident, tap_hole=False)


FOUND = [
    *ALL,
    undelivered("u1", lacking={"bob": NOW_MS, "e\nve": NOW_MS + 3_000}),
    undelivered("u2", lacking={"bob": NOW_MS + 2_000}),
    undelivered("u3", ended_ms=NOW_MS + 400_000),
]


def test_each_participant_that_lacks_messages_is_one_line(report: MakeReport) -> None:
    """With how many since when, after what nobody received; exit code 1."""
    result = invoke("--from-report", str(report(FOUND)), "--by", "participant")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "1 message reached nobody but its sender since 2026-08-09T12:03:10.123Z; "
        "channel town; taps may have missed 1 of the messages",
        "2 messages did not reach bob since 2026-08-09T12:03:20.000Z; channel town",
        r"1 message did not reach e\nve since 2026-08-09T12:03:23.000Z; channel town",
        "1 message since 2026-08-09T10:06:40.000Z was not acknowledged; channel town",
    ]


def test_messages_of_more_than_an_hour_ago_are_not_said_to_be_lacked(
    report: MakeReport, history: Path
) -> None:
    """They may have arrived since."""
    old = undelivered("u0", lacking={"bob": NOW_MS})
    now_ms = NOW_MS + 3_600_001
    later = undelivered("u9", since_ms=now_ms, found_ms=now_ms, lacking={"eve": now_ms})
    line = "1 message since 2026-08-09T12:03:20.000Z was not seen to reach bob"
    result = invoke("--from-report", str(report([later, old])), "--by", "participant")
    first, last = result.stdout.splitlines()
    assert first.startswith("1 message did not reach eve since")
    assert last == f"{line}; channel town"
    rows = [incident_row(NumberedIncident(1, old))]
    ParquetHistory(history).write(INCIDENTS, rows)
    result = invoke("--history", str(history), "--by", "participant")
    assert line in result.stdout


def test_horizon_is_that_of_the_monitor_that_found_them(report: MakeReport) -> None:
    """The report has the settings that are not the defaults."""
    old = undelivered("u0", lacking={"bob": NOW_MS})
    now_ms = NOW_MS + 2_000_000
    later = undelivered("u9", since_ms=now_ms, found_ms=now_ms, lacking={"eve": now_ms})
    path = report([later, old])
    document = json.loads(path.read_text())
    # Another release may have a setting that this one does not know.
    document["observer"] = {"horizon_ms": 1_800_000, "unknown_ms": 1}
    path.write_text(json.dumps(document))
    result = invoke("--from-report", str(path), "--by", "participant")
    _, last = result.stdout.splitlines()
    assert last.endswith("was not seen to reach bob; channel town")


def test_history_has_the_deadlines_of_the_monitor_that_found_them(
    history: Path,
) -> None:
    """They are in the stored explanation."""
    settings = ObserverSettings(delivery_deadline_ms=60_000)
    numbered = NumberedIncident(1, undelivered("u0", lacking={"bob": NOW_MS}))
    ParquetHistory(history).write(INCIDENTS, [incident_row(numbered, settings)])
    result = invoke("--history", str(history), "--json")
    whys = [json.loads(line)["why"] for line in result.stdout.splitlines()]
    assert sum(why.startswith("1 minute later bob was still") for why in whys) == 1


def test_groups_are_json_lines(report: MakeReport) -> None:
    """With the participant, or null if the problem is of no single one."""
    path = str(report([LOST, FOUND[3]]))
    result = invoke("--from-report", path, "--by", "participant", "--json")
    lost, bob, eve = map(json.loads, result.stdout.splitlines())
    assert (lost["kind"], lost["participant"]) == ("lost", None)
    assert bob == {
        "channel": "town",
        "channel_name": None,
        "kind": "undelivered",
        "participant": "bob",
        "messages": 1,
        "at_least": False,
        "since": NOW_MS,
        "since_utc": "2026-08-09T12:03:20.000Z",
        "tap_hole": 0,
        "followed": True,
    }
    assert eve["participant"] == "e\nve"


def test_nothing_unresolved_is_fine(report: MakeReport) -> None:
    """Exit code 0, although there are incidents."""
    result = invoke("--from-report", str(report([FOUND[-1]])), "--by", "participant")
    assert (result.exit_code, result.stdout) == (0, "no unresolved incidents\n")
