"""``sds-monitor plan sweep``: a kill in the middle, the summary, and bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from connectors.sweep_results import TABLE, Finished, opened_sweep
from streaming.cli import group
from tests.support.deployment import ROOT
from tests.support.planning.sweeps import GRID, TEXT, killed_after_a_run, simulated_here


def invoke(*arguments: object) -> Result:
    """The command in this process."""
    words = ["plan", "sweep", *map(str, arguments)]
    return CliRunner().invoke(group, words, standalone_mode=False)


def assert_refused(result: Result, told: str) -> None:
    """One line with the reason, exit code 2, no output."""
    error = result.exception
    assert isinstance(error, click.UsageError), error
    assert (error.exit_code, result.stdout) == (2, "")
    (line,) = error.format_message().splitlines()
    assert told in line


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
def test_killed_sweep_continues_with_the_runs_that_it_lacks(tmp_path: Path) -> None:
    """The table has the same bytes as that of one process without Spark."""
    (tmp_path / "grid.toml").write_text(TEXT)
    command = [
        *(sys.executable, "-m", "streaming.cli", "plan", "sweep", "grid.toml"),
        *("--out", "killed", "--master", "local[2]"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    journal = tmp_path / "killed" / "runs.jsonl"
    first = killed_after_a_run(command, tmp_path, environment, "killed")
    runs = GRID["seeds"] * 4
    assert first.count(b"\n") < runs
    assert not (tmp_path / "killed" / TABLE).exists()
    with journal.open("ab") as file:
        file.write(b"[0,1.0,[1.0,")
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"{runs} runs, " in done.stderr
    assert journal.read_bytes().startswith(first[: first.rfind(b"\n") + 1])
    assert journal.read_bytes().count(b"\n") == runs
    simulated_here(tmp_path / "here")
    expected = (tmp_path / "here" / TABLE).read_bytes()
    assert (tmp_path / "killed" / TABLE).read_bytes() == expected


def test_summary_has_a_row_for_each_plan(tmp_path: Path) -> None:
    """Also of a sweep that is not finished; figures without a value have a dash."""
    simulated_here(tmp_path, runs=3)
    page = tmp_path / "page.html"
    result = invoke("--summary", "--out", tmp_path, "--html", page)
    lines = result.stdout.splitlines()
    html = page.read_text()
    assert html.count('class="heat heat-') == 5 * 4
    assert "loss, by causal_history" in html
    assert lines[0].split()[:4] == ["loss", "causal_history", "runs", "first_pass"]
    assert lines[1].split()[:5] == ["0", "2", "2", "1", "1"]
    assert lines[1].split()[5:7] == ["-", "-"]
    assert lines[2].split()[:3] == ["0", "20", "1"]
    assert lines[3].split() == ["0.3", "2", "0", "-", "-", "-", "-", "-"]
    assert lines[5].startswith("3 of 8 runs; means with the half width of their 95 %")
    answer = invoke(
        *("--summary", "--out", tmp_path, "--figure", "eventual", "--format", "json")
    )
    document = json.loads(answer.stdout)
    page = (ROOT / "docs" / "planning.md").read_text("utf-8")
    cell = document["cells"][0]
    for key in (*document, *cell, *cell["figures"]["eventual"]):
        assert f"`{key}`" in page, key
    assert (document["runs"], document["finished"]) == (8, 3)
    assert cell["values"] == {"loss": 0.0, "causal_history": 2}
    assert cell["figures"] == {"eventual": {"value": 1.0, "low": 1.0, "high": 1.0}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TEXT.replace("loss", "lost"), "grid.toml: the table has no key 'lost'"),
        (TEXT.replace("[0.0, 0.3]", "[]"), "grid.toml: grid.loss is an empty list"),
        (TEXT.replace("= 2\n", "= 10000\n"), "grid.toml: grid needs 40,000 runs, but"),
        ("seeds =", "grid.toml: is not TOML"),
    ],
)
def test_invalid_grid_gives_one_line_and_writes_nothing(
    tmp_path: Path, text: str, told: str
) -> None:
    """Exit code 2, before Spark starts."""
    (tmp_path / "grid.toml").write_text(text)
    refused = invoke(tmp_path / "grid.toml", "--out", tmp_path / "out")
    assert_refused(refused, told)
    assert not (tmp_path / "out").exists()


def test_directory_of_another_grid_is_left_as_it_is(tmp_path: Path) -> None:
    """Exit code 2."""
    (tmp_path / "grid.toml").write_text(TEXT)
    out = tmp_path / "out"
    with opened_sweep(out, GRID | {"seeds": 1}, "0") as writer:
        writer.add(Finished(0, 1.0, []))
    before = sorted(path.name for path in out.iterdir())
    told = "out has results of sds-monitor 0, not of version "
    assert_refused(invoke(tmp_path / "grid.toml", "--out", out), told)
    assert sorted(path.name for path in out.iterdir()) == before


def test_wrong_use_says_what_to_give(tmp_path: Path) -> None:
    """No grid, no results, an unknown figure."""
    assert_refused(
        invoke("--out", tmp_path), "give GRID (a TOML file), --summary or --html"
    )
    told = (
        f"{tmp_path} contains no results of a sweep: give the --out directory of a "
        "sweep"
    )
    assert_refused(invoke("--summary", "--out", tmp_path), told)
    unknown = invoke("--summary", "--out", tmp_path, "--figure", "eventul")
    assert_refused(unknown, "'eventul' is not a figure (did you mean 'eventual'?)")
    (tmp_path / "grid.toml").write_text(TEXT)
    late = invoke(
        *(tmp_path / "grid.toml", "--out", tmp_path / "none"),
        *("--summary", "--figure", "eventul"),
    )
    assert_refused(late, "'eventul' is not a figure")
    assert not (tmp_path / "none").exists()
