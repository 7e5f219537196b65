"""``sds-monitor plan what-if``: tables, JSON, and one line for what is wrong."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from connectors.history.schema import Row
from connectors.web.app import create_app
from connectors.web.sources import Sources
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.planning import estimates
from sds_core.planning.channel import ChannelPlan
from sds_core.planning.hours import HOUR_MS
from sds_core.planning.outcome import Outcome
from sds_core.planning.what_if import closed_figures
from streaming.cli import group, tables
from streaming.cli.actions import plan_what_if
from streaming.cli.actions.plan_runs import run_all
from tests.support.planning.stored import store
from tests.support.planning.watched import START_MS, rows_of
from tests.support.snapshots import snapshot_of
from tests.support.web.stored import stored

HOURS = 4
MEASURED = ChannelPlan(participants=2, messages_per_day=2_000, loss=0.1)
PLAN = 'participants = 2\nmessages_per_day = 4320\nloss = 0.1\nprofile = "nim_sds"\n'


def invoke(*arguments: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(group, ["plan", "what-if", "--seeds", "2", *arguments])


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history has just ended."""
    end_ms = START_MS + HOURS * HOUR_MS
    monkeypatch.setattr(plan_what_if, "wall_ms", lambda: end_ms)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two channels: of `town` some hours, of `village` one message."""
    rows = rows_of(MEASURED, HOURS, seed=1)
    many = [row | {"channel": "town"} for row in rows]
    few = [row | {"channel": "village", "messages": 1} for row in rows]
    directory = tmp_path_factory.mktemp("plan") / "history"
    return store(directory, {"town": many, "village": few})


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    """A described channel, small enough for a second."""
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def test_measured_channel_stands_beside_its_variants(history: Path) -> None:
    """With what was assumed, and the change from the base."""
    result = invoke(
        "--history", str(history), "--channel", "town",
        "--set", "causal_history=2", "--variant", "crowd:participants=2x,loss=0.2",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    title, changed, crowd, heading, *lines = result.stdout.splitlines()
    assert title.startswith("2 participants, ")
    assert title.endswith(" % loss, profile default")
    assert changed == "changed: causal_history = 2"
    assert crowd == "crowd: participants = 2x, loss = 0.2"
    assert heading.split() == ["measured", "base", "changed", "crowd"]
    assert lines[0].split("  ")[1] == "bytes a day ~"
    first = next(line for line in lines if "delivered at first =" in line)
    assert first.endswith("80.00 %  ")
    assert any(line.split()[:4] == ["change", "from", "the", "base"] for line in lines)
    assert "bytes a frame with content =" in result.stdout
    assert "The history does not store delays" in lines[-2]
    assert "3 simulations" not in result.stdout


def test_json_has_sources_and_intervals(plan_file: Path) -> None:
    """Every figure of each plan; null and no bar where nothing happened."""
    page = plan_file.with_name("page.html")
    result = invoke(
        "--html", str(page),
        "--plan", str(plan_file), "--assume", "loss=0", "--set", "messages_per_day=2x",
        "--format", "json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    assert document["schema"] == 1
    assert document["measured"] is None
    base, changed = (document["plans"][name] for name in ("base", "changed"))
    assert base["settings"]["loss"] == 0
    assert base["settings"]["causal_history"] == 10
    assert changed["changes"] == {"messages_per_day": "2x"}
    assert changed["settings"]["messages_per_day"] == 8_640
    first = base["figures"]["first_pass"]
    assert first == {
        "source": "closed form", "value": 1, "low": 1, "high": 1, "change": None
    }  # fmt: skip
    assert base["figures"]["recovery_mean_s"]["value"] is None
    sent = changed["figures"]["content_bytes_per_day"]
    assert sent["source"] == "simulated"
    assert sent["low"] <= sent["value"] <= sent["high"]
    assert sent["change"]["low"] > 0
    assert base["figures"].keys() == changed["figures"].keys()
    html = page.read_text()
    assert html.count('<th scope="row">changed</th>') == html.count("<table>")
    nothing = html[html.index("recovered after, p50") :]
    assert "<svg" not in nothing[: nothing.index("</figure>")]


def test_figure_that_is_only_sometimes_closed_has_the_mark_of_both(
    plan_file: Path,
) -> None:
    """The share of first deliveries has no formula if participants are offline."""
    found = invoke("--plan", str(plan_file), "--variant", "away:offline_share=0.5")
    assert "delivered at first ≈" in found.output
    assert "delivered in the end ~" in found.output
    assert "bytes a frame with content =" in found.output


def test_running_monitor_gives_the_same_plan(
    history: Path, serve: Callable[[ASGIApp], str]
) -> None:
    """As its history does."""
    rows = rows_of(MEASURED, HOURS, seed=1)
    snapshot = snapshot_of(
        primed=True,
        channels={"town": ChannelTotals()},
        # The last hour of the history is not whole either.
        clock_ms=START_MS + HOURS * HOUR_MS - 1,
    )

    def find(
        channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> list[Row]:
        return [row for row in rows if since_ms <= row["minute"] < until_ms]

    sources = Sources(lambda: snapshot, stored(find_minutes=find), Path())
    url = serve(create_app(sources, CollectorRegistry()))
    documents = []
    for given in (("--api", url), ("--history", str(history), "--channel", "town")):
        result = invoke(*given, "--format", "json")
        assert result.exit_code == 0, result.output
        documents.append(json.loads(result.stdout))
    by_api, by_history = documents
    assert by_api["measured"]["figures"]["monitor_first_pass"] > 0.8
    assert by_api["measured"]["figures"] == by_history["measured"]["figures"]
    assert by_api["plans"] == by_history["plans"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--set", "loss"), "--set is 'loss': use KEY=VALUE"),
        (("--set", "loss=2"), "changed: loss is 2: allowed is a number from 0 to 1"),
        (
            ("--assume", "messages_per_day=0"),
            "--assume: messages_per_day is 0: allowed is a number from 1 to 500000",
        ),
        (("--set", "los=2"), "changed: los is not a setting (did you mean 'loss'?): "),
        (
            ("--set", "loss=0", "--set", "loss=1"),
            "--set has 'loss' twice: give one value",
        ),
        (
            ("--variant", "a b:loss=0"),
            "--variant is 'a b:loss=0': use NAME:KEY=VALUE,KEY=VALUE",
        ),
        (
            ("--variant", "base:loss=0"),
            "--variant base: this name is in use; give another name",
        ),
        (
            [word for n in range(21) for word in ("--variant", f"v{n}:loss=0")],
            "21 variants are given, but at most 20 are allowed",
        ),
    ],
)
def test_wrong_change_is_one_line(
    plan_file: Path, arguments: tuple[str, ...], line: str
) -> None:
    """With exit code 2, before anything is simulated."""
    assert _error("--plan", str(plan_file), *arguments).startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("participants = 2", "the table lacks the key 'messages_per_day'"),
        (PLAN + "losses = 1", "the table has no key 'losses' (did you mean 'loss'?)"),
        (
            "participants = 2\nmessages_per_day = nan",
            "messages_per_day is nan: allowed is a number from 1 to 500000",
        ),
        ("participants =", "is not TOML"),
    ],
)
def test_wrong_file_is_one_line(plan_file: Path, text: str, line: str) -> None:
    """With its name."""
    plan_file.write_text(text)
    error = _error("--plan", str(plan_file))
    assert error.startswith(f"{plan_file}")
    assert line in error


def test_history_without_a_plan_is_one_line(history: Path, tmp_path: Path) -> None:
    """Too little traffic, no channel, or several."""
    given = ("--history", str(history))
    assert _error(*given) == (
        "the history has 2 channels, such as town, village: give one with --channel"
    )
    assert _error(*given, "--channel", "village").startswith(
        "no plan for 'village': 0 messages of 2 participants in 2 hours of history, "
    )
    assert _error(*given, "--channel", "twon") == (
        "no such channel: 'twon' (did you mean 'town'?)"
    )
    empty = store(tmp_path / "empty", {})
    assert _error("--history", str(empty)).startswith("no ")
    assert _error(*given, "--plan", __file__) == (
        "--plan describes the channel: omit --history"
    )


def test_page_defines_all_keys_and_figures() -> None:
    """Each in a table of its section, by its name."""
    page = Path("docs/planning.md").read_text(encoding="utf-8")
    section = page.partition("## What if\n")[2].partition("\n## ")[0]
    names = set(re.findall(r"`([a-z0-9_]+)`", section))
    figures = {
        name
        for name in (*Outcome._fields, *closed_figures(MEASURED))
        if not re.fullmatch(r"monitor_(ack|recovery)_p\d\d_s", name)
    }
    assert set(ChannelPlan.__struct_fields__) - names == set()
    assert figures - names == set()


def _error(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = [one for one in result.stderr.splitlines() if one.startswith("Error: ")]
    return line.removeprefix("Error: ")


def test_interrupt_ends_it_without_a_traceback(plan_file: Path) -> None:
    """Ctrl-C reaches the command and its processes."""
    command = [sys.executable, "-m", "streaming.cli", "plan", "what-if"]
    process = subprocess.Popen(
        [*command, "--plan", str(plan_file), "--seeds", "1000"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert "simulations" in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == ""
    assert "Traceback" not in err


def test_measured_epoch_is_a_share_of_the_assumed_budget(history: Path) -> None:
    """Also if it is not 100; no variant takes the name of the column."""
    arguments = ("--history", str(history), "--channel", "town", "--format", "json")
    result = invoke(*arguments, "--assume", "epoch_messages=50")
    known = json.loads(result.stdout)["measured"]["figures"]
    assert known["epoch_used"] == pytest.approx(known["epoch_messages"] / 50)
    taken = invoke(*arguments, "--variant", "measured:loss=0.2")
    assert taken.exit_code == 2
    assert "--variant measured: this name is in use" in taken.stderr


def test_progress_is_logged_while_simulations_run(
    plan_file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If standard error is no terminal."""
    caplog.set_level(logging.INFO, logger="sds-monitor")
    monkeypatch.setattr(tables, "_LOG_EVERY_S", 0)
    invoke("--plan", str(plan_file))
    assert caplog.messages == ["1 of 2 simulations", "2 of 2 simulations"]


def test_wrong_use_is_found_before_the_simulations(
    plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page in a file, and a missing package."""
    page = invoke("--plan", str(plan_file), "--html", str(plan_file / "page.html"))
    monkeypatch.setattr(estimates, "find_spec", lambda name: None)
    package = invoke("--plan", str(plan_file))
    for result, line in (
        (page, "is not a writable directory"),
        (package, "need statsmod"),
    ):
        assert result.exit_code == 2
        assert line in result.stderr
        assert "simulations" not in result.stderr


def test_process_that_ends_ends_the_command() -> None:
    """It does not wait for the run of that process."""
    plans = {"base": ChannelPlan(participants=2, messages_per_day=4_320)}

    def end() -> None:
        for worker in active_children():
            worker.kill()

    with pytest.raises(
        click.ClickException, match="was killed, perhaps because memory"
    ):
        run_all(plans, range(1, 21), end)
