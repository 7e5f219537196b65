"""The deployment files, parsed as their programs parse them."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import yaml

from streaming.cli import group

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mount:
    """What a container mounts of this repository.

    Attributes:
        source: File or directory here.
        target: Absolute path there.
        is_read_only: Whether it cannot be written there.
    """

    source: Path
    target: Path
    is_read_only: bool


@lru_cache
def compose() -> dict[str, Any]:
    """Return the parsed ``docker-compose.yml``; callers must not change it."""
    parsed: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return parsed


def service(name: str) -> dict[str, Any]:
    """Return one of its services."""
    described: dict[str, Any] = compose()["services"][name]
    return described


def mounts(name: str) -> list[Mount]:
    """Return what a service mounts of this repository."""
    found = []
    for volume in service(name).get("volumes", ()):
        source, target, *options = volume.split(":")
        if source.startswith("."):
            found.append(Mount(ROOT / source, Path(target), options == ["ro"]))
    return found


def volume_targets(name: str) -> dict[str, Path]:
    """Return where a service mounts named volumes."""
    pairs = (volume.split(":") for volume in service(name).get("volumes", ()))
    return {source: Path(to) for source, to, *_ in pairs if not source.startswith(".")}


def here(name: str, path: Path) -> Path:
    """Return the file of this repository that a service has at an absolute path.

    Raises:
        LookupError: It mounts none there.
    """
    for mount in mounts(name):
        if path.is_relative_to(mount.target):
            return mount.source / path.relative_to(mount.target)
    message = f"{name} mounts nothing of the repository at {path}"
    raise LookupError(message)


def staged(name: str, directory: Path) -> Path:
    """Copy what a service mounts below a directory; return the directory."""
    for mount in mounts(name):
        place = directory / mount.target.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if mount.source.is_dir():
            shutil.copytree(mount.source, place)
        else:
            shutil.copy(mount.source, place)
    return directory


def addresses() -> set[str]:
    """Return ``name:port`` of every port that is published.

    As it is published, which is the same port here.
    """
    found = set()
    for name, described in compose()["services"].items():
        for port in described.get("ports", ()):
            *_, inside = port.split(":")
            found.add(f"{name}:{inside}")
    return found


def options(name: str) -> dict[str, str]:
    """Return a service's arguments of the form ``--option=value``."""
    pairs = (argument.partition("=") for argument in service(name)["command"])
    return {option: value for option, _, value in pairs}


def parameters(arguments: list[str]) -> dict[str, Any]:
    """Parse an sds-monitor command line without running it.

    Raises:
        click.ClickException: There is no such command or flag.
    """
    name, *rest = arguments
    context = click.Context(group, info_name="sds-monitor")
    command = group.get_command(context, name)
    assert command is not None, name
    if isinstance(command, click.Group):
        name, *rest = rest
        inner = command.get_command(context, name)
        assert inner is not None, name
        command = inner
    # The operator sets it in the environment; docker-compose.yml passes it on.
    with patch.dict(os.environ, {"SDS_MONITOR_REST": "http://node:8645"} | os.environ):
        return command.make_context(name, rest, parent=context).params


def version() -> str:
    """Return the version of this package."""
    text = (ROOT / "pyproject.toml").read_text()
    (found,) = re.findall(r'^version = "(.+)"$', text, re.MULTILINE)
    return str(found)
