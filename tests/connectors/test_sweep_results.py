"""The directory of a sweep: what counts as finished, and whose results it has."""

from __future__ import annotations

import math
import re
import resource
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from connectors.sweep_results import (
    TABLE,
    Finished,
    SweepRefused,
    opened_sweep,
    read_sweep,
)
from sds_core.planning.experiment import Outcome
from tests.support.deployment import ROOT

GRID = {
    "base": {"participants": 4, "messages_per_day": 1_000},
    "grid": {"loss": [0.0, 0.1]},
    "seeds": 2,
}
OTHER = GRID | {"seeds": 3}


def finished(number: int) -> Finished:
    """A run whose figures are its number, except for one that nothing gave."""
    figures = [float(number)] * len(Outcome._fields)
    outcome = Outcome(*figures)._replace(recovery_p50_s=math.nan)
    return Finished.of(number, 0.5, outcome)


def fill(directory: Path, numbers: Iterable[int]) -> None:
    """Add runs."""
    with opened_sweep(directory, GRID, "1") as writer:
        for number in numbers:
            writer.add(finished(number))


def test_runs_are_read_as_they_were_added(tmp_path: Path) -> None:
    """Also a figure that is NaN."""
    fill(tmp_path / "new", [2, 0])
    results = read_sweep(tmp_path / "new")
    assert list(results.runs) == [2, 0]
    assert results.outcomes[2].eventual == 2.0
    assert math.isnan(results.outcomes[2].recovery_p50_s)
    assert results.runs[0].cpu_s == 0.5


@pytest.mark.parametrize("cut", [1, 30])
def test_half_written_run_does_not_count(tmp_path: Path, cut: int) -> None:
    """It is removed before the next run is added."""
    fill(tmp_path, [0, 1])
    journal = tmp_path / "runs.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    assert list(read_sweep(tmp_path).runs) == [0]
    fill(tmp_path, [1, 2])
    assert list(read_sweep(tmp_path).runs) == [0, 1, 2]


@pytest.mark.parametrize("room", [0, 10])
def test_full_disk_is_explained(tmp_path: Path, room: int) -> None:
    """In one line; whole runs stay, also if a part of a line fits."""
    fill(tmp_path, [0])
    length = (tmp_path / "runs.jsonl").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (length + room, limits[1]))
        with pytest.raises(SweepRefused, match=r"cannot be used \(.+\): check --out"):
            fill(tmp_path, [1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(read_sweep(tmp_path).runs) == [0]


def test_table_does_not_depend_on_the_order_in_which_runs_finish(
    tmp_path: Path,
) -> None:
    """Equal bytes; a setting that no list has is that of the profile."""
    for name, order in (("a", [0, 1, 2, 3]), ("b", [3, 1, 0, 2])):
        fill(tmp_path / name, order)
        with opened_sweep(tmp_path / name, GRID, "1") as writer:
            writer.finish()
    first, second = (tmp_path / name / TABLE for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    rows = pq.read_table(first).to_pylist()
    columns = ("run", "seed", "plan_loss", "eventual")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (0, 1, 0.0, 0.0), (1, 2, 0.0, 1.0), (2, 1, 0.1, 2.0), (3, 2, 0.1, 3.0)
    ]  # fmt: skip
    assert rows[0]["plan_causal_history"] == 20
    assert rows[0]["recovery_p50_s"] is None
    page = (ROOT / "docs" / "planning.md").read_text("utf-8")
    for column in pq.read_schema(first).names:
        # The page names the mean of what a monitor measures, "and their percentiles".
        name = re.sub("^(monitor_.*)_p[0-9]+_s$", r"\1_mean_s", column)
        assert f"`{name.removeprefix('plan_')}`" in page, column


def test_directory_of_something_else_is_refused_and_left_as_it_is(
    tmp_path: Path,
) -> None:
    """Another grid, another version, no sweep, a damaged one."""
    fill(tmp_path / "sweep", [0])
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    for place, grid, version, told in (
        ("sweep", OTHER, "1", "has results of another grid: give another --out"),
        (
            "sweep",
            GRID,
            "2",
            "has results of sds-monitor 1, not of version 2: give another",
        ),
        (
            "photos",
            GRID,
            "1",
            "is not empty, and does not contain a sweep: give another --out",
        ),
    ):
        directory = tmp_path / place
        before = {path: path.read_bytes() for path in directory.iterdir()}
        with (
            pytest.raises(SweepRefused, match=told),
            opened_sweep(directory, grid, version),
        ):
            pass
        assert {path: path.read_bytes() for path in directory.iterdir()} == before
    with pytest.raises(SweepRefused, match="contains no results of a sweep"):
        read_sweep(tmp_path / "photos")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("grid.json", "{"),
        ("grid.json", '{"version": "1", "grid": {"seeds": 1}}'),
        ("runs.jsonl", "[0, 1\n"),
        ("runs.jsonl", "[0, 1.0, [1.0]]\n"),
    ],
)
def test_damaged_results_are_refused_in_one_line(
    tmp_path: Path, file: str, text: str
) -> None:
    """Also those of a release with other figures."""
    fill(tmp_path, [0])
    (tmp_path / file).write_text(text)
    with pytest.raises(SweepRefused) as refused:
        read_sweep(tmp_path)
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith("give another --out")


def test_grid_that_is_written_otherwise_is_the_same(tmp_path: Path) -> None:
    """It is compared by its plans."""
    fill(tmp_path, [0])
    same = GRID | {"grid": [{"loss": [0, 0.1]}]}
    with opened_sweep(tmp_path, same, "1") as writer:
        assert list(writer.results.runs) == [0]


def test_sweep_that_was_killed_at_once_begins_again(tmp_path: Path) -> None:
    """It has left a lock and the beginning of a grid."""
    (tmp_path / "lock").touch()
    (tmp_path / "grid.json.new").write_text("{")
    fill(tmp_path, [0])
    assert list(read_sweep(tmp_path).runs) == [0]


def test_directory_that_cannot_be_made_is_refused_in_one_line(tmp_path: Path) -> None:
    """A file is in its way."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(SweepRefused, match=r"cannot be used \(Not a directory\): check"),
        opened_sweep(tmp_path / "file" / "out", GRID, "1"),
    ):
        pass


def test_two_processes_do_not_write_at_a_time(tmp_path: Path) -> None:
    """The second is refused."""
    with (
        opened_sweep(tmp_path, GRID, "1"),
        pytest.raises(SweepRefused, match=r"another sweep writes to .*: wait until"),
        opened_sweep(tmp_path, GRID, "1"),
    ):
        pass
