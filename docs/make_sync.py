"""Compares ways to synchronise messages, for docs/sync.md.

``python -m docs.make_sync`` measures and writes docs/sync.json and the page's tables;
it takes some minutes. With ``--page`` it makes the tables of the figures in that file.
Bytes and rounds of the same versions are the same again.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import click

from benchmarks.prolly.contenders import LONG_BYTES, least_bytes
from benchmarks.prolly.measure import (
    ALL_KEYS,
    FAN_OUTS,
    OTHER_TREE,
    SIDES,
    STRETCH_NUMBER,
    STRETCHES,
    TUNED_DIFFERENCES,
    measure,
)
from benchmarks.prolly.results import Cell, SyncRun, Timing, read_run, write_run
from benchmarks.prolly.workload import SHAPES, SIZES, cells
from docs.page_part import PagePart, table
from sds_core.prolly.batched.lists import FINGERPRINT_BYTES
from sds_core.prolly.document import MAX_START_NODES
from sds_core.prolly.hashing import DEFAULT_FAN_OUT
from sds_core.prolly.outcome import DEFAULT_LIMITS

PART = PagePart("sync.md", "make_sync", "the figures")

MOST_BYTES = 1.5
"""Goal: bytes of the batched protocol as a multiple of negentropy's."""

MOST_MS = 100.0
"""Goal: CPU time of a difference of 100 in a million."""

_IDLE = 0.5
"""Load below which the machine has nothing else to do."""

_UNITS = ("ns", "s")
_ABSENT = "-"
_UNMEASURED = "not measured"


def block(run: SyncRun) -> str:
    """Return the figures of a run, between their markers."""
    parts = [
        _about(run),
        _goals(run),
        *(_bytes(run, number) for number in (SIZES[0], SIZES[-1])),
        _processor(run),
        _long(run),
        _sides(run),
        _fan_outs(run),
        _alone(run),
        _stretches(run),
    ]
    return "\n\n".join([PART.begin, *parts, PART.end])


def _about(run: SyncRun) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    lines = [
        "### The run",
        "",
        f"sds-monitor {run.version}, {run.date}. The run took {run.minutes:g} minutes. "
        "A test compares the bytes and rounds of the current version with this run.",
        f"{run.machine}; load before the run {run.load:g}.",
        f"{versions}.",
        f"Every figure is the median of {run.seeds} sets of messages with "
        "different seeds.",
        f"The fan-out is {DEFAULT_FAN_OUT}, and fingerprints have "
        f"{FINGERPRINT_BYTES} bytes.",
        f"A frame has at most {DEFAULT_LIMITS.frame_bytes // 2**20} MiB. A side "
        f"accepts at most {DEFAULT_LIMITS.nodes:,} nodes and messages in total from "
        "its peer.",
        "A request of the document's protocol has at most "
        f"{MAX_START_NODES} start nodes.",
        *(f"Not measured: {name} ({why})." for name, why in run.skipped.items()),
        *(["**Other programs ran on the machine.**"] if run.load > _IDLE else []),
    ]
    return "\n".join(lines)


def _goals(run: SyncRun) -> str:
    head = ("what", "aim", "this run", "")
    return "\n".join(["### Goals", "", *table(head, goals(run))])


def goals(run: SyncRun) -> Iterator[tuple[str, str, str, str]]:
    """Yield what was wanted, the aim, what this run has, and whether it is enough."""
    pairs = [
        (place, ours, theirs)
        for place in cells()
        if (ours := run.find("main", "batched", *place)) is not None
        and (theirs := _rival(run, "main", *place)) is not None
    ]
    for name, shapes, aim in (
        (
            "bytes of the batched protocol divided by bytes of negentropy: "
            "recent and burst differences",
            SHAPES[1:],
            MOST_BYTES,
        ),
        (
            "bytes of the batched protocol divided by bytes of negentropy: "
            "scattered differences",
            SHAPES[:1],
            None,
        ),
    ):
        ratios = [
            ours.bytes / theirs.bytes
            for (_, _, shape), ours, theirs in pairs
            if shape in shapes
        ]
        most = "no aim" if aim is None else f"at most {aim:g} x"
        if not ratios:
            yield name, most, _UNMEASURED, ""
            continue
        within = sum(one <= MOST_BYTES for one in ratios)
        yield (
            name,
            most,
            f"ratios from {min(ratios):.2f} to {max(ratios):.2f}, median ratio "
            f"{statistics.median(ratios):.2f}; in {within} of {len(ratios)} rows, the "
            f"ratio is at most {MOST_BYTES:g}",
            "" if aim is None else _outcome(max(ratios) <= aim),
        )
    for name, shapes in (("recent and burst", SHAPES[1:]), ("scattered", SHAPES[:1])):
        rounds = [
            (ours.rounds, theirs.rounds)
            for (_, _, shape), ours, theirs in pairs
            if shape in shapes
        ]
        title = f"rounds of the batched protocol against negentropy: {name} differences"
        if not rounds:
            yield title, "fewer", _UNMEASURED, ""
            continue
        fewer = sum(ours < theirs for ours, theirs in rounds)
        same = sum(ours == theirs for ours, theirs in rounds)
        yield (
            title,
            "fewer",
            f"fewer rounds than negentropy in {fewer} of {len(rounds)} rows, the same "
            f"number of rounds in {same} rows, more rounds in "
            f"{len(rounds) - fewer - same} rows",
            _outcome(fewer == len(rounds)),
        )
    largest = SIZES[-1]
    which = f"{TUNED_DIFFERENCES} differences of {largest:,} messages"
    places = [(largest, TUNED_DIFFERENCES, shape) for shape in SHAPES]
    walks = [run.timing("ours", f"difference {shape}", largest) for shape in SHAPES]
    sessions = [run.find("main", "batched", *place) for place in places]
    for name, found in (
        (
            f"CPU time to find {which}, with both trees in one process",
            [one.median_ms for one in walks if one is not None and one.values_ms],
        ),
        (
            f"CPU time of a batched synchronisation with {which}, both sides",
            [one.cpu_ms for one in sessions if one is not None],
        ),
    ):
        aim_ms = f"under {MOST_MS:g} ms"
        if len(found) < len(SHAPES):
            yield name, aim_ms, _UNMEASURED, ""
        else:
            longest_ms = max(found)
            yield name, aim_ms, f"{longest_ms:.3g} ms", _outcome(longest_ms < MOST_MS)


def _bytes(run: SyncRun, number: int) -> str:
    keys = run.find("keys", ALL_KEYS, number, TUNED_DIFFERENCES, "scattered")
    lines = [f"### Bytes and rounds, {number:,} messages", ""]
    if keys is not None:
        lines += [
            f"*All keys*: {keys.bytes:,.0f} bytes, {keys.rounds:g} round, "
            f"{_ms(keys.cpu_ms)} ms of CPU time.",
            "",
        ]
    head = (
        "which",
        "differences",
        "least",
        "batched",
        "rounds",
        "negentropy",
        "rounds",
        "batched / negentropy",
        "document",
        "rounds",
    )
    rows = []
    for place in cells():
        size, count, shape = place
        if size != number:
            continue
        ours = run.find("main", "batched", *place)
        theirs = _rival(run, "main", *place)
        rows.append(
            (
                shape,
                f"{count:,}",
                f"{least_bytes(count):,}",
                *_traffic(ours),
                *_traffic(theirs),
                _ratio(ours, theirs),
                *_traffic(run.find("main", "document", *place)),
            )
        )
    return "\n".join([*lines, *table(head, rows)])


def _processor(run: SyncRun) -> str:
    rows = [
        (
            shape,
            f"{count:,}",
            *(_spent(_found(run, name, number, count, shape)) for name in _CONTENDERS),
        )
        for number, count, shape in cells()
        if number == SIZES[-1]
    ]
    lines = [
        f"### CPU time of a synchronisation, {SIZES[-1]:,} messages, both sides, ms",
        "",
        "Times exclude building trees and lists.",
        "",
    ]
    return "\n".join([*lines, *table(("which", "differences", *_CONTENDERS), rows)])


_CONTENDERS = ("batched", "negentropy", "document")


def _found(
    run: SyncRun, contender: str, number: int, count: int, shape: str
) -> Cell | None:
    if contender == "negentropy":
        return _rival(run, "main", number, count, shape)
    return run.find("main", contender, number, count, shape)


def _long(run: SyncRun) -> str:
    number = SIZES[-1]
    head = (
        "which",
        f"batched, {FINGERPRINT_BYTES} bytes",
        f"batched, {LONG_BYTES} bytes",
        f"negentropy, {LONG_BYTES} bytes",
        f"{LONG_BYTES} bytes both, ratio",
    )
    rows = []
    for shape in SHAPES:
        place = (number, TUNED_DIFFERENCES, shape)
        long, theirs = run.find("long", "batched", *place), _rival(run, "main", *place)
        found = (run.find("main", "batched", *place), long, theirs)
        bytes_of = (_traffic(one)[0] for one in found)
        rows.append((shape, *bytes_of, _ratio(long, theirs)))
    title = f"### Length of fingerprints: {TUNED_DIFFERENCES} of {number:,} messages"
    return "\n".join([title, "", *table(head, rows)])


def _sides(run: SyncRun) -> str:
    number = SIZES[-1]
    head = ("which", "who lacks them", *_HEADS)
    rows = []
    for shape in SHAPES:
        for side in SIDES:
            place = (number, TUNED_DIFFERENCES, shape, side)
            ours = run.find("sides", "batched", *place)
            theirs = _rival(run, "sides", *place)
            rows.append((shape, side, *_traffic(ours), *_traffic(theirs)))
    title = f"### Who lacks {TUNED_DIFFERENCES} of {number:,} messages"
    return "\n".join([title, "", *table(head, rows)])


_HEADS = ("batched", "rounds", "negentropy", "rounds")


def _fan_outs(run: SyncRun) -> str:
    number = SIZES[-1]
    head = ["fan-out", "build, s"]
    for shape in SHAPES:
        head += [shape, "rounds"]
    rows = []
    for fan_out in FAN_OUTS:
        built = run.timing(f"fan-out {fan_out}", "build", number)
        built_ms = None if built is None else built.median_ms
        took = _ABSENT if built_ms is None else f"{built_ms / 1_000:.2f}"
        row = [str(fan_out), took]
        for shape in SHAPES:
            place = (number, TUNED_DIFFERENCES, shape, str(fan_out))
            row += _traffic(run.find("fan-out", "batched", *place))
        rows.append(row)
    title = f"### Fan-out: bytes for {TUNED_DIFFERENCES} of {number:,} messages"
    return "\n".join([title, "", *table(head, rows)])


def _alone(run: SyncRun) -> str:
    lines = [
        "### One side alone: CPU time, ms",
        "",
        "In rows with *difference*, the two compared trees differ in "
        f"{TUNED_DIFFERENCES} messages.",
        "",
    ]
    names = {(one.contender, one.what): None for one in run.timings}
    rows = [
        (
            contender,
            what,
            *(_timing(run.timing(contender, what, number)) for number in SIZES),
        )
        for of in ("ours", "negentropy", OTHER_TREE)
        for contender, what in names
        if contender == of
    ]
    head = ("of", "what", *(f"{number:,} messages" for number in SIZES))
    return "\n".join([*lines, *table(head, rows)])


def _stretches(run: SyncRun) -> str:
    head = ("chosen hashes", "batched", "rounds", "ms", "document", "rounds", "ms")
    rows = []
    for length in STRETCHES:
        place = (STRETCH_NUMBER, 1, "burst", str(length))
        row = [f"{length:,}"]
        for name in ("batched", "document"):
            cell = run.find("stretch", name, *place)
            row += [*_traffic(cell), _spent(cell)]
        rows.append(row)
    lines = [
        f"### One difference among chosen hashes, {STRETCH_NUMBER:,} messages",
        "",
        "The first column is the number of consecutive messages whose hashes were "
        "chosen so that none is a boundary. The client lacks the message in the middle "
        "of these messages.",
        "",
    ]
    return "\n".join([*lines, *table(head, rows)])


def _rival(
    run: SyncRun, table: str, number: int, count: int, shape: str, variant: str = ""
) -> Cell | None:
    """Return negentropy's sessions, with times in the unit that needs fewer bytes."""
    place = (number, count, shape, variant)
    both = [run.find(table, f"negentropy {unit}", *place) for unit in _UNITS]
    return min((one for one in both if one), key=lambda one: one.bytes, default=None)


def _traffic(cell: Cell | None) -> tuple[str, str]:
    if cell is None:
        return _ABSENT, _ABSENT
    return f"{cell.bytes:,.0f}", f"{cell.rounds:g}"


def _ratio(ours: Cell | None, theirs: Cell | None) -> str:
    if ours is None or theirs is None:
        return _ABSENT
    return f"{ours.bytes / theirs.bytes:.2f}"


def _spent(cell: Cell | None) -> str:
    return _ABSENT if cell is None else _ms(cell.cpu_ms)


def _timing(one: Timing | None) -> str:
    if one is None:
        return _ABSENT
    if one.median_ms is None:
        return f"wrong: {one.note}"
    return _ms(one.median_ms)


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _outcome(is_met: bool) -> str:
    return "met" if is_met else "missed"


def make_page() -> None:
    """Write the figures of docs/sync.json into the page."""
    PART.write(block(read_run()))


@click.command(help=__doc__)
@click.option("--page", "only_page", is_flag=True, help="Measure nothing.")
def main(only_page: bool) -> None:
    """Measure, and make the page."""
    if not only_page:
        write_run(measure(lambda line: click.echo(line, err=True)))
    make_page()
    for name, aim, found, outcome in goals(read_run()):
        click.echo(f"{name}: {found} ({aim}) {outcome}")


if __name__ == "__main__":
    main()
