"""Mutants that break promises fit the program and the page of guarantees."""

from __future__ import annotations

import ast
import re

import msgspec
import pytest

from docs import make_guarantees
from docs.make_promise_mutation import (
    Mutant,
    Outcome,
    State,
    broken_promises,
    mutants,
    outcomes,
)
from docs.make_rules import ROOT
from docs.program_copy import mutated

ALL = mutants()
GAPS = {
    "test_change_of_the_leader_and_fewer_replicas_change_no_figure",
    "test_connections_that_are_lost_change_no_figure",
    "test_job_killed_three_times_reports_the_same",
    "test_job_on_a_full_disk_ends_in_one_line_and_continues",
    "test_mirror_answers_its_probe_while_it_reads_the_largest_page",
    "test_remedy_helps[newest commit]",
    "test_report_equals_the_truth_for_any_batches_and_client",
    "test_report_is_the_truth_after_everything_went_wrong",
    "test_report_survives_the_kill_of_every_process",
    "test_run_survives_a_restart_of_the_broker",
}
"""Tests that do not notice their mutant yet; the page says so."""
_PAGE = make_guarantees.PART.path.read_text(encoding="utf-8")
_TEST = re.compile(r"^- \[(\w+)\]\(\.\./(.+)\)$", re.MULTILINE)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.key)
def test_mutant_fits_the_program(mutant: Mutant) -> None:
    """Its text occurs once, and a changed module is still Python."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    changed = mutated(text, mutant)
    assert changed != text
    if mutant.file.endswith(".py"):
        ast.parse(changed)


def test_each_named_test_has_a_mutant_for_its_promise() -> None:
    """And each mutant is of a test that the page names, for that promise."""
    named = {
        (promise.partition("\n")[0], file, test)
        for promise in re.split(r"^## ", _PAGE, flags=re.MULTILINE)[2:]
        for test, file in _TEST.findall(promise)
    }
    broken = set()
    for mutant in ALL:
        file, *_, test = mutant.test.partition("[")[0].split("::")
        broken.add((mutant.promise, file, test))
    assert broken == named


def test_mutants_differ() -> None:
    """One more of the same shows nothing."""
    assert len({mutant.key for mutant in ALL}) == len(ALL)


def test_only_known_gaps_survive() -> None:
    """Of those that were run; an outcome is of a mutant as it is now."""
    run = outcomes()
    assert run.keys() <= {mutant.key for mutant in ALL}
    survived = {
        mutant.test.rpartition("::")[2]
        for mutant in ALL
        if mutant.key in run and run[mutant.key].state is State.SURVIVED
    }
    assert survived == GAPS
    assert [test for test in GAPS if f"`{test}`" not in _PAGE] == []


def test_table_counts_what_became_of_the_mutants() -> None:
    """A mutant that was changed since was not run."""
    first = Mutant(promise="P", test="t", file="a.py", before="b", after="c")
    second = msgspec.structs.replace(first, after="d")
    run = {first.key: Outcome(State.FOUND, "0.1.0")}
    *_, row, total = broken_promises([first, second], run)
    assert row == "| P | 2 | 1 | 0 | 1 | 0.1.0 |"
    assert total == "| all | 2 | 1 | 0 | 1 | 0.1.0 |"
