"""The table of what a delivery by MVDS takes."""

from __future__ import annotations

import re
from itertools import product

import pytest

from docs import make_mvds_delivery
from docs.make_mvds_delivery import (
    BACKOFFS,
    LOSSES,
    MODES,
    Setting,
    measure,
    simulate,
)


@pytest.mark.parametrize(
    ("mode", "records", "most_epochs"),
    # A message and its ACK, or all four types; each waits for a tick of its sender.
    [("batch", 2, 1.3), ("interactive", 4, 3.9)],
)
def test_delivery_without_loss_takes_the_least(
    mode: str, records: int, most_epochs: float
) -> None:
    """With waits that are longer than an exchange nothing is repeated."""
    result = simulate(Setting(mode, "deployed", 0.0), 1, nodes=2)
    assert result.due == len(result.epochs) > 0
    assert result.records == records * result.due
    assert 0 < result.epochs[-1] <= most_epochs


def test_loss_costs_time_and_records() -> None:
    """The more is lost, the more."""
    some = [simulate(Setting("batch", "linear", loss), 1, nodes=2) for loss in (0, 0.5)]
    assert some[1].epochs[len(some[1].epochs) // 2] > some[0].epochs[0]
    assert some[1].records > some[0].records


def test_rows_are_the_same_again() -> None:
    """So the page can be made again."""
    settings = [Setting("interactive", "document", 0.3)]
    assert measure(settings, [1, 2]) == measure(settings, [1, 2])


def test_undelivered_pairs_count_as_slower_than_all() -> None:
    """A quantile that lies among them has no figure."""
    (row,) = measure([Setting("interactive", "deployed", 0.9)], [1])
    table = make_mvds_delivery.block([row])
    assert f"> {make_mvds_delivery.HORIZON_EPOCHS:,}" in table
    share = 1 - len(row.results[0].epochs) / row.results[0].due
    assert f"{share * 100:.1f} %" in table


def test_page_has_every_row_and_the_settings() -> None:
    """After a change of the settings run ``make mvds-delivery``."""
    made = make_mvds_delivery.PART.current()
    assert make_mvds_delivery.about() in made
    rows = re.findall(r"\n\| (\w+) \| (\w+) \| (\d+ %) \|", made)
    assert rows == [
        (mode, backoff, f"{loss * 100:.0f} %")
        for mode, backoff, loss in product(MODES, BACKOFFS, LOSSES)
    ]
