"""Decoders of the operator's files: settings, channel tables, scenarios, reports."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import click

from connectors.files.channel_table import BadChannelTable, read_entries
from connectors.simulator import shipped_scenarios
from connectors.simulator.scenario_files import UnreadableScenario, load_scenario
from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    incident_object,
)
from streaming.cli import group
from streaming.cli.actions.incident_sources import read_incidents
from streaming.cli.incident_options import IncidentFilter, IncidentSource
from tests.support.frames import START_MS
from tests.support.fuzz.documents import read_json, read_toml, write_json, write_toml
from tests.support.fuzz.errors import check_text
from tests.support.fuzz.mutation import Tree, changed_document
from tests.support.fuzz.target import Target

_SETTINGS = b"""
bootstrap = "kafka-1:9092,kafka-2:9092"
start = "2026-11-21T08:00:00Z"
history-days = 7
history-topics = false

[run]
checkpoint = "/tmp/checkpoint"
metrics-port = 9108
trigger = 0.5

[mirror]
rest = ["http://127.0.0.1:8645"]
pubsub-topic = ["/waku/2/rs/1/0"]
state = "/tmp/mirror"
"""
_TABLE = b"""
[[channel]]
match = "room-*"
name = "A room"
objectives = { delivery = 0.99, acknowledgement = 0.9 }

[[channel]]
match = "test"
label = false
mute-until = 2026-12-01T08:00:00Z
"""
_INCIDENTS = [
    ChannelIncident(
        "ch", Incident(IncidentKind.LOST, "m", "a", START_MS, START_MS), True
    ),
    ChannelIncident(
        "ch", Incident(IncidentKind.UNDELIVERED, "n", "", 0, START_MS, START_MS), False
    ),
]


def _document(
    read: Callable[[bytes], Tree], write: Callable[[Tree], bytes]
) -> Callable[[Random, bytes, bytes], bytes]:
    return lambda random, value, _: changed_document(random, value, read, write)


def _in_file(name: str, check: Callable[[Path], bool]) -> Callable[[bytes], bool]:
    """Check of a file with these bytes and this name."""

    def write_and_check(data: bytes) -> bool:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / name
            path.write_bytes(data)
            return check(path)

    return write_and_check


def _check_settings(path: Path) -> bool:
    accepted = True
    for name in ("run", "mirror"):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        try:
            command.make_context(
                name, ["--config", str(path)], parent=click.Context(group)
            ).close()
        except click.ClickException as error:
            # click repeats a whole value of the operator's own file.
            longest = 2_000 + 4 * path.stat().st_size
            check_text(error.format_message(), most_characters=longest)
            accepted = False
    return accepted


def _check_table(path: Path) -> bool:
    try:
        table = ChannelTable(read_entries(path))
    except BadChannelTable as error:
        check_text(str(error), path)
        return False
    for channel in ("room-1", "test", "", "[", "\N{SNOWMAN}"):
        settings = table.of(channel)
        assert 0 < settings.delivery_objective < 1
        assert 0 < settings.acknowledgement_objective < 1
        settings.is_muted(START_MS)
    return True


def _check_scenario(path: Path) -> bool:
    try:
        scenario = load_scenario(str(path))
    except UnreadableScenario as error:
        check_text(str(error), path)
        return False
    assert scenario.total_ms > 0
    return True


def _check_report(path: Path) -> bool:
    try:
        found = read_incidents(
            IncidentSource(report=path), IncidentFilter(None, None, False)
        ).incidents
    except click.ClickException as error:
        check_text(str(error), path)
        return False
    assert found == sorted(found, key=lambda one: -one.found)
    return True


def _settings() -> list[bytes]:
    return [_SETTINGS]


def _scenarios() -> list[bytes]:
    return [file.read_bytes() for file in shipped_scenarios()]


def _tables() -> list[bytes]:
    return [_TABLE, Path("deploy/channels.toml").read_bytes(), b""]


def _reports() -> list[bytes]:
    listed = [incident_object(one) for one in _INCIDENTS]
    return [
        json.dumps({"schema": 1, "incidents": listed, "totals": {}}).encode(),
        b'{"incidents": []}',
    ]


_TOML = _document(read_toml, write_toml)
_JSON = _document(read_json, write_json)

TARGETS = (
    Target("settings", _settings, _TOML, _in_file("c.toml", _check_settings), 1_000),
    Target("channel-table", _tables, _TOML, _in_file("t.toml", _check_table), 3_000),
    Target("scenario", _scenarios, _TOML, _in_file("s.toml", _check_scenario), 1_000),
    Target("report", _reports, _JSON, _in_file("r.json", _check_report)),
)
