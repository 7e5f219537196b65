"""The systemd units call the programs by flags that exist."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

import pytest

from streaming.cli.exit_codes import ExitCode
from tests.support.deployment import ROOT, parameters

UNITS = sorted((ROOT / "deploy").glob("*.service"))


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_unit_uses_existing_flags(path: Path) -> None:
    """The command line parses; wrong use is not restarted."""
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path)
    service = unit["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert Path(program).name == "sds-monitor"
    given = parameters(arguments)
    kept = given["checkpoint" if arguments[0] == "run" else "state"]
    assert kept.is_relative_to(Path("/var/lib") / service["StateDirectory"])
    assert service["RestartPreventExitStatus"] == str(ExitCode.WRONG_USE.value)


def test_both_long_running_commands_have_a_unit() -> None:
    """`run` and `mirror`."""
    names = {path.stem for path in UNITS}
    assert names == {"sds-monitor", "sds-monitor-mirror"}
