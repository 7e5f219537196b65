"""Writes docs/accuracy-hours.md: ``python -m docs.make_accuracy_hours``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

import click

from docs.accuracy_tables import (
    Column,
    Section,
    all_minutes,
    called,
    minutes,
    wrong_share,
)
from docs.make_accuracy import section_grid, text_of
from sds_core.message_channel.events import Cause
from tests.support.accuracy.figures import Figures, total
from tests.support.accuracy.suite import HOURS, result_of

PAGE = Path(__file__).with_name("accuracy-hours.md")

SEEDS = 2
"""Number of seeds; they take about a minute and a half on two processors."""

_HEAD = """\
# Accuracy over hours

How often is the monitor right over eight hours, if participants are phones, clocks are wrong or participants restart?

Made by `make accuracy-hours SEEDS={seeds}`; do not edit it by hand.
Like [accuracy.md](accuracy.md), the tables compare the monitor's reports with what really happened in the simulator.
The {plays} simulations cover every [scenario](simulator.md#scenarios) of eight hours, each with the seeds 1 to {seeds}.
Versions: sds-monitor {version}, numpy {numpy}; with these versions, the figures are always the same.

Each simulation has a [truth file](simulator.md#the-truth-file), with the figures that a correct monitor reports.
In all simulations, {differing} figures of the reports differ from the truth file.
The verdict `blind` is wrong if at least one tap of the channel had no capture gap in the preceding ten minutes.
Summed over all channels, this verdict was wrong for {blind} minutes.
"""  # noqa: E501 - one sentence per line


def _repair(outcome: str) -> Callable[[Figures], int]:
    return lambda f: f.repair[outcome]


SECTIONS = (
    Section(
        "Repair and blindness",
        "Columns that are not explained below are figures of the report.",
        (
            Column("messages", "content messages", lambda f: f.messages),
            Column("requests", "", _repair("requests")),
            Column("answered", "", _repair("answered")),
            Column("expired", "", _repair("expired")),
            Column("responses", "", _repair("responses")),
            Column("redundant", "", _repair("redundant")),
            Column(
                "old repairs",
                "repairs that a tap saw and that resend a message more than an hour "
                "old",
                lambda f: f.old_repairs,
            ),
            Column(
                "sync repairs",
                "repairs that a tap saw and that resend a sync frame",
                lambda f: f.sync_repairs,
            ),
            Column(
                "differing",
                "figures of the reports that differ from the truth",
                lambda f: f.differing,
            ),
            Column(
                "gaps",
                "intervals in which a tap recorded nothing",
                lambda f: f.gaps,
            ),
            Column(
                "minutes blind",
                "minutes with the verdict `blind`, summed over all channels",
                minutes("blind"),
            ),
            Column(
                "wrong",
                "minutes with the verdict `blind` although at least one tap of the "
                "channel had no gap in the preceding ten minutes",
                lambda f: f"{f.wrong_blind_ms / 60_000:,.1f}",
            ),
        ),
        HOURS,
    ),
    Section(
        "Judgements",
        "The table omits `clocks-8h`: its taps' clocks differ by minutes, so event "
        "times cannot be compared with the truth.",
        (
            Column("lost: found", "", lambda f: f.losses.found),
            Column("lost: wrong", "", lambda f: f.losses.wrong),
            Column("lost: missed", "", lambda f: f.losses.missed),
            Column("undelivered: found", "", lambda f: f.undelivered.found),
            Column("undelivered: wrong", "", lambda f: f.undelivered.wrong),
            Column("undelivered: missed", "", lambda f: f.undelivered.missed),
            Column(
                "unseeable",
                "undelivered messages that leave no evidence in any frame",
                lambda f: f.undelivered.behind + f.undelivered.unseeable,
            ),
            Column(
                "unshown",
                "messages reported as unacknowledged, although another participant "
                "had them",
                lambda f: f.acknowledgements.unshown,
            ),
            Column(
                "repair, retry",
                "retries that the monitor counts as repairs",
                called("repair", Cause.RETRY),
            ),
            Column(
                "retry, repair",
                "repairs that the monitor counts as retries",
                called("retry", Cause.REPAIR),
            ),
            Column(
                "minutes",
                "minutes with a verdict",
                lambda f: all_minutes(f.verdicts_ms),
            ),
            Column(
                "under a wrong verdict", "", lambda f: all_minutes(f.wrong_verdicts_ms)
            ),
            Column(
                "share", "share of these minutes under a wrong verdict", wrong_share
            ),
        ),
        [name for name in HOURS if name != "clocks-8h"],
    ),
)
"""All tables."""


def page(by_name: dict[str, Figures], seeds: int) -> str:
    """Return the whole page.

    Args:
        by_name: Sums over the seeds by scenario.
        seeds: Number of simulations of each scenario.
    """
    everything = total(by_name.values())
    head = _HEAD.format(
        seeds=seeds,
        plays=everything.plays,
        version=version("sds-monitor"),
        numpy=version("numpy"),
        differing=everything.differing or "no",
        blind=f"{everything.wrong_blind_ms / 60_000:,.1f}",
    )
    grids = (section_grid(section, by_name) for section in SECTIONS)
    return "\n".join([head, *map(text_of, grids)])


def _figures(play: tuple[str, int]) -> tuple[str, Figures]:
    name, seed = play
    return name, result_of(name, seed).figures


@click.command()
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    help="How many of each scenario.",
)
def main(seeds: int) -> None:
    """Run the monitor on the scenarios of eight hours, and write the page."""
    by_name = dict.fromkeys(HOURS, Figures())
    with ProcessPoolExecutor() as pool:
        plays = itertools.product(HOURS, range(1, seeds + 1))
        for name, figures in pool.map(_figures, plays):
            by_name[name] += figures
    PAGE.write_text(page(by_name, seeds), encoding="utf-8")


if __name__ == "__main__":
    main()
