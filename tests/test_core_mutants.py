"""Mutants of the compiled rules fit the program."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from docs.make_core_mutation import mutants
from docs.make_rules import ROOT
from docs.program_copy import Change, mutated
from sds_core.compiled import MODULES

ALL = mutants()


@pytest.mark.parametrize("mutant", ALL, ids=lambda one: f"{one.file}: {one.after}")
def test_mutant_fits_the_program(mutant: Change) -> None:
    """Its text occurs once, and the changed file is still Python."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    changed = mutated(text, mutant)
    assert changed != text
    ast.parse(changed)


def test_mutants_are_of_compiled_modules_with_tests() -> None:
    """Others say nothing of the compiled form."""
    files = {f"{name.replace('.', '/')}.py" for name in MODULES}
    assert {one.file for one in ALL} <= files
    directories = {Path("tests", one.file).parent for one in ALL}
    assert all((ROOT / directory).is_dir() for directory in directories)


def test_mutants_differ() -> None:
    """One more of the same shows nothing."""
    assert len(set(ALL)) == len(ALL)
