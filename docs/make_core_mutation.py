"""Do the tests of the compiled rules notice when a rule is broken?

``python -m docs.make_core_mutation [--interpreted] [FILE ...]`` applies the mutants of
docs/rules/core_mutants.toml, all or those of the files, one by one to a copy of the
program. It compiles the copy after each, without optimisation, and runs the tests in
the directory that mirrors the file's. With ``--interpreted`` the sources run as they
are.
"""

from __future__ import annotations

import enum
import sys
from pathlib import Path

import msgspec

from docs.make_rules import RULES
from docs.program_copy import Change, ProgramCopy, copies, tried
from sds_core.compiled import SWITCH

MUTANTS = RULES / "core_mutants.toml"

_BUILD = """
from pathlib import Path
from compiler.build import build
build(Path.cwd(), ["-O0"], jobs=1)
"""

_OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "-m", "not (node or slow)")


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


class CoreCopy(ProgramCopy):
    """A copy of the program whose core is compiled after each change.

    Args:
        directory: Empty directory.
        form: `compiled` or `interpreted`.
    """

    def __init__(self, directory: Path, form: str) -> None:
        super().__init__(directory, {SWITCH: form})
        self._is_compiled = form == "compiled"

    def outcome(self, mutant: Change) -> Outcome:
        """Return what becomes of a mutant.

        Raises:
            RuntimeError: The tests could not be run.
        """
        with self.changed(mutant):
            return self.outcome_of(Path("tests", mutant.file).parent)

    def outcome_of(self, tests: Path) -> Outcome:
        """Return what becomes of the copy as it is."""
        # Before it is compiled there is no compiled form that could be chosen.
        if self._is_compiled and self.run("-c", _BUILD, without=SWITCH)[0]:
            return Outcome.NOT_COMPILED
        failure = self.failure("pytest", *_OPTIONS, str(tests))
        return Outcome.SURVIVED if failure is None else Outcome.FOUND


def main() -> int:
    """Run the mutants of the given files, or all; 1 if one was not found."""
    files = set(sys.argv[1:])
    form = "interpreted" if "--interpreted" in files else "compiled"
    files.discard("--interpreted")
    todo = [mutant for mutant in mutants() if not files or mutant.file in files]
    counts = dict.fromkeys(Outcome, 0)
    with copies(lambda directory: CoreCopy(directory, form)) as places:
        unchanged = places[0].outcome_of(Path("tests/sds_core/observer"))
        if unchanged is not Outcome.SURVIVED:
            print("the tests fail without any mutant")
            return 1
        for mutant, outcome in tried(todo, places, CoreCopy.outcome):
            counts[outcome] += 1
            name = f"{mutant.file}: {mutant.after.strip()}"
            print(f"{sum(counts.values())}/{len(todo)} {outcome.value}: {name}")
            sys.stdout.flush()
    numbers = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome)
    print(f"{form}: {len(todo)} mutants, {numbers}")
    return 0 if counts[Outcome.FOUND] == len(todo) else 1


if __name__ == "__main__":
    sys.exit(main())
