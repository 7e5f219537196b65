"""sds_core is pure: no other room, no I/O, no clock."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sds_core

ROOT = Path(sds_core.__file__).parent
# The generated protobuf modules import only protobuf; they are no work of ours.
# The loader finds the compiled modules as Python's own finds the sources.
FILES = sorted(
    p
    for p in ROOT.rglob("*.py")
    if "proto" not in p.parts and p != ROOT / "compiled.py"
)

ALLOWED_LIBRARIES = {
    "Crypto", "cityhash", "cryptography", "farmhash", "google", "mmh3", "msgspec",
    "numpy", "sds_core", "scipy", "statsmodels",
}  # fmt: skip
FORBIDDEN_STANDARD = {
    "asyncio", "concurrent", "datetime", "glob", "http", "io", "logging",
    "multiprocessing", "os", "pathlib", "queue", "random", "secrets", "select",
    "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess",
    "tempfile", "threading", "time", "urllib", "uuid", "zoneinfo",
}  # fmt: skip
# A generator that is passed in, not the one that a process shares.
# To format times; reading the clock is a forbidden call.
ALLOWED_NAMES = {("random", "Random"), ("datetime", "UTC"), ("datetime", "datetime")}
FORBIDDEN_METHODS = {"now", "today", "utcnow"}
FORBIDDEN_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}
NEVER_LOADED = (
    "confluent_kafka", "connectors", "dashboards", "kafka", "pandas",
    "prometheus_client", "pyarrow", "pyspark", "streaming",
)  # fmt: skip


def imports(tree: ast.AST) -> Iterator[str]:
    """Full names of the modules that a file imports, but for `ALLOWED_NAMES`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            names = {(module, alias.name) for alias in node.names}
            if not names <= ALLOWED_NAMES:
                yield module


def calls(tree: ast.AST) -> Iterator[str]:
    """Names of all functions called by their bare name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def methods(tree: ast.AST) -> Iterator[str]:
    """Names of all methods and functions called by an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr


def impurities(source: str) -> set[str]:
    """What a source does that sds_core may not."""
    tree = ast.parse(source)
    roots = {name.partition(".")[0] for name in imports(tree)}
    standard = roots & sys.stdlib_module_names
    foreign = roots - standard - ALLOWED_LIBRARIES
    called = FORBIDDEN_CALLS & set(calls(tree))
    called |= FORBIDDEN_METHODS & set(methods(tree))
    return foreign | (standard & FORBIDDEN_STANDARD) | called


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_file_imports_only_pure_libraries(path: Path) -> None:
    """No Spark, Kafka or Prometheus, no sockets, files or threads, no clock."""
    assert impurities(path.read_text()) == set()


@pytest.mark.parametrize(
    "source",
    [
        "import pyspark",
        "def f():\n    import kafka.errors",
        "from prometheus_client import Counter",
        "from connectors.kafka import record",
        "import time",
        "import datetime",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import date",
        "import random",
        "from random import random",
        "from random import Random, choice",
        "open('x')",
    ],
)
def test_impurity_would_be_found(source: str) -> None:
    """The check itself can fail."""
    assert impurities(source)


def test_importing_all_of_it_imports_no_other_room() -> None:
    """Not even indirectly."""
    names = [
        module.name for module in pkgutil.walk_packages(sds_core.__path__, "sds_core.")
    ]
    assert "sds_core.observer.sds.channel_view" in names
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print([name for name in {NEVER_LOADED!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT.parent,
    )
    assert done.stdout.strip() == "[]"
