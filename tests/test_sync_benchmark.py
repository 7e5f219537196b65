"""The comparison of synchronisations: contenders are right, the page is current."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.prolly import contenders
from benchmarks.prolly.contenders import (
    Session,
    WrongResult,
    all_keys,
    batched_long,
    check,
    least_bytes,
)
from benchmarks.prolly.measure import OURS
from benchmarks.prolly.results import Cell, SyncRun, read_run
from benchmarks.prolly.workload import (
    SHAPES,
    Workload,
    cells,
    differing,
    messages,
    without_boundaries,
)
from docs import make_sync
from sds_core.prolly.hashing import DEFAULT_FAN_OUT, boundary_limit, leaf_hash
from sds_core.prolly.item import pack
from sds_core.prolly.outcome import Outcome
from sds_core.prolly.tree import ProllyTree

ROOT = Path(__file__).parents[1]
NUMBER = 1_000


def run() -> SyncRun:
    """A run without figures."""
    return SyncRun("0", "2026-11-24", 1.0, "machine", 0.0, {}, 1)


def test_page_has_the_figures_of_the_file() -> None:
    """After a change run ``python -m docs.make_sync --page``."""
    assert make_sync.PART.current() == make_sync.block(read_run())


def test_file_has_every_row() -> None:
    """Of both protocols; the others may not be had everywhere."""
    known = read_run()
    for place in cells():
        for contender in OURS:
            cell = known.find("main", contender, *place)
            assert cell is not None
            assert len(cell.sessions) == known.seeds


@pytest.mark.parametrize("contender", OURS)
def test_file_has_the_bytes_and_rounds_of_this_version(contender: str) -> None:
    """After a change of a protocol run ``make sync-bench``."""
    number, count, shape = place = (10_000, 100, "recent")
    items, lacked = messages(number, 1), differing(number, count, shape, 1)
    whole = ProllyTree(items)
    here = whole.changed(delete=[items[at] for at in lacked])
    now = OURS[contender](here, whole, Workload(items, lacked))
    cell = read_run().find("main", contender, *place)
    assert cell is not None
    assert now[:3] == cell.sessions[0][:3]


def test_example_prints_what_the_page_says() -> None:
    """It runs as it is."""
    page = make_sync.PART.path.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|text)\n(.*?)```", page, re.DOTALL)
    # Those of the quick start, before them, are tested with the others.
    example, output = blocks[-2:]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == output, done.stderr


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("contend", [*OURS.values(), batched_long])
def test_contender_finds_the_difference(
    contend: Callable[[ProllyTree, ProllyTree, Workload], Session], shape: str
) -> None:
    """In both directions at once; bytes and rounds are those of the same seed again."""
    items = messages(NUMBER, 1)
    lacked = differing(NUMBER, 40, shape, 1)
    work = Workload(items, lacked[::2], lacked[1::2])
    here, there = (
        ProllyTree(item for at, item in enumerate(items) if at not in one)
        for one in (lacked[::2], lacked[1::2])
    )
    first, second = (contend(here, there, work) for _ in range(2))
    assert first[:3] == second[:3]
    assert first.sent + first.received > least_bytes(20)


def test_all_keys_take_their_length() -> None:
    """One round, and 40 bytes for each message."""
    session = all_keys(Workload(messages(NUMBER, 1), [5], [6, 7]))
    assert session.rounds == 1
    assert 0 < session.received - 40 * (NUMBER - 2) < 10


def test_wrong_result_does_not_count() -> None:
    """Neither one too few nor one twice."""
    items = messages(NUMBER, 1)
    work = Workload(items, [3, 4])
    check("right", work, Outcome([], items[3:5]))
    for found in (items[3:4], [*items[3:5], items[3]]):
        with pytest.raises(WrongResult, match="instead of 0 and 2"):
            check("wrong", work, Outcome([], found))


@pytest.mark.parametrize("shape", SHAPES)
def test_differences_have_their_shape(shape: str) -> None:
    """As many as wanted; recent ones and bursts are near the end."""
    lacked = differing(NUMBER, 50, shape, 1)
    assert lacked == sorted(set(lacked))
    assert len(lacked) == 50
    first = {"scattered": 0, "recent": NUMBER - 250, "burst": NUMBER - 100}[shape]
    last = {"scattered": NUMBER, "recent": NUMBER, "burst": NUMBER - 50}[shape]
    assert first <= lacked[0] <= lacked[-1] < last
    assert (lacked[-1] - lacked[0] == 49) is (shape == "burst")


def test_messages_are_in_order_and_a_second_apart() -> None:
    """On average; the same seed gives the same ones."""
    items = messages(NUMBER, 1)
    assert items == messages(NUMBER, 1) != messages(NUMBER, 2)
    assert all(before < item for before, item in pairwise(items))
    mean_ns = (items[-1].timestamp_ns - items[0].timestamp_ns) / (NUMBER - 1)
    assert mean_ns == pytest.approx(1e9, rel=0.2)


def test_stretch_has_no_boundary() -> None:
    """And the messages around it are as they were."""
    items = messages(NUMBER, 1)
    made = without_boundaries(items, range(100, 300), DEFAULT_FAN_OUT, 1)
    limit = boundary_limit(DEFAULT_FAN_OUT)
    assert all(leaf_hash(pack(item)) >= limit for item in made[100:300])
    assert made[:100] + made[300:] == items[:100] + items[300:]


def test_least_is_the_length_of_the_hashes_but_for_their_order() -> None:
    """The logarithm of the factorial is what their order would take."""
    assert least_bytes(1) == 32
    assert least_bytes(1_000) == pytest.approx(32_000 - 8_530 / 8, abs=1)


@pytest.mark.parametrize(("ours", "outcome"), [(3_000, "met"), (3_002, "missed")])
def test_goal_is_met_by_the_worst_row(ours: int, outcome: str) -> None:
    """Against the better run of negentropy."""
    known = run()
    for contender, total in (
        ("batched", ours),
        ("negentropy ns", 9_000),
        ("negentropy s", 2_000),
    ):
        cell = Cell("main", contender, 10_000, 10, "recent", "", [])
        known.add(cell, Session(1, total - 500, 500, 1.0, 1.0))
    found = {name: result for name, _, _, result in make_sync.goals(known)}
    name = (
        "bytes of the batched protocol divided by bytes of negentropy: "
        "recent and burst differences"
    )
    assert found[name] == outcome
    name = (
        "rounds of the batched protocol against negentropy: "
        "recent and burst differences"
    )
    assert found[name] == "missed"


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    """As negentropy where there is no cargo; the tables have dashes."""
    assert {(found, result) for _, _, found, result in make_sync.goals(run())} == {
        ("not measured", "")
    }
    assert "| scattered | 1 | 32 | - | - | - |" in make_sync.block(run())


def test_timed_takes_processor_time() -> None:
    """In milliseconds."""
    value, spent_ms = contenders.timed(lambda: sum(range(300_000)))
    assert value == sum(range(300_000))
    assert 0.5 < spent_ms < 1_000
