"""Does each rule's own tests notice when the participant breaks the rule?

``python -m docs.make_rule_mutation [RULE ...]`` applies the mutants of
docs/rules/mutants.toml one by one to a copy of the program, and runs the tests that are
marked with the mutant's rule, and no others. Without rules it runs all, some minutes,
and writes docs/rules/rule_mutation.toml.
"""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar

import msgspec

from docs.make_rules import ROOT, RULE_MUTATION, RULES

MUTANTS = RULES / "mutants.toml"
_COPIED: Final = (
    "compiler",
    "connectors",
    "docs",
    "pyproject.toml",
    "sds_core",
    "streaming",
    "tests",
)
_LIMIT_S: Final = 300
"""A mutant that takes longer counts as found: its tests take seconds."""

_PASSED: Final = 0
_FAILED: Final = 1
"""Exit status of pytest."""


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of the program.

    Attributes:
        file: changed file, relative to the repository, with slashes.
        before: text that occurs once in the file.
        after: what replaces it.
    """

    file: str
    before: str
    after: str


class Mutant(Change, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of the program that breaks one rule.

    Attributes:
        rule: id of the rule.
    """

    rule: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutants: tuple[Mutant, ...] = msgspec.field(name="mutant")


def mutants() -> tuple[Mutant, ...]:
    """Return all mutants, in the order of the file.

    Raises:
        msgspec.ValidationError: The file lacks the fields above.
    """
    return msgspec.toml.decode(MUTANTS.read_bytes(), type=_File).mutants


class Copy:
    """A copy of the program in a temporary directory.

    Args:
        directory: Empty directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        copy_program(directory)

    def run(self, rule_ids: Sequence[str]) -> int | None:
        """Return pytest's exit status for the rules' own tests; None if it hangs."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self._directory),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            return subprocess.run(  # noqa: S603 - this Python
                [sys.executable, "-m", "docs.own_tests", *rule_ids],
                cwd=self._directory,
                env=environment,
                timeout=_LIMIT_S,
                check=False,
                stdout=subprocess.DEVNULL,
            ).returncode
        except subprocess.TimeoutExpired:
            return None

    def is_found(self, mutant: Mutant) -> bool:
        """Return whether the rule's own tests fail with a mutant.

        Raises:
            RuntimeError: The tests could not be run.
        """
        path = self._directory / mutant.file
        original = path.read_text(encoding="utf-8")
        path.write_text(mutated(original, mutant), encoding="utf-8")
        try:
            status = self.run([mutant.rule])
        finally:
            path.write_text(original, encoding="utf-8")
        if status not in (_PASSED, _FAILED, None):
            message = f"{mutant.rule}: pytest ended with {status}"
            raise RuntimeError(message)
        return status != _PASSED


def copy_program(directory: Path) -> None:
    """Copy the program and its tests into an empty directory."""
    # A stored bytecode file could hide a change of a file of the same length.
    ignored = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=ignored)
        else:
            shutil.copy(source, directory / name)


def mutated(text: str, mutant: Change) -> str:
    """Return a file's text with a mutant.

    Raises:
        ValueError: The text to replace does not occur exactly once.
    """
    if text.count(mutant.before) != 1:
        message = f"not once in {mutant.file}: {mutant.before!r}"
        raise ValueError(message)
    return text.replace(mutant.before, mutant.after)


def main() -> int:
    """Run the mutants of the given rules, or of all; 1 if one was not found."""
    chosen = sys.argv[1:]
    todo = [one for one in mutants() if not chosen or one.rule in chosen]
    rule_ids = sorted({one.rule for one in todo})
    survived = []
    with tempfile.TemporaryDirectory() as directory:
        copies = _copies(Path(directory))
        if copies[0].run(rule_ids) != _PASSED:
            print("the tests fail without any mutant")
            return 1
        for number, (mutant, is_found) in enumerate(
            tried(todo, copies, Copy.is_found), 1
        ):
            if not is_found:
                survived.append(mutant.rule)
            state = "found" if is_found else "SURVIVED"
            print(f"{number}/{len(todo)} {mutant.rule}: {state}", flush=True)
    if not chosen:
        _write(len(todo), len(rule_ids), survived)
    return 1 if survived else 0


def _copies(directory: Path) -> list[Copy]:
    """Return a copy of the program for each core."""
    copies = []
    for number in range(os.cpu_count() or 1):
        place = directory / str(number)
        place.mkdir()
        copies.append(Copy(place))
    return copies


_One = TypeVar("_One")
_Place = TypeVar("_Place")
_Result = TypeVar("_Result")


def tried(
    todo: Sequence[_One],
    copies: Sequence[_Place],
    attempt: Callable[[_Place, _One], _Result],
) -> Iterator[tuple[_One, _Result]]:
    """Yield each mutant, in order, and its result in a copy that is free."""
    free: SimpleQueue[_Place] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def result(mutant: _One) -> _Result:
        copy = free.get()
        try:
            return attempt(copy, mutant)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as threads:
        yield from zip(todo, threads.map(result, todo), strict=True)


def _write(count: int, rules: int, survived: list[str]) -> None:
    lines = [
        f"mutants = {count}",
        f"rules = {rules}",
        f"survived = {survived}".replace("'", '"'),
        'command = "python -m docs.make_rule_mutation"',
        f'date = "{datetime.date.today().isoformat()}"',  # noqa: DTZ011 - a day
    ]
    RULE_MUTATION.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
