"""Rules of the documents that tests show, by their markers.

A test shows a rule by ``@pytest.mark.rule("sds-send-1", ...)``: on a function, a class
or a parameter, or as ``pytestmark`` of a class or module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Marker(NamedTuple):
    """A rule named by a test.

    Attributes:
        rule_id: id of the rule.
        file: file of the test, relative to the repository, with slashes.
        test: function, class or method; empty for a whole file.
    """

    rule_id: str
    file: str
    test: str


def markers(tests: Path) -> list[Marker]:
    """Return every rule that a test below a directory names, by file and line.

    Raises:
        ValueError: arguments of a marker are not texts, or it does not mark a test.
    """
    found = []
    for path in sorted(tests.rglob("*.py")):
        file = path.relative_to(tests.parent).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"), file)
        found += [Marker(rule_id, file, test) for rule_id, test in _named(tree, "")]
    return found


def _named(scope: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, str]]:
    """Yield the rule ids in a module or class, each with the name of its test."""
    within = f"{name}." if name else ""
    for node in scope.body:
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id == "pytestmark":
                yield from ((rule_id, name) for rule_id in _ids(node.value))
            # The form in which a state machine's TestCase is marked.
            if isinstance(target, ast.Attribute) and target.attr == "pytestmark":
                test = within + ast.unparse(target.value)
                yield from ((rule_id, test) for rule_id in _ids(node.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            test = within + node.name
            ids = [i for decorator in node.decorator_list for i in _ids(decorator)]
            kind = "Test" if isinstance(node, ast.ClassDef) else "test_"
            if ids and not node.name.startswith(kind):
                msg = f"{test} is marked with rules but is no test"
                raise ValueError(msg)
            yield from ((rule_id, test) for rule_id in ids)
            if isinstance(node, ast.ClassDef):
                yield from _named(node, test)


def _ids(expression: ast.expr) -> Iterator[str]:
    """Yield the arguments of every ``pytest.mark.rule(...)`` in an expression."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
            for argument in node.args:
                match argument:
                    case ast.Constant(value=str(rule_id)):
                        yield rule_id
                    case _:
                        msg = f"line {node.lineno}: rule ids are written out as texts"
                        raise ValueError(msg)
