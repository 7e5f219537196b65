"""Which modules a command imports before it does anything."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from streaming.cli import group

pytestmark = pytest.mark.slow

HEAVY = (
    "confluent_kafka",
    "duckdb",
    "httpx",
    "kafka",
    "pandas",
    "pyarrow",
    "pyspark",
    "starlette",
)

MANY = 300
"""Modules, those of Python included: it starts with 50, click needs 100 more."""


def command_lines() -> list[str]:
    """The program, each command, and each command of a group."""
    lines = [""]
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            lines.append(name)
            if isinstance(command, click.Group):
                lines += [f"{name} {inner}" for inner in command.commands]
    return lines


def imported_by(arguments: list[str]) -> set[str]:
    """Run the program in a process of its own; returns its packages at the end."""
    return {name.split(".")[0] for name in modules_at_the_end(arguments)}


def modules_at_the_end(arguments: list[str]) -> list[str]:
    """Run the program in a process of its own; returns the modules it has imported."""
    code = (
        "import atexit, json, sys\n"
        "show = lambda: print(json.dumps(list(sys.modules)), file=sys.stderr)\n"
        "atexit.register(show)\n"
        "from streaming.cli import main\n"
        "main()\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    names: list[str] = json.loads(found.stderr.splitlines()[-1])
    return names


@pytest.mark.parametrize("line", command_lines())
def test_help_imports_no_heavy_package(line: str) -> None:
    """Help must be fast, and a mirror may run without Java."""
    imported = imported_by([*line.split(), "--help"])
    assert "click" in imported
    assert imported.isdisjoint(HEAVY)


@pytest.mark.parametrize("line", command_lines())
def test_wrong_flag_is_refused_before_anything_heavy_is_imported(line: str) -> None:
    """The answer must come at once: few modules, and none of a heavy package."""
    imported = imported_by([*line.split(), "--wrong-flag"])
    assert "click" in imported
    assert imported.isdisjoint((*HEAVY, "asyncio", "numpy", "rich"))
    assert len(modules_at_the_end([*line.split(), "--wrong-flag"])) < MANY


@pytest.mark.parametrize("action", ["mirror", "import_", "incidents", "inspect"])
def test_actions_without_spark_import_no_spark(action: str) -> None:
    """Importing pyspark would take a second."""
    code = (
        f"import sys, streaming.cli.actions.{action}\n"
        "sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


_POOL = """
import atexit
from streaming.cli import main

def show():
    import pyarrow

    print(pyarrow.default_memory_pool().backend_name)

atexit.register(show)
main()
"""


def test_commands_take_the_memory_of_arrow_from_the_c_library() -> None:
    """Arrow's own allocator keeps more after each compaction of a history."""
    command = [sys.executable, "-c", _POOL, "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split()[-1] == "system"
