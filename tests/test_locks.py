"""The pinned dependencies: the locks have hashes, and fit pyproject.toml and pins."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MONITOR, DEV = "requirements.txt", "requirements-dev.txt"

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LOCKED = re.compile(r"(\S+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)")


def name_of(requirement: str) -> str:
    """The normalised name that a requirement begins with."""
    match = _NAME.match(requirement)
    assert match is not None, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def locked(file: str) -> dict[str, str]:
    """The version of each package in a lock, all of which have hashes."""
    lines = (ROOT / file).read_text("utf-8").replace("\\\n", "").splitlines()
    matches = {line: _LOCKED.fullmatch(re.sub(" +", " ", line)) for line in lines}
    assert [line for line, match in matches.items() if match is None] == []
    return {name_of(match[1]): match[2] for match in matches.values() if match}


def pins() -> dict[str, str]:
    """The version of each package in the constraints."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return {name_of(line): line.partition("==")[2] for line in lines}


@pytest.mark.parametrize("file", [MONITOR, DEV])
def test_locks_have_the_pinned_versions(file: str) -> None:
    """After a change of the constraints, `make locks`."""
    known = pins()
    differing = {n: v for n, v in locked(file).items() if known.get(n) != v}
    assert differing == {}


def test_locks_have_every_dependency() -> None:
    """After a change of pyproject.toml, `make constraints`; or a pin, `make locks`."""
    monitor, dev = locked(MONITOR), locked(DEV)
    assert monitor.items() <= dev.items()
    extras = PROJECT["project"]["optional-dependencies"].values()
    needed = [*PROJECT["project"]["dependencies"], *(one for e in extras for one in e)]
    assert {name_of(one) for one in needed} <= monitor.keys()
    groups = PROJECT["dependency-groups"]
    grouped = [one for one in groups["dev"] + groups["core"] if isinstance(one, str)]
    assert {name_of(one) for one in grouped} <= dev.keys()


def test_every_tool_is_pinned() -> None:
    """Of the groups that are installed when a command needs them, too; but ziglang."""
    named = {
        name_of(one)
        for group, requirements in PROJECT["dependency-groups"].items()
        if group != "zig"
        for one in requirements
        if isinstance(one, str)
    }
    assert named - pins().keys() == set()
