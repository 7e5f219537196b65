"""Does a test of each promise notice when the program breaks it?

``python -m docs.make_promise_mutation [--new] [TEXT ...]`` applies the mutants of
docs/promises.toml one by one to a copy of the program, runs the test that each names,
and no other, and writes the outcomes to docs/promises.json: a test must fail, and pass
without the mutant. With texts it runs those whose promise or test has one of them, with
``--new`` those without an outcome.
"""

from __future__ import annotations

import enum
import hashlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import click
import msgspec

from docs.page_part import table
from docs.program_copy import Change, ProgramCopy, copies, tried
from sds_core.compiled import SWITCH

MUTANTS = Path(__file__).with_name("promises.toml")
OUTCOMES = Path(__file__).with_name("promises.json")

_OPTIONS = ("-q", "-x", "-p", "no:cacheprovider")


class Mutant(Change, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of the program that breaks a promise.

    Attributes:
        promise: Heading of the promise in docs/guarantees.md.
        test: The test that holds it, as pytest names it: one of its parameters is
            enough.
    """

    promise: str
    test: str

    @property
    def key(self) -> str:
        """Short digest of what decides the outcome: a change of it needs another run.

        The file does not: code may move.
        """
        decisive = self.promise, self.test, self.before, self.after
        return hashlib.sha256(msgspec.json.encode(decisive)).hexdigest()[:12]


class State(enum.StrEnum):
    """What became of a mutant."""

    FOUND = "found"
    SURVIVED = "survived"


class Outcome(msgspec.Struct, frozen=True):
    """What became of a mutant, and in which version of sds-monitor."""

    state: State
    version: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutants: tuple[Mutant, ...] = msgspec.field(name="mutant")


def mutants() -> tuple[Mutant, ...]:
    """Return all mutants, in the order of the file.

    Raises:
        msgspec.ValidationError: The file lacks the fields of `Mutant`.
    """
    return msgspec.toml.decode(MUTANTS.read_bytes(), type=_File).mutants


def outcomes() -> dict[str, Outcome]:
    """Return the outcome of each mutant that was run, by its key."""
    return msgspec.json.decode(OUTCOMES.read_bytes(), type=dict[str, Outcome])


def broken_promises(of: Sequence[Mutant], run: Mapping[str, Outcome]) -> list[str]:
    """Return the lines of a table of what became of mutants, by promise and of all."""
    rows = []
    for promise in (*dict.fromkeys(mutant.promise for mutant in of), None):
        some = [mutant for mutant in of if promise in (mutant.promise, None)]
        known = [run[mutant.key] for mutant in some if mutant.key in run]
        counts = Counter(outcome.state for outcome in known)
        counted = (len(some), *map(counts.get, State), len(some) - len(known))
        versions = ", ".join(sorted({outcome.version for outcome in known}))
        rows.append((promise or "all", *(str(n or 0) for n in counted), versions))
    return table(("promise", "changes", *State, "not run", "version"), rows)


def _tried(copy: ProgramCopy, mutant: Mutant) -> tuple[State | None, str]:
    """Return what becomes of a mutant, and how its test failed.

    A test that fails without the mutant too, such as on a busy machine, shows nothing.
    A mutant under which pytest cannot load the test shows nothing either.
    """
    try:
        with copy.changed(mutant):
            broken = copy.failure("pytest", *_OPTIONS, mutant.test)
    except RuntimeError as error:
        return None, str(error)
    if broken is None:
        return State.SURVIVED, ""
    if (unchanged := copy.failure("pytest", *_OPTIONS, mutant.test)) is not None:
        return None, unchanged
    return State.FOUND, broken


def _write(run: dict[str, Outcome]) -> None:
    """Store outcomes, in the order of the mutants, beside those of other runs."""
    known = outcomes() | run
    kept = {
        mutant.key: known[mutant.key] for mutant in mutants() if mutant.key in known
    }
    OUTCOMES.write_bytes(
        msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n"
    )


@click.command()
@click.option("--new", is_flag=True, help="Only mutants without an outcome.")
@click.argument("texts", nargs=-1)
def main(new: bool, texts: tuple[str, ...]) -> None:
    """Run mutants and store what becomes of them; 1 if one was not found."""
    known = outcomes() if new else {}
    todo = [
        mutant
        for mutant in mutants()
        if mutant.key not in known
        and any(text in f"{mutant.promise} {mutant.test}" for text in texts or ("",))
    ]
    found = 0
    # A mutant of a compiled rule would run as it is, and the others compiled.
    with copies(partial(ProgramCopy, environment={SWITCH: "interpreted"})) as places:
        for number, (mutant, (state, how)) in enumerate(tried(todo, places, _tried), 1):
            found += state is State.FOUND
            said = state or "shows nothing"
            print(f"{number}/{len(todo)} {said}: {mutant.file}: {mutant.test}")
            print(f"    {how}", flush=True)
            if state is not None:
                _write({mutant.key: Outcome(state, version("sds-monitor"))})
    sys.exit(found < len(todo))


if __name__ == "__main__":
    main()
