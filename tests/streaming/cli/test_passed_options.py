"""Commands that pass options by name: the action has a parameter for each."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
from click.testing import CliRunner

from streaming.cli import group

KAFKA = ("--bootstrap", "127.0.0.1:1")
SPAN = ("--from", "1", "--to", "2")
WAKU = ("--rest", "http://127.0.0.1:1", "--pubsub-topic", "/waku/2/rs/1/0")


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ("audit.compare", ("audit", *KAFKA, *WAKU)),
        ("audit_serve.serve", ("audit", "serve", *KAFKA, "--state", "s")),
        ("dead_letter.list_letters", ("dead-letter", "list", *KAFKA)),
        ("dead_letter.print_letter", ("dead-letter", "show", *KAFKA, "t:0:1")),
        ("dead_letter.Replay", ("dead-letter", "replay", *KAFKA, "--all")),
        ("demo.Demo", ("demo",)),
        ("doctor.doctor", ("doctor", *KAFKA, "--checkpoint", "s")),
        ("export.export", ("export", *KAFKA, "f")),
        ("forget.forget", ("forget", "c", "--checkpoint", "s")),
        ("import_.import_records", ("import", *KAFKA, "pyproject.toml")),
        ("incidents.list_incidents", ("incidents",)),
        ("incidents.list_lacks", ("incidents", "--by", "participant")),
        ("inspect.inspect", ("inspect", "f")),
        ("mirror.mirror", ("mirror", *KAFKA, *WAKU, "--state", "s")),
        ("plan_forecast.print_forecast", ("plan", "forecast")),
        (
            "plan_size.print_size",
            *[("plan", "size", "--channel-count", "1", "--messages-per-second", "1")],
        ),
        ("replay.replay", ("replay", *KAFKA, *SPAN, "--report", "r")),
        ("simulate.simulate", ("simulate", *KAFKA)),
        ("trace.trace", ("trace", "m", *KAFKA)),
    ],
)
def test_every_option_has_its_parameter(
    action: str, line: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mock with the action's signature refuses any other name."""
    monkeypatch.chdir(Path(__file__).parents[3])
    place, _, name = action.partition(".")
    module = import_module(f"streaming.cli.actions.{place}")
    mock: Any = create_autospec(getattr(module, name))
    monkeypatch.setattr(module, name, mock)
    result = CliRunner().invoke(group, line, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    mock.assert_called_once()


def test_audit_without_a_command_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without options, because the environment may have them all."""
    module = import_module("streaming.cli.actions.audit")
    mock: Any = create_autospec(module.compare)
    monkeypatch.setattr(module, "compare", mock)
    environment = {"SDS_MONITOR_BOOTSTRAP": KAFKA[1]}
    result = CliRunner().invoke(group, ["audit"], env=environment)
    assert result.exit_code == 0, result.output
    mock.assert_called_once()
