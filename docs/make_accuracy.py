"""Writes docs/accuracy.md from simulations: ``python -m docs.make_accuracy``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from docs.accuracy_tables import CALM, SECTIONS, Section, percent, wrong_share
from docs.page_part import varying
from tests.support.accuracy.causes import (
    CAUSE_SCENARIOS,
    KINDS,
    CauseFigures,
    judge,
)
from tests.support.accuracy.figures import Figures, total
from tests.support.accuracy.mvds import MVDS_NAMES, MvdsResult, mvds_result_of
from tests.support.accuracy.suite import (
    NAMES,
    QUIET_WITHOUT_LOSS,
    CatchUp,
    catch_up,
    result_of,
)

PAGE = Path(__file__).with_name("accuracy.md")

SEEDS = 12
"""Number of seeds; they take about ten minutes on two processors."""

_CATCH_UP_SEEDS = 5
_CAUSE_SEEDS = 6
_NO_ALARM = {"ok", "quiet", "warming_up"}
_TOTAL = "**all**"


def command(seeds: int) -> str:
    """Return the command that writes the page."""
    return f"make accuracy SEEDS={seeds}"


_HEAD = """\
# Accuracy

How often is the monitor right?

Made by `{command}`; do not edit it by hand.
The tables compare the monitor's reports with what really happened in the simulator (the truth).
The {plays} simulations run every [scenario](simulator.md#scenarios) of SDS with the seeds 1 to {seeds}, except the scenario `flood`, which ends before the first deadline.
`{quiet_without_loss}` is the scenario `quiet` on a network that loses nothing; the scenarios that take eight hours are on [another page](accuracy-hours.md).
The monitor reads one record at a time; the tables use its verdict after each record.
Versions: sds-monitor {version}, numpy {numpy}; with these versions, the figures are always the same.

Each simulation has a [truth file](simulator.md#the-truth-file), with the figures that a monitor must report if it follows the [rules](figures.md).
In all simulations, {differing} figures of the reports differ from the truth file.
A report that follows the rules can still be wrong about what really happened; the tables show how often.
*Found* counts correct reports, and *wrong* counts incorrect reports.
*Missed* counts events that left evidence but that the monitor did not report.
Recall is found / (found + missed), and precision is found / (found + wrong).
*Unseeable* counts events that leave [no evidence](figures.md#what-cannot-be-seen).
"""  # noqa: E501 - one sentence per line

_NOTHING = {"0", "0.0", "-", "0.00 %"}


class Results(NamedTuple):
    """Results of all simulations.

    Attributes:
        seeds: Number of simulations of each scenario.
        by_name: Sums over the seeds by scenario.
        caught_up: Results after an outage, by the way of reading, one for each seed.
        mvds: Results of MVDS by scenario, one for each seed.
        causes: Sums over some seeds by scenario.
    """

    seeds: int
    by_name: Mapping[str, Figures]
    caught_up: Mapping[str, Sequence[CatchUp]]
    mvds: Mapping[str, Sequence[MvdsResult]]
    causes: Mapping[str, CauseFigures]


class Grid(NamedTuple):
    """A table, for the page or the terminal."""

    title: str
    text: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: tuple[tuple[str, str], ...] = ()


def grids(results: Results) -> Iterator[Grid]:
    """Return all tables."""
    yield _goals(results)
    for section in SECTIONS:
        yield section_grid(section, results.by_name)
    yield _causes(results)
    yield _mvds(results)


def section_grid(section: Section, by_name: Mapping[str, Figures]) -> Grid:
    """Return the table of a section, given the sums by scenario."""
    figures = {name: by_name[name] for name in section.names}
    if section.names is NAMES:
        figures[_TOTAL] = total(figures.values())
    return Grid(
        section.title,
        section.text,
        ("scenario", *(column.head for column in section.columns)),
        [
            (name, *(_shown(column.value(one)) for column in section.columns))
            for name, one in figures.items()
        ],
        tuple(
            (column.head, column.meaning)
            for column in section.columns
            if column.meaning
        ),
    )


def _goals(results: Results) -> Grid:
    everything = total(results.by_name.values())
    losses, pairs = everything.losses, everything.undelivered
    acknowledged = everything.acknowledgements
    calm = [results.by_name[name] for name in CALM]
    false = sum(one.losses.wrong + one.undelivered.wrong for one in calm)
    caught_up = [*itertools.chain.from_iterable(results.caught_up.values())]
    false += sum(one.lost for one in caught_up)
    payloads = [*itertools.chain.from_iterable(results.mvds.values())]
    alarms_ms = {
        name: sum(
            ms
            for (verdict, _), ms in results.by_name[name].verdicts_ms.items()
            if verdict not in _NO_ALARM
        )
        for name in ("clean", QUIET_WITHOUT_LOSS)
    }
    wrong = {name: results.by_name[name] for name in (QUIET_WITHOUT_LOSS, "phones")}
    stated = sum(results.causes.values(), CauseFigures())
    goals = [
        (
            "latencies of definite acknowledgements are exact to the millisecond",
            not acknowledged.differing and not acknowledged.error_ms,
            f"{acknowledged.definite:,} messages, error {acknowledged.error_ms} ms",
        ),
        (
            "no false loss in `clean`, `quiet`, `phones`, `tap-blind`, or after an "
            "outage",
            not false,
            f"{false:,} false",
        ),
        (
            "every lost message that leaves evidence is found",
            not losses.missed,
            f"{losses.found:,} of {losses.found + losses.missed:,} found; "
            f"{losses.unnamed + losses.hidden:,} more lost messages leave no evidence",
        ),
        (
            "no message is falsely called lost",
            not losses.wrong,
            f"{losses.wrong:,} of {losses.found + losses.wrong:,}",
        ),
        (
            "if a usable frame shows that a participant lacks an undelivered message, "
            "the monitor finds this message",
            not pairs.missed,
            f"{pairs.found:,} of {pairs.found + pairs.missed:,} found; "
            f"{pairs.behind + pairs.unseeable:,} more undelivered messages leave no "
            "evidence",
        ),
        (
            "no message is falsely called undelivered",
            not pairs.wrong,
            f"{pairs.wrong:,} of {pairs.found + pairs.wrong:,}",
        ),
        *(
            (
                f"in `{name}`, every verdict is `ok`, `quiet` or `warming_up`",
                not spent_ms,
                f"{spent_ms / 60_000:,.1f} minutes of other verdicts",
            )
            for name, spent_ms in alarms_ms.items()
        ),
        *(
            (
                f"in `{name}`, at most 0.1 % of the minutes have a wrong verdict",
                one.wrong_verdicts_ms.total() <= one.verdicts_ms.total() / 1_000,
                wrong_share(one),
            )
            for name, one in wrong.items()
        ),
        (
            "every likely cause is the one that the scenario produced",
            not stated.wrong,
            f"{stated.right.total():,} of {len(stated.statements):,}",
        ),
        (
            "an outage of an hour does not change a byte of the report",
            all(one.alike for one in caught_up),
            f"{sum(one.alike for one in caught_up)} of {len(caught_up)}",
        ),
        (
            "a channel is `blind` only if each of its taps had a gap in the last ten "
            "minutes",
            not everything.wrong_blind_ms,
            f"{everything.wrong_blind_ms / 60_000:,.1f} wrong minutes",
        ),
        (
            "every figure of MVDS equals the truth",
            not any(one.differing for one in payloads),
            f"{sum(len(one.differing) for one in payloads):,} differ in "
            f"{len(payloads):,} simulations",
        ),
    ]
    return Grid(
        "Goals",
        "",
        ("goal", "met", "figure"),
        [(goal, "yes" if met else "**no**", figure) for goal, met, figure in goals],
    )


def _causes(results: Results) -> Grid:
    everything = sum(results.causes.values(), CauseFigures())

    def cells(kind: str) -> tuple[str, ...]:
        right, wrong = everything.right[kind], everything.wrong[kind]
        made, found = everything.made[kind], everything.found[kind]
        return (
            f"{right:,}",
            f"{wrong:,}",
            percent(right, wrong),
            f"{made:,}",
            f"{found:,}",
            percent(found, made - found),
        )

    return Grid(
        "Likely causes",
        "Every ten seconds, the simulation records the [causes](figures.md#causes) "
        "that the monitor states.\n"
        "This table counts these statements, "
        f"with the seeds 1 to {min(results.seeds, _CAUSE_SEEDS)}.\n"
        "A statement is right if the scenario produces this cause and the statement "
        "is true.",
        ("cause", "right", "wrong", "precision", "made", "found", "recall"),
        [(kind, *cells(kind)) for kind in KINDS],
        (
            (
                "right, wrong",
                "number of right and of wrong statements. All statements about the "
                "same participant or the same tap of a channel count as one statement. "
                "The one statement is wrong if any of these statements was wrong",
            ),
            (
                "made",
                "channels that were failing or degraded at some time, in scenarios "
                "that produce this cause. Many of these channels have too few "
                "failures for the monitor to state a cause",
            ),
            ("found", "channels counted in *made* that have a right statement"),
        ),
    )


def _mvds(results: Results) -> Grid:
    def cells(found: Sequence[MvdsResult]) -> tuple[str, ...]:
        counts = [
            sum(getattr(one, name) for one in found)
            for name in MvdsResult._fields
            if name != "differing"
        ]
        counts.append(sum(len(one.differing) for one in found))
        return tuple(f"{count:,}" for count in counts)

    return Grid(
        "MVDS",
        f"The three scenarios of MVDS run with the seeds 1 to {results.seeds}.\n"
        "The monitor reads batches of 1,000 records.",
        (
            "scenario",
            "messages",
            "reached",
            "deliveries",
            "addressed",
            "in time",
            "unacknowledged",
            "differing",
        ),
        [(name, *cells(found)) for name, found in results.mvds.items()],
        (
            ("reached", "pairs of a message and a node that received it"),
            (
                "deliveries",
                "pairs of a message and a node for which the monitor reports that the "
                "node acknowledged the message. If nodes are offline, *deliveries* is "
                "less than *reached*. If senders acknowledge offers of their own "
                "messages, *deliveries* is greater than *reached*",
            ),
            ("addressed", "pairs of a message and a receiver to which it was sent"),
            ("in time", "addressed pairs that were acknowledged by the deadline"),
            (
                "unacknowledged",
                "addressed pairs for which the monitor reports no acknowledgement by "
                "the deadline, although a tap saw that the receiver sent a payload",
            ),
            ("differing", "figures of the reports that differ from the truth"),
        ),
    )


def page(results: Results) -> str:
    """Return the whole page."""
    everything = total(results.by_name.values())
    parts = [
        _HEAD.format(
            command=command(results.seeds),
            seeds=results.seeds,
            plays=f"{everything.plays:,}",
            quiet_without_loss=QUIET_WITHOUT_LOSS,
            version=version("sds-monitor"),
            numpy=version("numpy"),
            differing=everything.differing or "no",
        )
    ]
    parts += map(text_of, grids(results))
    return "\n".join(parts)


def text_of(grid: Grid) -> str:
    """Return a table as a section of a page."""
    lines = [f"## {grid.title}", ""]
    if grid.text:
        lines += [grid.text, ""]
    empty = [row[0] for row in grid.rows if _NOTHING.issuperset(row[2:])]
    # A few such rows are no burden.
    empty = empty if len(empty) > 2 else []
    shown, same = varying(grid.heads, [row for row in grid.rows if row[0] not in empty])
    lines += shown
    if same:
        lines += ["", same]
    if empty:
        names = ", ".join(f"`{name}`" for name in empty)
        omitted = "The table omits rows that have only 0 or `-` after the first figure"
        lines += ["", f"{omitted}: {names}."]
    if grid.notes:
        lines += ["", *(f"- **{head}**: {note}." for head, note in grid.notes)]
    return "\n".join(lines) + "\n"


def run(seeds: int) -> Results:
    """Run all simulations, as many at a time as there are processors."""
    plays = [(name, seed) for name in NAMES for seed in range(1, seeds + 1)]
    cuts = {"in one batch": None, "in batches of 1,000": 1_000}
    outages = [
        (size, seed) for size in cuts.values() for seed in range(1, _CATCH_UP_SEEDS + 1)
    ]
    of_mvds = [(name, seed) for name in MVDS_NAMES for seed in range(1, seeds + 1)]
    of_causes = [
        (name, seed)
        for name in CAUSE_SCENARIOS
        for seed in range(1, min(seeds, _CAUSE_SEEDS) + 1)
    ]
    by_name = dict.fromkeys(NAMES, Figures())
    causes = dict.fromkeys(CAUSE_SCENARIOS, CauseFigures())
    with ProcessPoolExecutor() as pool:
        played = pool.map(_figures, plays)
        payloads = pool.map(_mvds_result, of_mvds)
        caught_up = pool.map(_caught_up, outages)
        stated = pool.map(_cause_figures, of_causes)
        progress = track(played, total=len(plays), console=Console(stderr=True))
        for (name, _), figures in zip(plays, progress, strict=True):
            by_name[name] += figures
        found = iter(list(caught_up))
        results = iter(list(payloads))
        for (name, _), one in zip(of_causes, stated, strict=True):
            causes[name] += one
    return Results(
        seeds,
        by_name,
        {how: list(itertools.islice(found, _CATCH_UP_SEEDS)) for how in cuts},
        {name: list(itertools.islice(results, seeds)) for name in MVDS_NAMES},
        causes,
    )


def show(grid: Grid, console: Console) -> None:
    """Print a table."""
    shown = Table(title=grid.title, title_justify="left")
    for place, head in enumerate(grid.heads):
        shown.add_column(head, justify="right" if place else "left")
    for row in grid.rows:
        shown.add_row(*(cell.replace("*", "") for cell in row))
    console.print(shown)


def _figures(play: tuple[str, int]) -> Figures:
    return result_of(*play).figures


def _mvds_result(play: tuple[str, int]) -> MvdsResult:
    return mvds_result_of(*play)


def _cause_figures(play: tuple[str, int]) -> CauseFigures:
    name, seed = play
    return judge(CAUSE_SCENARIOS[name], seed)


def _caught_up(outage: tuple[int | None, int]) -> CatchUp:
    size, seed = outage
    return catch_up(seed, size)


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


@click.command()
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    help="How many of each scenario.",
)
def main(seeds: int) -> None:
    """Run the monitor on all scenarios, and write the page."""
    results = run(seeds)
    console = Console()
    for grid in grids(results):
        show(grid, console)
    PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
