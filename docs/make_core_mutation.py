"""Do the tests of the compiled rules notice when a rule is broken?

``python -m docs.make_core_mutation [--interpreted] [FILE ...]`` applies the mutants of
docs/rules/core_mutants.toml, all or those of the files, one by one to a copy of the
program. It compiles the copy after each, without optimisation, and runs the tests in
the directory that mirrors the file's. With ``--interpreted`` the sources run as they
are.
"""

from __future__ import annotations

import enum
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from docs.make_rule_mutation import Change, copy_program, mutated, tried
from docs.make_rules import RULES
from sds_core.compiled import SWITCH

MUTANTS = RULES / "core_mutants.toml"

_LIMIT_S: Final = 300
"""A mutant whose tests take more CPU time counts as found: some hang, and tests take 80
s."""

_BUILD = """
from pathlib import Path
from compiler.build import build
build(Path.cwd(), ["-O0"], jobs=1)
"""

_OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "-m", "not (node or slow)")
_PASSED: Final = 0
_FAILED: Final = 1
"""Exit status of pytest."""


class Outcome(enum.Enum):
    """What became of a mutant; the values are printed."""

    FOUND = "found"
    SURVIVED = "SURVIVED"
    NOT_COMPILED = "does not compile"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutants: tuple[Change, ...] = msgspec.field(name="mutant")


def mutants() -> tuple[Change, ...]:
    """Return all mutants, in the order of the file.

    Raises:
        msgspec.ValidationError: The file lacks the fields of `Change`.
    """
    return msgspec.toml.decode(MUTANTS.read_bytes(), type=_File).mutants


class CoreCopy:
    """A copy of the program whose core is compiled after each change.

    Args:
        directory: Empty directory.
        form: `compiled` or `interpreted`.
    """

    def __init__(self, directory: Path, form: str) -> None:
        self._directory = directory
        self._form = form
        copy_program(directory)

    def outcome(self, mutant: Change) -> Outcome:
        """Return what becomes of a mutant.

        Raises:
            RuntimeError: The tests could not be run.
        """
        path = self._directory / mutant.file
        original = path.read_text(encoding="utf-8")
        path.write_text(mutated(original, mutant), encoding="utf-8")
        try:
            return self._outcome(Path("tests", mutant.file).parent)
        finally:
            path.write_text(original, encoding="utf-8")

    def outcome_without(self) -> Outcome:
        """Return what becomes of the program as it is: it must survive."""
        return self._outcome(Path("tests/sds_core/observer"))

    def _outcome(self, tests: Path) -> Outcome:
        if self._form == "compiled" and self._run("-c", _BUILD) != _PASSED:
            return Outcome.NOT_COMPILED
        status = self._run("-m", "pytest", *_OPTIONS, str(tests))
        if status not in (_PASSED, _FAILED, None):
            message = f"{tests}: pytest ended with {status}"
            raise RuntimeError(message)
        return Outcome.SURVIVED if status == _PASSED else Outcome.FOUND

    def _run(self, *arguments: str) -> int | None:
        """Return the exit status of Python in the copy; None if it hangs.

        The limit is one of CPU time: other programs decide nothing.
        """
        environment = {
            **os.environ,
            SWITCH: self._form,
            "PYTHONPATH": str(self._directory),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if arguments[0] == "-c":
            # There is no compiled form yet.
            del environment[SWITCH]
        status = subprocess.run(  # noqa: S603 - this Python
            [
                "/usr/bin/prlimit",
                f"--cpu={_LIMIT_S}:{_LIMIT_S + 5}",
                sys.executable,
                *arguments,
            ],
            cwd=self._directory,
            env=environment,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode
        return None if status == -signal.SIGXCPU else status


def main() -> int:
    """Run the mutants of the given files, or all; 1 if one was not found."""
    files = set(sys.argv[1:])
    form = "interpreted" if "--interpreted" in files else "compiled"
    files.discard("--interpreted")
    todo = [one for one in mutants() if not files or one.file in files]
    counts = dict.fromkeys(Outcome, 0)
    with tempfile.TemporaryDirectory() as directory:
        copies = []
        for number in range(os.cpu_count() or 1):
            place = Path(directory) / str(number)
            place.mkdir()
            copies.append(CoreCopy(place, form))
        if copies[0].outcome_without() is not Outcome.SURVIVED:
            print("the tests fail without any mutant")
            return 1
        for mutant, outcome in tried(todo, copies, CoreCopy.outcome):
            counts[outcome] += 1
            name = f"{mutant.file}: {mutant.after.strip()}"
            print(f"{sum(counts.values())}/{len(todo)} {outcome.value}: {name}")
            sys.stdout.flush()
    numbers = ", ".join(f"{counts[one]} {one.value}" for one in Outcome)
    print(f"{form}: {len(todo)} mutants, {numbers}")
    return 0 if counts[Outcome.FOUND] == len(todo) else 1


if __name__ == "__main__":
    sys.exit(main())
