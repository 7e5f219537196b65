"""What ``sds-monitor incidents --by participant`` prints."""

from __future__ import annotations

import json

from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from tests.support.cli.incidents import ALL, LOST, MakeReport, invoke


def undelivered(message_id: str, **values: object) -> ChannelIncident:
    """A message of channel `town` that bob lacks since a second after 1970 began."""
    incident = Incident(
        IncidentKind.UNDELIVERED, message_id, "alice", 1_000, 2_000, lacking={}
    )
    for name, value in values.items():
        setattr(incident, name, value)
    return ChannelIncident("town", incident, tap_hole=False)


FOUND = [
    *ALL,
    undelivered("u1", lacking={"bob": 1_000, "e\nve": 3_000}),
    undelivered("u2", lacking={"bob": 2_000}),
    undelivered("u3", ended_ms=9_000),
]


def test_each_participant_that_lacks_messages_is_one_line(report: MakeReport) -> None:
    """With how many since when, after what nobody received; exit code 1."""
    result = invoke("--report", str(report(FOUND)), "--by", "participant")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "1 message reached nobody but its sender since 2026-08-09T12:03:10.123Z; "
        "channel town; 1 of them while the taps were interrupted",
        "bob lacks 2 messages since 1970-01-01T00:00:01.000Z; channel town",
        r"e\nve lacks 1 message since 1970-01-01T00:00:03.000Z; channel town",
        "1 message since 2026-08-09T10:06:40.000Z was not acknowledged; channel town",
    ]


def test_groups_are_json_lines(report: MakeReport) -> None:
    """With the participant, or null if the problem is of no single one."""
    path = str(report([LOST, FOUND[3]]))
    result = invoke("--report", path, "--by", "participant", "--json")
    lost, bob, eve = map(json.loads, result.stdout.splitlines())
    assert (lost["kind"], lost["participant"]) == ("lost", None)
    assert bob == {
        "channel": "town",
        "channel_name": None,
        "kind": "undelivered",
        "participant": "bob",
        "messages": 1,
        "at_least": False,
        "since": 1_000,
        "tap_hole": 0,
    }
    assert eve["participant"] == "e\nve"


def test_nothing_unresolved_is_fine(report: MakeReport) -> None:
    """Exit code 0, although there are incidents."""
    result = invoke("--report", str(report([FOUND[-1]])), "--by", "participant")
    assert (result.exit_code, result.stdout) == (0, "no unresolved incidents\n")
