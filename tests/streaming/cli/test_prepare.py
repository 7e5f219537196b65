"""`sds-monitor prepare`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from streaming import spark_home
from streaming.cli.broker import prepare_command as command
from tests.support.cli.command import sds_monitor

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_everything_is_there_afterwards() -> None:
    """It names each file or directory; a second time there is nothing to do."""
    first, second = sds_monitor("prepare"), sds_monitor("prepare")
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout == second.stdout
    places = [Path(line.rpartition(" ")[2]) for line in first.stdout.splitlines()]
    assert len(places) == 4
    assert all(place.exists() for place in places)
    assert [place.suffix for place in places].count(".jsa") == 2


def test_environment_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says that other commands work all the same."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(spark_home, "_HOME", tmp_path / "file" / "spark-home")
    found = CliRunner().invoke(command)
    assert found.exit_code == 4
    assert "all other commands work, but start more slowly" in found.output
    assert str(tmp_path / "file") in found.output
