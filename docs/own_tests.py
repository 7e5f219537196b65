"""Runs the tests of single rules: ``python -m docs.own_tests sds-send-1 [...]``.

Its exit status is pytest's. Of a test with parameters, only those run that are marked
with one of the rules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path("tests")
"""Of the current directory."""


class OnlyRules:
    """A plugin of pytest that leaves out all tests without a marker of these rules."""

    def __init__(self, rule_ids: frozenset[str]) -> None:
        self._rule_ids = rule_ids

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the others; without a report, as there are thousands."""
        items[:] = [
            item
            for item in items
            if any(
                self._rule_ids.intersection(one.args)
                for one in item.iter_markers("rule")
            )
        ]


def files_of(rule_ids: frozenset[str]) -> Iterator[str]:
    """Yield the files whose text names one of the rules: more than needed, but soon."""
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "mark.rule(" in text and any(f'"{one}"' in text for one in rule_ids):
            yield str(path)


def main() -> int:
    """Run the tests of the rules that the command line names."""
    rule_ids = frozenset(sys.argv[1:])
    options = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not (node or slow)"]
    return pytest.main(
        [*options, *sorted(files_of(rule_ids))], plugins=[OnlyRules(rule_ids)]
    )


if __name__ == "__main__":
    sys.exit(main())
