"""Copies of the program that are changed on purpose: do tests notice it?

`docs.make_rule_mutation`, `docs.make_core_mutation` and `docs.make_promise_mutation`
use them: each change has the tests that must fail with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Self, TypeVar

import msgspec

from docs.make_rules import ROOT

_IGNORED: Final = (".git", ".venv", "artifacts", "node_modules", "__pycache__")
"""A stored bytecode file could hide a change of a file of the same length."""

_LIMIT_S: Final = 300
"""Tests that take more CPU time have failed: some changes make endless loops."""

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


def mutated(text: str, change: Change) -> str:
    """Return a file's text with a change.

    Raises:
        ValueError: The text to replace does not occur exactly once.
    """
    if text.count(change.before) != 1:
        message = f"not once in {change.file}: {change.before!r}"
        raise ValueError(message)
    return text.replace(change.before, change.after)


class ProgramCopy:
    """A copy of the program and its tests.

    Args:
        directory: Empty directory.
        environment: Variables beside those of this process.
    """

    def __init__(
        self, directory: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._directory = directory
        self._environment = {
            **os.environ,
            "COLUMNS": "300",
            "PYTHONPATH": str(directory),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(environment or {}),
        }
        ignored = shutil.ignore_patterns(*_IGNORED)
        shutil.copytree(ROOT, directory, ignore=ignored, dirs_exist_ok=True)

    @contextmanager
    def changed(self, change: Change) -> Iterator[Self]:
        """Change a file of the copy until the block ends."""
        path = self._directory / change.file
        original = path.read_text(encoding="utf-8")
        path.write_text(mutated(original, change), encoding="utf-8")
        try:
            yield self
        finally:
            path.write_text(original, encoding="utf-8")

    def run(self, *arguments: str, without: str = "") -> tuple[int, str]:
        """Return exit status and output of Python, without a variable if one is named.

        The limit is one of CPU time: other programs decide nothing.
        """
        ended = subprocess.run(  # noqa: S603 - this Python
            [
                "/usr/bin/prlimit",
                f"--cpu={_LIMIT_S}:{_LIMIT_S + 5}",
                sys.executable,
                *arguments,
            ],
            cwd=self._directory,
            env={k: v for k, v in self._environment.items() if k != without},
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return ended.returncode, ended.stdout

    def failure(self, module: str, *arguments: str) -> str | None:
        """Return how tests fail, in one line; None if they pass.

        Args:
            module: Module that runs pytest, or `pytest`.
            arguments: What it is called with.

        Raises:
            RuntimeError: The tests could not be run.
        """
        status, output = self.run("-m", module, *arguments)
        if status == _PASSED:
            return None
        if status in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
            return f"more than {_LIMIT_S} s of CPU time"
        if status != _FAILED:
            message = f"{' '.join(arguments)}: pytest ended with {status}\n{output}"
            raise RuntimeError(message)
        lines = output.splitlines()
        return next(
            (line for line in lines if line.startswith(("FAILED ", "ERROR tests"))),
            lines[-1],
        )


_Place = TypeVar("_Place", bound=ProgramCopy)


@contextmanager
def copies(make: Callable[[Path], _Place]) -> Iterator[list[_Place]]:
    """Make a copy of the program for each core, until the block ends."""
    with tempfile.TemporaryDirectory() as directory:
        places = [Path(directory, str(n)) for n in range(os.cpu_count() or 1)]
        yield [make(place) for place in places]


_One = TypeVar("_One")
_Result = TypeVar("_Result")


def tried(
    todo: Sequence[_One],
    places: Sequence[_Place],
    attempt: Callable[[_Place, _One], _Result],
) -> Iterator[tuple[_One, _Result]]:
    """Yield each mutant, in order, and its result in a copy that is free."""
    free: SimpleQueue[_Place] = SimpleQueue()
    for place in places:
        free.put(place)

    def result(mutant: _One) -> _Result:
        place = free.get()
        try:
            return attempt(place, mutant)
        finally:
            free.put(place)

    with ThreadPoolExecutor(len(places)) as threads:
        yield from zip(todo, threads.map(result, todo), strict=True)
