"""Disks that fail, and power that fails, at each call of each writer of files."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from connectors.storage.disk import REMEDIES
from tests.support.interposed.library import failing, in_process, made_library
from tests.support.interposed.power import Disk, failures, read_log
from tests.support.interposed.writers import WRITERS, Writer, explained


class Outcome(NamedTuple):
    """What came of a fault.

    Attributes:
        what: The fault, for the message of a failed test.
        line: What the operator reads; None if the step noticed nothing.
        found: Number of steps of which the next process found the result; None if it
            found something else.
        again: The same after the step was taken again without the fault.
    """

    what: str
    line: str | None
    found: set[int]
    again: set[int]


def _quick_or_long(*values: Any, is_quick: bool) -> Any:
    """Parameters of a test; a long one unless it is quick."""
    long = (pytest.mark.slow, pytest.mark.long)
    marks = () if is_quick else long
    return pytest.param(*values, marks=marks, id=" ".join(map(str, values)))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library between program and disk."""
    return made_library("disk", tmp_path_factory.mktemp("library"))


def states_of(writer: Writer, place: Path) -> list[Any]:
    """What the next process finds before each step, and after the last."""
    place.mkdir()
    states = []
    for number in range(len(writer.steps) + 1):
        copy = Path(shutil.copytree(place, place.with_name(f"{place.name}-{number}")))
        states.append(writer.state(copy))
        if number < len(writer.steps):
            writer.steps[number](place)
    return states


def among(states: list[Any], state: Any) -> set[int]:
    """Numbers of the steps after which a state is this one."""
    return {number for number, one in enumerate(states) if one == state}


def outcomes_of_faults(name: str, number: int, directory: Path) -> list[Outcome]:
    """Let each call of each step fail, once and for good; in the process for it."""
    writer = WRITERS[name]()
    states = states_of(writer, directory / "sound")
    return [
        outcome
        for at_step in range(len(writer.steps))
        for lasts in (False, True)
        for outcome in _faults_in(writer, states, at_step, number, lasts, directory)
    ]


def _faults_in(
    writer: Writer,
    states: list[Any],
    at_step: int,
    number: int,
    lasts: bool,
    directory: Path,
) -> Iterator[Outcome]:
    step, before = writer.steps[at_step], directory / f"sound-{at_step}"
    for at in count(1):
        place = directory / "place"
        shutil.copytree(before, place)
        line = None
        with failing(place, at, number, lasts) as counted:
            try:
                step(place)
            except Exception as error:
                line = explained(error)
        if counted.count < at:
            # There was no such call.
            shutil.rmtree(place)
            return
        found = among(states, writer.state(place))
        if at_step + 1 not in found or writer.may_be_again:
            step(place)
        again = among(states, writer.state(place))
        shutil.rmtree(place)
        what = f"step {at_step}, call {at}, {lasts=}"
        yield Outcome(what, line, found, again)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("name", "number"),
    [
        _quick_or_long(name, number, is_quick=name == "report" and number == errno.EIO)
        for name in WRITERS
        for number in (errno.EIO, errno.ENOSPC)
    ],
)
def test_disk_that_fails_at_any_call_loses_nothing(
    name: str, number: int, library: Path, tmp_path: Path
) -> None:
    """One line has the file, the reason and the remedy; the step can be taken again."""
    outcomes = in_process(library, outcomes_of_faults, name, number, tmp_path)
    steps = len(WRITERS[name]().steps)
    assert len(outcomes) > 2 * steps
    for outcome in outcomes:
        at_step = int(outcome.what.split(",")[0].removeprefix("step "))
        assert outcome.found & {at_step, at_step + 1}, outcome
        assert at_step + 1 in outcome.again, outcome
        if outcome.line is None:
            assert at_step + 1 in outcome.found, outcome
            continue
        assert len(outcome.line.splitlines()) == 1, outcome
        assert str(tmp_path / "place") in outcome.line, outcome
    lines = [one.line for one in outcomes if one.line is not None]
    usual = [one for one in lines if os.strerror(number) in one]
    assert len(usual) > len(lines) / 2, lines
    assert all(REMEDIES[number] in one for one in usual), lines


def findings_of_power_failures(
    name: str, directory: Path
) -> tuple[int, list[tuple[str, set[int], int]]]:
    """Cut the power before each call; in the process for it.

    Returns:
        The number of calls; and for each failure what it was, the steps of which the
        next process found the result, and the steps that had ended.
    """
    writer = WRITERS[name]()
    states = states_of(writer, directory / "sound")
    root, log = directory / "root", directory / "log"
    root.mkdir()
    ends = []
    with failing(root, log=str(log)):
        for step in writer.steps:
            step(root)
            ends.append(len(read_log(log)))
    operations = read_log(log)
    images = directory / "images"
    images.mkdir()
    found = []
    for disk in Disk:
        for number, image in failures(root, operations, disk, images):
            state = writer.state(image)
            shutil.rmtree(image)
            ended = sum(number >= end for end in ends)
            what = f"{disk.value} disk, before call {number}"
            found.append((what, among(states, state), ended))
    return len(operations), found


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "name",
    [_quick_or_long(name, is_quick=name == "spool of the mirror") for name in WRITERS],
)
def test_power_that_fails_before_any_call_loses_nothing_that_was_finished(
    name: str, library: Path, tmp_path: Path
) -> None:
    """On disks that lose what was not synced, in three ways."""
    calls, found = in_process(library, findings_of_power_failures, name, tmp_path)
    assert len(found) == (calls + 1) * len(Disk)
    for what, steps, ended in found:
        assert steps & {ended, ended + 1}, (what, steps, ended)
