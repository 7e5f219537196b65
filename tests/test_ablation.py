"""The tables of what each repair brings, on a small setting and on the page."""

from __future__ import annotations

import re

import pytest

from docs import make_ablation
from docs.make_ablation import LOADS, LOSSES, VARIANTS, Load, Repairs, simulate

TINY = Load("tiny", 1_000, 4, 2_000)
SEGMENTED = Load("segmented", 210_000, 2, 2_000)
NOTHING, SDS_R, PARITY, _ = VARIANTS
SEED = 1


@pytest.mark.parametrize("repairs", VARIANTS)
def test_without_losses_everything_arrives_soon(repairs: Repairs) -> None:
    """Nothing is repaired, so all kinds of repair deliver alike."""
    measured = simulate(TINY, repairs, 0.0, SEED)
    assert measured.soon == measured.late == 1
    assert measured.carried is not None
    assert measured.carried > 1


@pytest.mark.parametrize("repairs", [SDS_R, PARITY])
def test_repair_delivers_what_is_lost_without_it(repairs: Repairs) -> None:
    """Each alone brings more than nothing does, on the same losses."""
    without = simulate(SEGMENTED, NOTHING, 0.1, SEED)
    assert simulate(SEGMENTED, repairs, 0.1, SEED).late > without.late


def test_retries_are_sent_only_if_they_are_on() -> None:
    """On a network that loses all, each message costs eleven times as much."""
    options = [
        make_ablation.options(SDS_R._replace(retries=on)) for on in (False, True)
    ]
    assert [one.max_retry_attempts for one in options] == [0, 10]
    assert simulate(TINY, NOTHING, 1.0, SEED).carried is None


def test_equal_seeds_give_equal_figures() -> None:
    """So the page can be made again."""
    assert simulate(TINY, SDS_R, 0.2, SEED) == simulate(TINY, SDS_R, 0.2, SEED)


def test_table_has_means_and_spread() -> None:
    """A row has both shares and the bytes, without and with retries."""
    cells = make_ablation.measure([TINY], [0.0], [1, 2])
    (row,) = re.findall(r"\| 0 % \| SDS-R \| (.+) \|", make_ablation.block(cells))
    figures = row.split(" | ")
    assert figures[:2] == figures[3:5] == ["100 (100-100)"] * 2
    assert figures[2] == figures[5]
    assert re.fullmatch(r"[\d.]+ \([\d.]+-[\d.]+\)", figures[2])


def test_page_names_the_settings() -> None:
    """After a change of the settings run ``python -m docs.make_ablation``."""
    assert make_ablation.about() in make_ablation.PART.current()


def test_page_has_every_row() -> None:
    """Each load, loss and kind of repair, in this order."""
    rows = re.findall(r"\n\| ([\d.]+ %) \| ([^|]+) \|", make_ablation.PART.current())
    assert rows == [
        (f"{loss * 100:g} %", variant.name)
        for load, kinds in zip(LOADS, (VARIANTS[:2], VARIANTS), strict=True)
        for loss in LOSSES
        for variant in kinds
    ]
