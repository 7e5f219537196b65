"""`deploy/sds-core`: the libraries as a distribution without Spark and Kafka."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import distribution
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.support.clean_environment import build, install, name_of, run
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
    wheel = build(PROJECT, tmp_path)
    names = ZipFile(wheel).namelist()
    assert not [name for name in names if "/core/" in name]
    packages = {str(Path(name).parent) for name in names if name.endswith(".py")}
    assert {p for p in packages if p.startswith("connectors/")} == set(INCLUDED[1:])
    python = install(wheel, project(PROJECT)["dependencies"], tmp_path / "environment")
    done = run(python, "-c", PROGRAM, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"from {python.parents[1]}")
    for program in QUICK_START:
        done = run(python, str(program), directory=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
def test_monitor_runs_its_demo_in_a_new_environment(tmp_path: Path) -> None:
    """The wheel, which is built of the source distribution, and README's query."""
    wheel = build(Path(), tmp_path)
    python = install(wheel, project(Path())["dependencies"], tmp_path / "environment")
    program = python.with_name("sds-monitor")
    shown = run(program, "--version", directory=tmp_path)
    assert project(Path())["version"] in shown.stdout
    flags = ["--history", "./history", "--no-keep", "--metrics-port", "0"]
    done = run(program, "demo", *flags, directory=tmp_path, timeout_s=280)
    assert done.returncode == 0, done.stdout + done.stderr
    text = Path("README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (example,) = [one for one in blocks if "duckdb" in one]
    done = run(python, "-c", example, directory=tmp_path)
    assert re.search(r"broken-bridge .* lost .* 2 ", done.stdout), done.stderr
