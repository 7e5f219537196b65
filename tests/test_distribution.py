"""`deploy/sds-core`: the libraries as a distribution without Spark and Kafka."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.support.deployment import ROOT

PROJECT = Path("deploy/sds-core")
INCLUDED = (
    "sds_core",
    "connectors/storage",
    "connectors/event_loop",
    "connectors/reliable_channel",
    "connectors/sync_tcp",
    "connectors/sockets",
)

QUICK_START = sorted((ROOT / "examples/quick_start").glob("[a-z]*.py"))

PROGRAM = """
import asyncio, importlib.util, pathlib, random, sys, tempfile
from connectors.event_loop.driver import ChannelDriver, unix_ms
from connectors.storage.mvds import SqliteNodeStorage
from connectors.storage.participants import ParticipantStore
from sds_core.message_channel import Profile
from sds_core.mvds.node import Node

options = dict(now_ms=unix_ms(), random=random.Random(), profile=Profile.spec())
path = pathlib.Path(tempfile.mkdtemp()) / "participants.sqlite"

async def send(store):
    sent = []
    async def broadcast(one):
        sent.append(one)
    channel = store.open("tea", "alice", **options)
    async with ChannelDriver(channel, broadcast=broadcast, store=store.append) as alice:
        return await alice.send(b"The kettle is on.")

with ParticipantStore(path) as store:
    message_id = asyncio.run(send(store))
with ParticipantStore(path) as store:
    assert store.open("tea", "alice", **options).log == (message_id,)
with SqliteNodeStorage(path.with_name("node.sqlite")) as storage:
    storage.store(Node(b"alice").snapshot())
    assert storage.load() is not None
for name in ("pyspark", "kafka", "confluent_kafka", "starlette"):
    assert importlib.util.find_spec(name) is None, name
print("from", sys.modules["sds_core"].__file__)
"""


def project(directory: Path) -> dict[str, Any]:
    """The section `project` of a pyproject.toml."""
    text = (ROOT / directory / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


def name_of(requirement: str) -> str:
    """The distribution that a requirement names."""
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None
    return match[0]


def with_theirs(requirements: Iterable[str]) -> dict[str, Distribution]:
    """The installed distributions of requirements, and what those require in turn."""
    found: dict[str, Distribution] = {}
    todo = [name_of(one) for one in requirements]
    while todo:
        name = todo.pop()
        if name not in found:
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:
                # For another platform: pip would not install it here either.
                continue
            theirs = found[name].requires or []
            todo += [name_of(one) for one in theirs if "extra ==" not in one]
    return found


def test_distribution_has_version_and_requirements_of_the_monitor() -> None:
    """One release has both."""
    whole, part = project(Path()), project(PROJECT)
    for key in ("version", "requires-python", "license"):
        assert part[key] == whole[key]
    assert set(part["dependencies"]) <= set(whole["dependencies"])
    for extra, requirements in part["optional-dependencies"].items():
        assert requirements == whole["optional-dependencies"][extra]


def test_distribution_requires_what_its_modules_import() -> None:
    """All of it, and nothing else."""
    modules: set[str] = set()
    for name in INCLUDED:
        for path in (ROOT / name).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    modules.update(one.name for one in node.names)
                elif isinstance(node, ast.ImportFrom):
                    modules.add(node.module or "")
    roots = {one.split(".")[0] for one in modules} - sys.stdlib_module_names
    assert {one for one in modules if one.startswith("connectors.")} <= {
        f"{name.replace('/', '.')}.{path.stem}"
        for name in INCLUDED
        for path in (ROOT / name).glob("*.py")
    }
    provided: set[str] = set()
    extras = project(PROJECT)["optional-dependencies"].values()
    for requirement in [*project(PROJECT)["dependencies"], *chain(*extras)]:
        ours = {
            one.parts[0].split(".")[0]
            for one in distribution(name_of(requirement)).files or []
        }
        assert ours & roots, requirement
        provided |= ours
    assert roots - provided == {"sds_core", "connectors"}


@pytest.mark.slow
def test_wheel_works_in_an_environment_without_spark(tmp_path: Path) -> None:
    """Built, installed with nothing but what it requires, and used."""
    pytest.importorskip("setuptools", "80")
    source = tmp_path / "source"
    skipped = shutil.ignore_patterns("__pycache__")
    for name in (*INCLUDED, str(PROJECT)):
        shutil.copytree(ROOT / name, source / name, ignore=skipped)
    wheels = tmp_path / "wheels"
    quiet = ("--no-deps", "--quiet", "--disable-pip-version-check")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", *quiet, "--no-build-isolation"),
            *("--wheel-dir", str(wheels), str(source / PROJECT)),
        ],
        check=True,
        timeout=200,
    )
    (wheel,) = wheels.glob("*-py3-none-any.whl")
    assert not [name for name in ZipFile(wheel).namelist() if "/core/" in name]
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    (site,) = environment.glob("lib/python*/site-packages")
    # What it requires is linked, so that the test needs no package index.
    for found in with_theirs(project(PROJECT)["dependencies"]).values():
        for name in {one.parts[0] for one in found.files or []} - {".."}:
            target = Path(str(found.locate_file(name)))
            if not (site / name).exists():
                (site / name).symlink_to(target)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", *quiet, "--no-index"),
            *("--target", str(site), str(wheel)),
        ],
        check=True,
        timeout=200,
    )
    without_ours = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for program in (("-c", PROGRAM), *((str(one),) for one in QUICK_START)):
        done = subprocess.run(
            [str(environment / "bin/python"), *program],
            cwd=tmp_path,
            env=without_ours,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if program[0] == "-c":
            assert done.stdout.startswith(f"from {site}")
