"""Mutants of single rules fit the program, and are run with the rule's own tests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from docs import make_rules
from docs.make_rule_mutation import Mutant, is_found, mutants
from docs.program_copy import ProgramCopy, mutated

ALL = mutants()
RULES = {
    rule.id: rule
    for document in make_rules.documents()
    for section in document.sections
    for rule in section.rules
}


@pytest.mark.parametrize("mutant", ALL, ids=lambda one: one.rule)
def test_mutant_fits_the_program(mutant: Mutant) -> None:
    """Its text occurs once, and the changed file is still Python."""
    text = (make_rules.ROOT / mutant.file).read_text(encoding="utf-8")
    changed = mutated(text, mutant)
    assert changed != text
    ast.parse(changed)


def test_mutants_are_of_rules_with_tests() -> None:
    """Without any, nothing could find them."""
    assert [one.rule for one in ALL if one.rule not in RULES] == []
    assert [one.rule for one in ALL if RULES[one.rule].covered_by] == []


def test_mutants_differ() -> None:
    """One more of the same shows nothing."""
    assert len(set(ALL)) == len(ALL)


@pytest.mark.parametrize("text", ["", "two two"])
def test_text_that_does_not_occur_once_is_an_error(text: str) -> None:
    """It would change nothing, or something else."""
    with pytest.raises(ValueError, match=r"not once in a\.py: 'two'"):
        mutated(text, Mutant(rule="sds-send-1", file="a.py", before="two", after=""))


@pytest.mark.slow
def test_only_the_tests_of_the_rule_are_run(tmp_path: Path) -> None:
    """They find a mutant of their own rule, and not one of another."""
    copy = ProgramCopy(tmp_path)
    file = "sds_core/message_channel/lamport.py"
    before, after = "            return self.value + 1\n", "            return 0\n"
    broken = Mutant(rule="sds-send-1", file=file, before=before, after=after)
    assert is_found(copy, broken)
    other = Mutant(rule="sds-r-hash-1", file=file, before=before, after=after)
    assert not is_found(copy, other)
    assert (tmp_path / file).read_bytes() == (make_rules.ROOT / file).read_bytes()
