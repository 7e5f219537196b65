"""Does each rule's own tests notice when the participant breaks the rule?

``python -m docs.make_rule_mutation [RULE ...]`` applies the mutants of
docs/rules/mutants.toml one by one to a copy of the program, and runs the tests that are
marked with the mutant's rule, and no others. Without rules it runs all, some minutes,
and writes docs/rules/rule_mutation.toml.
"""

from __future__ import annotations

import datetime
import sys

import msgspec

from docs.make_rules import RULE_MUTATION, RULES
from docs.program_copy import Change, ProgramCopy, copies, tried

MUTANTS = RULES / "mutants.toml"
_OWN_TESTS = "docs.own_tests"


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


def is_found(copy: ProgramCopy, mutant: Mutant) -> bool:
    """Return whether the rule's own tests fail with a mutant.

    Raises:
        RuntimeError: The tests could not be run.
    """
    with copy.changed(mutant):
        return copy.failure(_OWN_TESTS, mutant.rule) is not None


def main() -> int:
    """Run the mutants of the given rules, or of all; 1 if one was not found."""
    chosen = sys.argv[1:]
    todo = [mutant for mutant in mutants() if not chosen or mutant.rule in chosen]
    rule_ids = sorted({mutant.rule for mutant in todo})
    survived = []
    with copies(ProgramCopy) as places:
        if places[0].failure(_OWN_TESTS, *rule_ids) is not None:
            print("the tests fail without any mutant")
            return 1
        for number, (mutant, found) in enumerate(tried(todo, places, is_found), 1):
            if not found:
                survived.append(mutant.rule)
            state = "found" if found else "SURVIVED"
            print(f"{number}/{len(todo)} {mutant.rule}: {state}", flush=True)
    if not chosen:
        _write(len(todo), len(rule_ids), survived)
    return 1 if survived else 0


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
