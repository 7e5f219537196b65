"""The tables of what settings bring, from small sweeps and on the page."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.sweep_results import Finished, opened_sweep
from connectors.toml_file import read_toml
from docs.make_planning import GRIDS, SAMPLE, TABLES, block
from docs.planning_charts import DRAWINGS, drawn
from sds_core.planning.experiment import Outcome
from sds_core.planning.grid import Grid
from streaming.cli.actions.plan_what_if import ROWS

SWEEPS = sorted(path.stem for path in GRIDS.glob("*.toml"))


def invented(run: int, loss: float) -> Outcome:
    """An outcome that shows its loss and its run."""
    figures: dict[str, Any] = dict.fromkeys(Outcome._fields, 0.5)
    figures |= {"eventual": 1 - loss, "bytes_per_day": 1e6, "exposed": loss / 10}
    figures |= {"first_peer_in_time": 1.0, "consistent_in_time": 1 - loss}
    figures |= {"misses_found_in_time": 0.9, "bytes_per_message": 1_000.0 + run % 2}
    return Outcome(**figures)


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped grids with invented outcomes."""
    directory = tmp_path_factory.mktemp("sweeps")
    # Each run waits for the disk, which need not keep them here.
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    for name in SWEEPS:
        mapping = read_toml(GRIDS / f"{name}.toml")
        with opened_sweep(directory / name, mapping, "1") as writer:
            for run in Grid.from_mapping(mapping).runs():
                outcome = invented(run.number, run.plan.loss)
                writer.add(Finished.of(run.number, 1.0, outcome))
    monkeypatch.undo()
    return directory


@pytest.fixture
def rows(sweeps: Path) -> Callable[[str], list[list[str]]]:
    """The cells of each row of a table."""

    def of(name: str) -> list[list[str]]:
        lines = re.findall(r"^\| (.*) \|$", block(name, sweeps), re.MULTILINE)
        return [line.split(" | ") for line in lines]

    return of


def test_every_grid_is_in_a_table() -> None:
    """And every table has its part of the page."""
    assert sorted(TABLES) == SWEEPS
    for name, table in TABLES.items():
        assert table.part(name).current()


@pytest.mark.parametrize("name", DRAWINGS)
def test_charts_are_those_of_the_tables_on_the_page(name: str) -> None:
    """Each picture is drawn from its table, and the page has it."""
    part = TABLES[name].part(name)
    pictures = dict(drawn(name, part.current()))
    assert pictures
    for path, text in pictures.items():
        assert path.read_text(encoding="utf-8") == text, (
            f"make_planning {name} --charts"
        )
        assert f"(images/{path.name})" in part.path.read_text(encoding="utf-8")


def test_chart_has_values_and_intervals_of_its_rows(sweeps: Path) -> None:
    """Its points have the figures of the table; other rows are not drawn."""
    (_, text), *_ = drawn("targets", block("targets", sweeps))
    assert ">t_min_s 30, t_max_s 120, sync_interval_s 30</text>" in text
    assert "t_min_s 1, t_max_s 10, sync_interval_s 30" not in text
    assert "loss 10 %  t_min_s 30, t_max_s 120, sync_interval_s 30: 90" in text


def test_sample_of_what_if_is_whole() -> None:
    """It has each figure of the plans, as the command prints it, and their change."""
    text = SAMPLE.current()
    for word, _, _ in ROWS:
        assert re.search(rf"^  {re.escape(word)} [=~≈] ", text, re.MULTILINE)
    first = re.escape(ROWS[0][0])
    assert len(re.findall(rf"^  {first} [=~≈] ", text, re.MULTILINE)) == 2


def test_delivery_has_a_row_for_each_changed_setting(
    rows: Callable[[str], list[list[str]]],
) -> None:
    """With the loss in columns."""
    found = rows("delivery")
    assert found[0] == ["Delivered in the end, percent", *(
        f"loss {loss} %" for loss in (0, 5, 10, 20, 30, 40)
    )]  # fmt: skip
    assert found[1] == ["unchanged", "100", "95", "90", "80", "70", "60"]
    assert found[2][0] == "`sds_r` off"
    assert found[11] == ["`participants` 100", "100", "95", "90", "80", "70", "60"]
    assert [row[0] for row in found].count("unchanged") == 3


def test_met_targets_are_bold(rows: Callable[[str], list[list[str]]]) -> None:
    """Consistent are 99 % at a loss of 1 % at most, here only without any."""
    _, first, *_ = rows("targets")
    assert first[1:3] == ["**100 / 90 / 100**", "100 / 90 / 98"]


def test_false_acknowledgements_are_exposed_messages_times_the_rate(
    rows: Callable[[str], list[list[str]]],
) -> None:
    """4 % exposed and half of 2^-10 for a filter at its designed fill."""
    found = {row[0]: row for row in rows("false")}
    assert found["`profile` js_sds, `participants` 2"][3] == "4"
    rate = float(found["10,000"][1]) / 100
    assert rate == pytest.approx(0.00075, abs=1e-4)
    assert float(found["10,000"][2]) == pytest.approx(0.04 * rate * 1e6, rel=0.05)
    assert "rolls over" in found["30,000"]
    assert found["30,000"].count("rolls over") == 2


def test_cost_has_means_and_intervals(rows: Callable[[str], list[list[str]]]) -> None:
    """Of 1,000 and 1,001 bytes."""
    head, first, *_ = rows("cost")
    assert head == ["bytes of a message", *(
        f"history {size}" for size in (2, 10, 20, 50, 200)
    )]  # fmt: skip
    assert first[0] == "`participants` 2"
    assert re.fullmatch(r"1 kB ± 6(\.\d+)? B", first[1])
