"""The page of guarantees: each promise has its tests, and the figures are real."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from docs import make_guarantees
from docs.make_guarantees import Chaos, Fuzz, Runs, block, read_runs

ROOT = Path(__file__).parents[1]
PAGE = make_guarantees.PART.path.read_text(encoding="utf-8")
TEST = re.compile(r"^- \[(\w+)\]\(\.\./(tests/[\w/]+\.py)\)$", re.MULTILINE)
PROMISES = re.split(r"^## ", PAGE, flags=re.MULTILINE)[2:]

CHAOS = Chaos(7, {"driver": 7}, 3, 2.0, 8, 6.5, 900, 0, 1, 2, "0.7.0", "2026-11-22")
FUZZ = Fuzz(60.0, 118.2, 9_000_000, {"frame": 9_000_000}, 0, 5, "0.7.0", "2026-11-22")


@pytest.mark.parametrize("promise", PROMISES, ids=lambda text: text.partition("\n")[0])
def test_every_promise_names_a_test(promise: str) -> None:
    """And no line about a test has another form, which would not be checked."""
    assert TEST.findall(promise)
    entries = re.findall(r"^- (?!Limit: ).*$", promise, re.MULTILINE)
    assert len(entries) == len(TEST.findall(promise))


@pytest.mark.parametrize(("name", "file"), sorted(set(TEST.findall(PAGE))))
def test_named_test_exists(name: str, file: str) -> None:
    """In the file that the link leads to."""
    source = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"^ *def {name}\(", source, re.MULTILINE)


def test_page_has_the_figures_of_the_file() -> None:
    """After a change run ``python -m docs.make_guarantees``."""
    assert make_guarantees.PART.current() == block(read_runs())


def test_longer_run_replaces_a_shorter_one() -> None:
    """Each command has one run on the page."""
    runs = Runs().with_run(CHAOS).with_run(FUZZ)
    assert runs == Runs(CHAOS, FUZZ)
    assert runs.with_run(msgspec.structs.replace(CHAOS, kills=7, seed=2)) == runs
    longer = msgspec.structs.replace(CHAOS, kills=8)
    assert runs.with_run(longer) == Runs(longer, FUZZ)


def test_run_with_findings_is_left_out() -> None:
    """However long it was."""
    broken = msgspec.structs.replace(FUZZ, minutes=600.0, findings=1)
    assert Runs().with_run(broken) == Runs()


def test_table_says_how_long_a_run_was_and_what_it_found() -> None:
    """With the command that repeats it."""
    table = block(Runs(CHAOS, FUZZ))
    assert (
        "| `make chaos KILLS=7 SEED=1 JOBS=2` | 2 min | 7 kills (driver: 7). The "
        "broker was also shut down cleanly 3 times. The job started 8 times; " in table
    )
    assert "| 0 differences | 0.7.0, 2026-11-22 |" in table
    assert "| `make fuzz MINUTES=60 SEED=5` | 60 min | 9,000,000 inputs " in table


def test_command_of_a_slow_run_has_the_minutes_that_were_given() -> None:
    """The machine was busy, or the checks after the run took time."""
    slow = msgspec.structs.replace(FUZZ, minutes=71.5, given_minutes=0.5)
    assert "| `make fuzz MINUTES=0.5 SEED=5` | 71.5 min |" in block(Runs(CHAOS, slow))


def test_figures_of_a_run_are_read_by_their_command(tmp_path: Path) -> None:
    """The file says which command wrote it."""
    for run in (CHAOS, FUZZ):
        path = tmp_path / "runs" / "figures.json"
        make_guarantees.write_run(run, path)
        assert make_guarantees.read_run(path) == run
