"""``sds-monitor plan size``: table, JSON, and one line for what is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from benchmarks.measured import PERFORMANCE, SCALING
from streaming.cli import group
from tests.support.deployment import ROOT

USUAL = {"--channel-count": "1000", "--messages-per-second": "100"}


def invoke(*arguments: str, **changed: str) -> Result:
    """The command in this process, with some options changed."""
    options = USUAL | {f"--{k.replace('_', '-')}": v for k, v in changed.items()}
    words = [word for pair in options.items() for word in pair]
    return CliRunner().invoke(group, ["plan", "size", *words, *arguments])


def document(**changed: str) -> dict[str, object]:
    """The JSON object."""
    result = invoke("--format", "json", **changed)
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_table_has_needs_errors_and_limits() -> None:
    """Each figure with its error, and where one machine ends."""
    text = invoke().stdout
    assert text.startswith(
        "1,000 channels of 5 participants, 100 messages/s of 22.8 kB"
    )
    for words in (
        "CPU, busy cores",
        "batch on 2 cores",
        "checkpoint",
        "history, 30 days",
    ):
        (line,) = [one for one in text.splitlines() if one.startswith(f"  {words}")]
        assert line.rstrip().endswith(("%", "measured")), line
    assert "\nOne machine: 1 core suffices.\n" in text
    assert "a machine with 2 cores follows " in text
    assert "\nCluster: not needed.\n" in text
    assert "\nMeasured: sds-monitor " in text
    assert "Extrapolated" not in text


def test_documented_output_is_that_of_its_command() -> None:
    """A new measurement changes both."""
    page = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    command, sample = re.findall(
        r"^```sh\nsds-monitor (plan size .*)\n(?:.+\n)*?```\n\n```\n((?:.+\n)+?)```$",
        page,
        re.MULTILINE,
    )[0]
    printed = CliRunner().invoke(group, command.split()).stdout.splitlines()
    shown = [line for line in sample.splitlines() if line != "  ..."]
    assert len(shown) > 5
    assert [line for line in shown if line not in map(str.rstrip, printed)] == []


def test_a_load_beyond_one_machine_names_executors_or_the_remedy() -> None:
    """A load for more cores than were measured, and one for no number of cores."""
    text = invoke(messages_per_second="1000", channel_count="10000").stdout
    assert "One machine: 3 cores suffice (extrapolated)." in text
    assert "executors of one core and 684 MB beside the driver, extrapolated" in text
    text = invoke(messages_per_second="50000").stdout
    assert "One machine: no number of cores is enough" in text
    assert "Cluster: no number of executors is enough" in text
    assert "Extrapolated: more than was measured of frames in a batch" in text


def test_json_has_the_documented_keys() -> None:
    """docs/planning.md names every key."""
    page = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    found = document()
    inner = [one for one in found.values() if isinstance(one, dict)]
    limits = found["limits"]
    assert isinstance(limits, list)
    for part in (found, *inner, *limits):
        for key in part:
            assert f"`{key}`" in page, key
    assert [limit["cores"] for limit in limits] == [2, None]
    assert found["schema"] == 1
    assert found["extrapolated"] == []


def test_given_files_replace_the_shipped_ones(tmp_path: Path) -> None:
    """Twice the CPU time in the file is twice the cores."""
    run = json.loads(PERFORMANCE.read_text())
    table = json.loads(SCALING.read_text())
    for measure in run["measures"]:
        if measure["what"].endswith(", CPU") or measure["row"].endswith(", CPU"):
            measure["values"] = [2 * value for value in measure["values"]]
    for size in table["runs"]["sizes"]:
        size["jvm_us"] *= 2
        size["python_us"] *= 2
    performance, scaling = tmp_path / "performance.json", tmp_path / "scaling.json"
    performance.write_text(json.dumps(run))
    scaling.write_text(json.dumps(table))
    before = document()["needs"]
    after = document(performance=str(performance), scaling=str(scaling))["needs"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert after["cpu_cores"] == pytest.approx(2 * before["cpu_cores"], rel=1e-3)
    assert after["memory_bytes"] == before["memory_bytes"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--channel-count", "0"),
        ("--channel-count", "-5"),
        ("--channel-count", "1e30"),
        ("--channel-count", "1000001"),
        ("--messages-per-second", "0"),
        ("--messages-per-second", "-1"),
        ("--messages-per-second", "1000000"),
        ("--participants", "0"),
        ("--participants", "1000000"),
        ("--memory-hours", "-1"),
        ("--memory-hours", "1e9"),
        ("--frame-bytes", "0"),
        ("--trigger", "0"),
        ("--history-days", "0"),
        ("--performance", "no-such-file"),
        ("--performance", "README.md"),
        ("--scaling", "streaming/cli/measured/performance.json"),
    ],
)
def test_bad_input_is_one_line(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong use, and the line names the option or the file."""
    monkeypatch.chdir(ROOT)
    words = [word for pair in (USUAL | {option: value}).items() for word in pair]
    arguments = ["plan", "size", *words]
    result = CliRunner().invoke(group, arguments, standalone_mode=False)
    error = result.exception
    assert isinstance(error, click.UsageError), error
    assert (error.exit_code, result.stdout) == (2, "")
    (line,) = error.format_message().splitlines()
    assert option in line or value in line


def test_wrong_use_ends_the_program_with_2() -> None:
    """One line, as a program sees it."""
    words = ["--channel-count", "0", "--messages-per-second", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "streaming.cli", "plan", "size", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "--channel-count" in line


def test_run_without_a_row_is_one_line(tmp_path: Path) -> None:
    """The line names the row."""
    run = json.loads(PERFORMANCE.read_text())
    run["measures"] = [m for m in run["measures"] if m["row"] != "an hour"]
    path = tmp_path / "performance.json"
    path.write_text(json.dumps(run))
    result = invoke(performance=str(path))
    assert result.exit_code == 2
    lacking = "the measurements do not contain an hour: catch-up of 60 min"
    assert lacking in result.output


def test_required_options_are_named() -> None:
    """Without channels there is nothing to size."""
    result = CliRunner().invoke(group, ["plan", "size"])
    assert result.exit_code == 2
    assert "--channel-count" in result.output
