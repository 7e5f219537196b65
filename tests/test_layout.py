"""Where the modules of the tests lie, and which of them import which."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUPPORT = ROOT / "tests" / "support"
PROGRAMS = ("benchmarks", "connectors", "dashboards", "docs", "sds_core", "streaming")


def imported(source: str) -> Iterator[str]:
    """The modules that a module's source imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports are for nobody here"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def imported_tests(source: str) -> list[str]:
    """The modules of the tests that a source imports, but for `tests.support`."""
    return [
        name
        for name in imported(source)
        if name.split(".")[0] == "tests" and name.split(".")[1:2] != ["support"]
    ]


@pytest.mark.parametrize(
    "source",
    [
        "from tests.streaming.cli.test_cli import sds_monitor",
        "import tests.streaming.cli.test_cli",
        "def f():\n    from tests import cli",
        "from tests.conftest import spark",
    ],
)
def test_import_of_a_test_is_found(source: str) -> None:
    """In any form, at any depth."""
    assert imported_tests(source)


def test_import_of_support_is_allowed() -> None:
    """So is every module that is no test."""
    assert not imported_tests("import tests.support.kafka, json")
    assert not imported_tests("from tests.support import frames")


@pytest.mark.parametrize("directory", ["tests", *PROGRAMS])
def test_no_module_imports_a_test(directory: str) -> None:
    """What several tests need is in `tests/support`."""
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in (ROOT / directory).rglob("*.py")
        if (found := imported_tests(path.read_text("utf-8")))
    }
    assert wrong == {}


def test_modules_beside_tests_are_tests() -> None:
    """Helpers are in `tests/support`, which has no tests."""
    modules = (ROOT / "tests").rglob("*.py")
    helpers = [
        str(path.relative_to(ROOT))
        for path in modules
        if not path.is_relative_to(SUPPORT)
        and path.name not in {"conftest.py", "__init__.py"}
        and not path.name.startswith("test_")
    ]
    assert helpers == []
    assert list(SUPPORT.rglob("test_*.py")) == []
