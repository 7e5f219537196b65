"""Writes docs/accuracy.md from simulations: ``python -m docs.make_accuracy``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from sds_core.message_channel.events import Cause
from tests.accuracy.figures import Figures, total
from tests.accuracy.suite import (
    NAMES,
    QUIET_WITHOUT_LOSS,
    CatchUp,
    catch_up,
    result_of,
)

PAGE = Path(__file__).with_name("accuracy.md")

SEEDS = 12
"""As many as take some five minutes on two processors."""

_CATCH_UP_SEEDS = 5
_CALM = ("clean", "quiet", QUIET_WITHOUT_LOSS, "tap-blind")
_NO_ALARM = {"ok", "quiet", "warming_up"}
_TOTAL = "**all**"


def command(seeds: int) -> str:
    """What makes the page."""
    return f"make accuracy SEEDS={seeds}"


class Column(NamedTuple):
    """One figure of each scenario.

    Attributes:
        head: Its name.
        meaning: In one line.
        value: As the page shows it.
    """

    head: str
    meaning: str
    value: Callable[[Figures], object]


class Section(NamedTuple):
    """A table of the page, a row for each scenario.

    Attributes:
        title: Its heading.
        text: What it is about; one sentence per line.
        columns: After the scenario's name.
        names: The scenarios; their sum is the last row if they are all.
    """

    title: str
    text: str
    columns: tuple[Column, ...]
    names: Sequence[str] = NAMES


_HEAD = """\
# Accuracy

Made by `{command}`; do not edit it by hand.
The simulator knows what really happened; here stands what the monitor said of it.
Every [scenario](simulator.md#scenarios) was played with the seeds 1 to {seeds}, {plays} simulations in all.
`flood` is left out, since it ends before the first deadline has passed; `{quiet_without_loss}` is `quiet` with a network that loses nothing.
The monitor read record by record, and its verdicts count at every one of them.
With sds-monitor {version} and numpy {numpy}, the same command writes the same page to the byte.

In all these simulations {differing} figures of the reports differ from what the [truth file](simulator.md#the-truth-file) says that a correct monitor reports.
The tables ask for more: not whether the monitor keeps to its rules, but whether the rules are right.
What each figure means is in [figures.md](figures.md).
"""  # noqa: E501 - one sentence per line


_TAIL = """## What no monitor sees

- A lost message that nobody names, such as the last one of a channel: *never named*, *trailing*.
- A loss that lies so near to the monitor's start, or behind so many others, that it may be older than the start: *hidden*.
- What a participant lacks that says nothing any more, or nothing that is later than the message: *silent*, *behind*.
- A miss that is healed before the participant speaks again: *first pass, later*.
- A request that the tap missed: *retry, repair*.
"""  # noqa: E501 - one sentence per line


def _percent(part: int, rest: int) -> str:
    """The share of a part, never rounded up to all of it."""
    whole = part + rest
    if not whole:
        return "-"
    return f"{part * 10_000 // whole / 100:.2f} %"


def _minutes(verdict: str, reason: str | None = None) -> Callable[[Figures], str]:
    """Event time of all channels under a verdict."""

    def value(figures: Figures) -> str:
        spent_ms = sum(
            ms
            for (name, why), ms in figures.verdicts_ms.items()
            if name == verdict and reason in (None, why)
        )
        return f"{spent_ms / 60_000:,.1f}"

    return value


def _first_pass_ratio(figures: Figures) -> tuple[float, float] | None:
    """First-pass delivery ratio in percent, as the monitor has it and as it is."""
    said, reach = figures.deliveries, figures.reach
    ended = said.total()
    if not ended:
        return None
    first_pass = sum(n for (outcome, _), n in said.items() if outcome == "first_pass")
    return 100 * first_pass / ended, 100 * reach.reached / reach.pairs


def _ratio(place: int) -> Callable[[Figures], str]:
    def value(figures: Figures) -> str:
        ratios = _first_pass_ratio(figures)
        return "-" if ratios is None else f"{ratios[place]:.2f} %"

    return value


def _ratio_error(figures: Figures) -> str:
    ratios = _first_pass_ratio(figures)
    return "-" if ratios is None else f"{ratios[0] - ratios[1]:+.2f}"


def _delivered(said: str, really: str) -> Callable[[Figures], int]:
    return lambda f: f.deliveries[said, really]


def _called(said: str, cause: Cause) -> Callable[[Figures], int]:
    return lambda f: f.rebroadcasts[said, cause]


_SECTIONS = (
    Section(
        "Lost messages",
        "A message is lost if, when the monitor decides, nobody but its sender had "
        "received it and no tap had shown it.\n"
        "It leaves evidence if a frame that a tap showed names it.",
        (
            Column("messages", "sent, with content", lambda f: f.messages),
            Column("found", "lost, and said to be", lambda f: f.losses.found),
            Column(
                "wrong",
                "said to be lost, and somebody else had it",
                lambda f: f.losses.wrong,
            ),
            Column(
                "missed",
                "lost with evidence, and not said to be",
                lambda f: f.losses.missed,
            ),
            Column(
                "recall",
                "share of those lost with evidence that were found",
                lambda f: _percent(f.losses.found, f.losses.missed),
            ),
            Column(
                "precision",
                "share of those said to be lost that were",
                lambda f: _percent(f.losses.found, f.losses.wrong),
            ),
            Column(
                "tap gap",
                "missed by the tap alone, and rightly not called lost",
                lambda f: f.losses.tap_gaps,
            ),
            Column(
                "stale",
                "found, and still called lost at the end although somebody else has "
                "received it since, unseen by the tap",
                lambda f: f.losses.stale,
            ),
            Column(
                "unseeable: never named",
                "received by nobody else, ever, and no frame that a tap showed names "
                "it",
                lambda f: f.losses.unnamed,
            ),
            Column(
                "unseeable: hidden",
                "received by nobody else, and named only in the warm-up, or with "
                "nothing before it in the history that the tap had seen since: it "
                "may be older than the monitor's first sight",
                lambda f: f.losses.hidden,
            ),
            Column(
                "trailing",
                "received by nobody else although the tap saw it: no dependency is "
                "missing, and whether it is found stands under undelivered messages",
                lambda f: f.losses.trailing,
            ),
            Column(
                "undecided",
                "received by nobody else, and named less than 300 s before the end",
                lambda f: f.losses.undecided,
            ),
        ),
    ),
    Section(
        "Undelivered messages",
        "Of messages that a tap showed: which other participants had not received them "
        "300 s later.\n"
        "Participants of the other dialect are left out, since they cannot read them.",
        (
            Column("found", "lacking, and said to be", lambda f: f.undelivered.found),
            Column(
                "wrong",
                "said to be lacking, and received by then",
                lambda f: f.undelivered.wrong,
            ),
            Column(
                "missed",
                "lacking, not said to be, and a usable frame that was composed after "
                "the 300 s shows it",
                lambda f: f.undelivered.missed,
            ),
            Column(
                "recall",
                "share of those shown to be lacking that were found",
                lambda f: _percent(f.undelivered.found, f.undelivered.missed),
            ),
            Column(
                "precision",
                "share of those said to be lacking that were",
                lambda f: _percent(f.undelivered.found, f.undelivered.wrong),
            ),
            Column(
                "unseeable: behind",
                "lacking, and all its frames since have Lamport timestamps that are "
                "not greater than the message's",
                lambda f: f.undelivered.behind,
            ),
            Column(
                "unseeable: silent",
                "lacking, and it had not spoken before, or never did after the 300 s",
                lambda f: f.undelivered.unseeable,
            ),
        ),
    ),
    Section(
        "Deliveries",
        "What the monitor said of each message and participant on which it concluded, "
        "and which sending of the message really arrived.\n"
        "A miss that is healed before the participant's next frame shows nowhere.",
        (
            Column(
                "first pass, first",
                "said to be delivered at the first pass; the first sending arrived",
                _delivered("first_pass", "first"),
            ),
            Column(
                "first pass, later",
                "said so; only a later sending arrived",
                _delivered("first_pass", "later"),
            ),
            Column(
                "first pass, none",
                "said so; none ever arrived",
                _delivered("first_pass", "none"),
            ),
            Column(
                "recovered, later",
                "said to have recovered; a later sending arrived",
                _delivered("recovered", "later"),
            ),
            Column(
                "recovered, first",
                "said so; the first sending arrived",
                _delivered("recovered", "first"),
            ),
            Column(
                "lost, later",
                "said to be lost, retracted or not; a later sending arrived in the end",
                _delivered("lost", "later"),
            ),
            Column(
                "lost, first",
                "said so; the first sending arrived",
                _delivered("lost", "first"),
            ),
            Column(
                "lost, none", "said so; none ever arrived", _delivered("lost", "none")
            ),
            Column("first-pass ratio", "as the monitor has it", _ratio(0)),
            Column(
                "really",
                "share of all pairs of a message that a tap showed and a participant "
                "who was there that the first sending reached, also of those on which "
                "the monitor did not conclude",
                _ratio(1),
            ),
            Column("error", "the first less the second, in points", _ratio_error),
        ),
    ),
    Section(
        "Acknowledgements",
        "The truth has the time of every record, and so of every definite "
        "acknowledgement; its filters hold just what was received.",
        (
            Column(
                "definite",
                "messages definitely acknowledged",
                lambda f: f.acknowledgements.definite,
            ),
            Column(
                "differing",
                "messages that only the monitor or only the truth has there",
                lambda f: f.acknowledgements.differing,
            ),
            Column(
                "error in ms",
                "sum of the differences of their latencies from the truth's",
                lambda f: f.acknowledgements.error_ms,
            ),
            Column(
                "wrong",
                "definitely acknowledged when nobody else had the message",
                lambda f: f.acknowledgements.wrong,
            ),
            Column(
                "probable",
                "messages probably acknowledged",
                lambda f: f.acknowledgements.probable,
            ),
            Column(
                "excess",
                "how many more that is, channel by channel, than the truth's",
                lambda f: f.acknowledgements.excess,
            ),
            Column(
                "unacknowledged",
                "said to be unacknowledged, and nobody else had it by the deadline",
                lambda f: f.acknowledgements.silent,
            ),
            Column(
                "unshown",
                "said to be unacknowledged, and somebody else had it by the deadline, "
                "which the frames of too few showed",
                lambda f: f.acknowledgements.unshown,
            ),
        ),
    ),
    Section(
        "Repairs and retries",
        "What the monitor called each rebroadcast, and why it was really sent.",
        (
            Column(
                "repair, repair",
                "called a repair, and one",
                _called("repair", Cause.REPAIR),
            ),
            Column(
                "repair, retry",
                "called a repair, was a retry",
                _called("repair", Cause.RETRY),
            ),
            Column(
                "retry, repair",
                "called a retry, was a repair: the tap missed the request",
                _called("retry", Cause.REPAIR),
            ),
            Column(
                "retry, retry", "called a retry, and one", _called("retry", Cause.RETRY)
            ),
            Column(
                "recall",
                "share of the repairs that were called one",
                lambda f: _percent(
                    f.rebroadcasts["repair", Cause.REPAIR],
                    f.rebroadcasts["retry", Cause.REPAIR],
                ),
            ),
            Column(
                "precision",
                "share of those called a repair that were one",
                lambda f: _percent(
                    f.rebroadcasts["repair", Cause.REPAIR],
                    f.rebroadcasts["repair", Cause.RETRY],
                ),
            ),
        ),
    ),
    Section(
        "False alarms",
        "Minutes of event time, over all channels, under each verdict, where the "
        "network loses nothing or one transmission in a hundred.\n"
        "Losses in `quiet` and `tap-blind` are real: a channel that recovers from one "
        "is rightly degraded.",
        (
            Column("ok", "nothing to say", _minutes("ok")),
            Column("quiet", "no content for ten minutes", _minutes("quiet")),
            Column("warming up", "the first 30 s", _minutes("warming_up")),
            Column("degraded", "for any reason", _minutes("degraded")),
            Column(
                "failing: lost",
                "a message lost to all, or to some",
                _minutes("failing", "lost"),
            ),
            Column(
                "failing: unacknowledged",
                "over 5 % of the messages were",
                _minutes("failing", "unacknowledged"),
            ),
            Column("blind", "the tap had a hole", _minutes("blind")),
            Column(
                "false losses",
                "lost or undelivered messages that were said and wrong",
                lambda f: f.losses.wrong + f.undelivered.wrong,
            ),
            Column(
                "false blame",
                "unacknowledged messages that somebody else had",
                lambda f: f.acknowledgements.unshown,
            ),
        ),
        _CALM,
    ),
)


class Results(NamedTuple):
    """All simulations.

    Attributes:
        seeds: How many of each.
        by_name: Sums over the seeds by scenario.
        caught_up: By how the outage was read, one for each seed.
    """

    seeds: int
    by_name: Mapping[str, Figures]
    caught_up: Mapping[str, Sequence[CatchUp]]


class Grid(NamedTuple):
    """A table as it is shown, on the page or the terminal."""

    title: str
    text: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: tuple[tuple[str, str], ...] = ()


def grids(results: Results) -> Iterator[Grid]:
    """All tables."""
    yield _goals(results)
    for section in _SECTIONS:
        figures = {name: results.by_name[name] for name in section.names}
        if section.names is NAMES:
            figures[_TOTAL] = total(figures.values())
        yield Grid(
            section.title,
            section.text,
            ("scenario", *(column.head for column in section.columns)),
            [
                (name, *(_shown(column.value(one)) for column in section.columns))
                for name, one in figures.items()
            ],
            tuple((column.head, column.meaning) for column in section.columns),
        )
    yield _catching_up(results)


def _goals(results: Results) -> Grid:
    everything = total(results.by_name.values())
    losses, pairs = everything.losses, everything.undelivered
    acknowledged = everything.acknowledgements
    calm = [results.by_name[name] for name in _CALM]
    false = sum(one.losses.wrong + one.undelivered.wrong for one in calm)
    caught_up = [*itertools.chain.from_iterable(results.caught_up.values())]
    false += sum(one.lost for one in caught_up)
    alarms_ms = {
        name: sum(
            ms
            for (verdict, _), ms in results.by_name[name].verdicts_ms.items()
            if verdict not in _NO_ALARM
        )
        for name in ("clean", QUIET_WITHOUT_LOSS)
    }
    goals = [
        (
            "definite acknowledgement latency exact to the millisecond",
            not acknowledged.differing and not acknowledged.error_ms,
            f"{acknowledged.definite:,} messages, error {acknowledged.error_ms} ms",
        ),
        (
            "no false loss in `clean`, `quiet`, `tap-blind` and on catching up",
            not false,
            f"{false:,} false",
        ),
        (
            "every lost message that leaves evidence is found",
            not losses.missed,
            f"{losses.found:,} of {losses.found + losses.missed:,}",
        ),
        (
            "no message is falsely called lost",
            not losses.wrong,
            f"{losses.wrong:,} of {losses.found + losses.wrong:,}",
        ),
        (
            "every undelivered message that a usable frame shows is found",
            not pairs.missed,
            f"{pairs.found:,} of {pairs.found + pairs.missed:,}",
        ),
        (
            "no message is falsely called undelivered",
            not pairs.wrong,
            f"{pairs.wrong:,} of {pairs.found + pairs.wrong:,}",
        ),
        *(
            (
                f"no verdict but ok, quiet and warming up in `{name}`",
                not spent_ms,
                f"{spent_ms / 60_000:,.1f} minutes of another",
            )
            for name, spent_ms in alarms_ms.items()
        ),
        (
            "an outage of an hour changes nothing",
            all(one.alike for one in caught_up),
            f"{sum(one.alike for one in caught_up)} of {len(caught_up)} alike",
        ),
    ]
    return Grid(
        "Goals",
        "In `quiet without loss` a channel may be blamed for a last message that only "
        "one participant still shows to have: "
        "[figures.md](figures.md#4-acknowledgement) tells why.",
        ("goal", "met", "figure"),
        [(goal, "yes" if met else "**no**", figure) for goal, met, figure in goals],
    )


def _catching_up(results: Results) -> Grid:
    return Grid(
        "Catching up",
        f"With the seeds 1 to {_CATCH_UP_SEEDS}: the monitor is stopped after five "
        "minutes of clean traffic and reads the next hour afterwards.",
        ("read", "messages", "alike", "lost", "incidents", "verdicts"),
        [
            (
                how,
                f"{sum(one.messages for one in found):,}",
                f"{sum(one.alike for one in found)} of {len(found)}",
                f"{sum(one.lost for one in found):,}",
                f"{sum(one.incidents for one in found):,}",
                ", ".join(sorted(frozenset().union(*(one.verdicts for one in found)))),
            )
            for how, found in results.caught_up.items()
        ],
        (
            ("messages", "that the tap showed"),
            (
                "alike",
                "how often the report, incidents and every latency included, is to the "
                "byte that of a monitor that never stopped",
            ),
            ("lost", "messages and deliveries called lost"),
            ("incidents", "of any kind"),
            ("verdicts", "of any channel after any batch of that hour"),
        ),
    )


def page(results: Results) -> str:
    """The page as it must be."""
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
    for grid in grids(results):
        lines = [f"## {grid.title}", ""]
        if grid.text:
            lines += [grid.text, ""]
        lines += [_line(grid.heads), _line("---" for _ in grid.heads)]
        lines += map(_line, grid.rows)
        if grid.notes:
            lines += ["", *(f"- **{head}**: {note}." for head, note in grid.notes)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join([*parts, _TAIL])


def run(seeds: int) -> Results:
    """Play all simulations, as many at a time as there are processors."""
    plays = [(name, seed) for name in NAMES for seed in range(1, seeds + 1)]
    cuts = {"in one batch": None, "in batches of 1,000": 1_000}
    outages = [
        (size, seed) for size in cuts.values() for seed in range(1, _CATCH_UP_SEEDS + 1)
    ]
    by_name = dict.fromkeys(NAMES, Figures())
    with ProcessPoolExecutor() as pool:
        played = pool.map(_figures, plays)
        caught_up = pool.map(_caught_up, outages)
        progress = track(played, total=len(plays), console=Console(stderr=True))
        for (name, _), figures in zip(plays, progress, strict=True):
            by_name[name] += figures
        found = iter(list(caught_up))
    return Results(
        seeds,
        by_name,
        {how: list(itertools.islice(found, _CATCH_UP_SEEDS)) for how in cuts},
    )


def show(grid: Grid, console: Console) -> None:
    """Print a table."""
    table = Table(title=grid.title, title_justify="left")
    for place, head in enumerate(grid.heads):
        table.add_column(head, justify="right" if place else "left")
    for row in grid.rows:
        table.add_row(*(cell.replace("*", "") for cell in row))
    console.print(table)


def _figures(play: tuple[str, int]) -> Figures:
    return result_of(*play).figures


def _caught_up(outage: tuple[int | None, int]) -> CatchUp:
    size, seed = outage
    return catch_up(seed, size)


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


@click.command()
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    help="How many of each scenario.",
)
def main(seeds: int) -> None:
    """Judge the monitor by all scenarios, and write the page anew."""
    results = run(seeds)
    console = Console()
    for grid in grids(results):
        show(grid, console)
    PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
