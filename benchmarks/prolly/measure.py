"""Runs all contenders on all workloads."""

from __future__ import annotations

import datetime
import gc
import platform
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.prolly import other_tree, range_based
from benchmarks.prolly.contenders import (
    Session,
    WrongResult,
    all_keys,
    batched,
    batched_long,
    document,
    timed,
)
from benchmarks.prolly.range_based import RangeBased, Unavailable
from benchmarks.prolly.results import Cell, SyncRun
from benchmarks.prolly.workload import (
    DIFFERENCES,
    SHAPES,
    SIZES,
    Workload,
    differing,
    messages,
    without_boundaries,
)
from benchmarks.results import new_run
from sds_core.prolly.hashing import DEFAULT_FAN_OUT
from sds_core.prolly.item import Item, pack
from sds_core.prolly.outcome import Outcome
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.difference import difference

SEEDS: Final = 5
FAN_OUTS: Final = (4, 8, 16, 32, 64)
TUNED_DIFFERENCES: Final = 100
SIDES: Final = ("client", "server", "half each")
STRETCHES: Final = (0, 100, 1_000, 10_000)
STRETCH_NUMBER: Final = 100_000
STORE_NUMBER: Final = 10_000
"""Messages in the versioned store of `prollytree`, which takes them one by one."""

Contender = Callable[[ProllyTree, ProllyTree, Workload], Session]
OURS: Final[dict[str, Contender]] = {"batched": batched, "document": document}
ALL_KEYS: Final = "all keys"
OTHER_TREE: Final = "prollytree"


class _Rivals(NamedTuple):
    """What is not ours.

    Attributes:
        program: Of `range_based`; None if it cannot be had.
        package: Of `other_tree`; likewise.
    """

    program: Path | None
    package: Path | None


def measure(echo: Callable[[str], None]) -> SyncRun:
    """Measure everything.

    Args:
        echo: Takes lines about the progress, and about contenders that are left out.
    """
    begun_s = time.monotonic()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()  # noqa: TID251 - the day of the run
    known = new_run(today, is_quick=False)
    versions = {"Python": platform.python_version()}
    versions["protobuf"] = version("protobuf")
    run = SyncRun(known.version, today, 0.0, known.machine, known.load, versions, SEEDS)
    with tempfile.TemporaryDirectory(prefix="sds-monitor-sync-") as name:
        scratch = Path(name)
        rivals = _rivals(run, scratch, echo)
        for seed in range(1, SEEDS + 1):
            for number in SIZES:
                minutes = (time.monotonic() - begun_s) / 60
                echo(f"{number:,} messages, seed {seed} ({minutes:.1f} min)")
                _size(run, number, seed, rivals, scratch, echo)
            _stretches(run, seed)
    run.minutes = round((time.monotonic() - begun_s) / 60, 1)
    return run


def _rivals(run: SyncRun, scratch: Path, echo: Callable[[str], None]) -> _Rivals:
    program = package = None
    try:
        program = range_based.build()
        run.versions["negentropy (crate)"] = range_based.VERSION
        run.versions["Rust"] = range_based.rust_version()
    except Unavailable as error:
        _skip(run, "negentropy", error, echo)
    try:
        other_tree.install(scratch / "package")
        package = scratch / "package"
        run.versions["prollytree (PyPI)"] = other_tree.VERSION
    except Unavailable as error:
        _skip(run, OTHER_TREE, error, echo)
    return _Rivals(program, package)


def _skip(run: SyncRun, name: str, why: Exception, echo: Callable[[str], None]) -> None:
    run.skipped[name] = str(why)
    echo(f"without {name}: {why}")


def _size(
    run: SyncRun,
    number: int,
    seed: int,
    rivals: _Rivals,
    scratch: Path,
    echo: Callable[[str], None],
) -> None:
    items = messages(number, seed)
    path = scratch / "items"
    path.write_bytes(b"".join(map(pack, items)))
    with ExitStack() as stack:
        ranges = {}
        if rivals.program is not None:
            for unit in range_based.UNITS:
                running = range_based.running(rivals.program, path, unit)
                ranges[unit] = stack.enter_context(running)
        with _quiet_memory():
            whole, spent_ms = timed(lambda: ProllyTree(items))
        run.time("ours", "build", number, spent_ms, "")
        with _quiet_memory():
            for shape in SHAPES:
                for count in DIFFERENCES:
                    if count <= number // 10:
                        lacked = differing(number, count, shape, seed)
                        work = Workload(items, lacked)
                        _cell(run, "main", shape, work, whole, ranges)
            _all_keys(run, items, seed)
            _alone(run, items, seed, whole)
            if number == SIZES[-1]:
                _sides(run, items, seed, whole, ranges)
                _long(run, items, seed, whole)
                _fan_outs(run, items, seed)
        for unit, one in ranges.items():
            for spent_ms in one.build_ms[:1]:
                run.time("negentropy", f"build ({unit})", number, spent_ms, "")
    if rivals.package is not None:
        lacked = differing(number, TUNED_DIFFERENCES, "scattered", seed)
        with tempfile.TemporaryDirectory(dir=scratch) as name:
            store = Path(name) / "store" if number <= STORE_NUMBER else None
            try:
                probed = other_tree.probe(rivals.package, path, lacked, store)
            except Unavailable as error:
                _skip(run, f"{OTHER_TREE} at {number:,}", error, echo)
                probed = []
        for each in probed:
            run.time(OTHER_TREE, each.what, number, each.ms, each.note)


@contextmanager
def _quiet_memory() -> Iterator[None]:
    """Keep the collector away from what the benchmark itself holds."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _cell(
    run: SyncRun,
    table: str,
    shape: str,
    work: Workload,
    whole: ProllyTree,
    ranges: dict[str, RangeBased],
    variant: str = "",
) -> None:
    """Run all protocols on a workload; `whole` has all of its messages."""
    here, there = (
        whole.changed(delete=[work.items[at] for at in lacked])
        for lacked in (work.lacked_here, work.lacked_there)
    )
    count = len(work.lacked_here) + len(work.lacked_there)

    def cell(contender: str) -> Cell:
        return Cell(table, contender, len(work.items), count, shape, variant, [])

    for name, contend in OURS.items():
        run.add(cell(name), contend(here, there, work))
    for unit, one in ranges.items():
        run.add(cell(f"negentropy {unit}"), one.run(work))


def _all_keys(run: SyncRun, items: Sequence[Item], seed: int) -> None:
    lacked = differing(len(items), TUNED_DIFFERENCES, "scattered", seed)
    session = all_keys(Workload(items, lacked))
    cell = Cell("keys", ALL_KEYS, len(items), TUNED_DIFFERENCES, "scattered", "", [])
    run.add(cell, session)


def _sides(
    run: SyncRun,
    items: Sequence[Item],
    seed: int,
    whole: ProllyTree,
    ranges: dict[str, RangeBased],
) -> None:
    """The same differences, with others to lack them."""
    for shape in SHAPES:
        lacked = differing(len(items), TUNED_DIFFERENCES, shape, seed)
        split: dict[str, tuple[Collection[int], Collection[int]]] = {
            "client": (lacked, ()),
            "server": ((), lacked),
            "half each": (lacked[::2], lacked[1::2]),
        }
        for side in SIDES:
            work = Workload(items, *split[side])
            _cell(run, "sides", shape, work, whole, ranges, side)


def _long(run: SyncRun, items: Sequence[Item], seed: int, whole: ProllyTree) -> None:
    """The same with longer fingerprints: which part of the difference is theirs?"""
    for shape in SHAPES:
        lacked = differing(len(items), TUNED_DIFFERENCES, shape, seed)
        here = whole.changed(delete=[items[at] for at in lacked])
        cell = Cell("long", "batched", len(items), TUNED_DIFFERENCES, shape, "", [])
        run.add(cell, batched_long(here, whole, Workload(items, lacked)))


def _fan_outs(run: SyncRun, items: Sequence[Item], seed: int) -> None:
    for fan_out in FAN_OUTS:
        whole, spent_ms = timed(lambda: ProllyTree(items, fan_out))  # noqa: B023 - called at once
        run.time(f"fan-out {fan_out}", "build", len(items), spent_ms, "")
        for shape in SHAPES:
            lacked = differing(len(items), TUNED_DIFFERENCES, shape, seed)
            work = Workload(items, lacked)
            _cell(run, "fan-out", shape, work, whole, {}, str(fan_out))


def _alone(run: SyncRun, items: Sequence[Item], seed: int, whole: ProllyTree) -> None:
    """What one side does without another."""
    number = len(items)
    for shape in ("scattered", "recent"):
        for count in (1, 1_000):
            places = differing(number, count, shape, seed)
            added = [items[at] for at in places]
            part = whole.changed(delete=added)
            made, spent_ms = timed(lambda: part.changed(insert=added))  # noqa: B023
            if made != whole:
                raise WrongResult("insert", Workload(items, places), Outcome([], []))
            run.time("ours", f"insert {count:,} {shape}", number, spent_ms, "")
    for shape in SHAPES:
        lacked = differing(number, TUNED_DIFFERENCES, shape, seed)
        part = whole.changed(delete=[items[at] for at in lacked])
        found, spent_ms = timed(lambda: difference(part, whole))  # noqa: B023
        if found.only_first or list(found.only_second) != [items[at] for at in lacked]:
            outcome = Outcome(*found)
            raise WrongResult("difference", Workload(items, lacked), outcome)
        run.time("ours", f"difference {shape}", number, spent_ms, "")


def _stretches(run: SyncRun, seed: int) -> None:
    """One message lacks in the midst of messages that are no boundaries."""
    for length in STRETCHES:
        begin = (STRETCH_NUMBER - length) // 2
        stretch = range(begin, begin + length)
        items = without_boundaries(
            messages(STRETCH_NUMBER, seed), stretch, DEFAULT_FAN_OUT, seed
        )
        whole = ProllyTree(items)
        work = Workload(items, [STRETCH_NUMBER // 2])
        with _quiet_memory():
            _cell(run, "stretch", "burst", work, whole, {}, str(length))
