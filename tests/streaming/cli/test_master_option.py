"""Where a job runs: ``--master``, and what is refused before Spark starts."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from streaming.cli import group
from streaming.cli.actions import replay
from streaming.cli.config_file import config_option
from streaming.cli.reading_options import ReadingSettings, reading_options
from streaming.settings import SessionSettings

found: list[ReadingSettings] = []


@click.command("ask")
@config_option
@reading_options
def ask(reading: ReadingSettings) -> None:
    """A command that keeps what it was given."""
    found.append(reading)


def asked(*flags: str, **environment: str) -> Result:
    """Call the command."""
    found.clear()
    return CliRunner().invoke(ask, flags, env=environment)


def called(*arguments: str) -> Result:
    """Call sds-monitor up to where it would start."""
    return CliRunner().invoke(group, arguments)


def test_job_runs_on_this_machine_by_default() -> None:
    """With two workers that read, as before."""
    assert asked().exit_code == 0
    assert found[0].session == SessionSettings("local[*]")
    assert not found[0].session.is_cluster
    assert found[0].tasks == 2


def test_master_can_stand_in_the_file_of_settings(tmp_path: Path) -> None:
    """A cluster's cores all read, unless told otherwise."""
    path = tmp_path / "monitor.toml"
    path.write_text('master = "spark://a:7077,b:7077"\n')
    assert asked("--config", str(path)).exit_code == 0
    assert found[0].session.master == "spark://a:7077,b:7077"
    assert found[0].session.is_cluster
    assert found[0].tasks == 0
    asked("--config", str(path), "--read-tasks", "6")
    assert found[0].tasks == 6


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[3]",
        "local[*,2]",
        "spark://[::1]:7077",
        "k8s://https://x",
        "yarn",
    ],
)
def test_known_form_of_a_master_is_accepted(master: str) -> None:
    """Those that Spark documents."""
    assert asked("--master", master).exit_code == 0


@pytest.mark.parametrize(
    "master",
    ["", "spark://host", "host:7077", "local[0]", "spark://a:1/x", "mesos://a"],
)
def test_unknown_form_of_a_master_is_refused_in_one_line(master: str) -> None:
    """With the value, and examples."""
    result = asked("--master", master)
    assert result.exit_code == 2
    assert (
        "is not a Spark master: use a master such as local[*], spark://HOST:7077"
        in result.output
    )
    assert repr(master) in result.output or f'"{master}"' in result.output


def test_master_is_that_of_spark_submit() -> None:
    """Two masters would contradict each other."""
    submitted = {"PYSPARK_GATEWAY_PORT": "1"}
    assert asked(**submitted).exit_code == 0
    assert found[0].session.master is None
    assert found[0].session.is_cluster
    result = asked("--master", "local[2]", **submitted)
    assert result.exit_code == 2
    assert "spark-submit sets the master" in result.output


@pytest.mark.parametrize("url", ["s3a://bucket/state", "HDFS://name:8020/state"])
@pytest.mark.parametrize("flag", ["--checkpoint", "--history"])
def test_directory_in_an_object_store_is_refused_in_one_line(
    flag: str, url: str
) -> None:
    """Otherwise a directory of that name would be made here."""
    result = called("run", "--bootstrap", "b:1", "--checkpoint", "state", flag, url)
    assert result.exit_code == 2
    assert "mount a shared file system, and give the path" in result.output


def test_replay_on_a_cluster_asks_for_a_shared_directory() -> None:
    """Its checkpoint would be among the temporary files of the driver."""
    window = ("--from", "2026-11-21T08:00:00Z", "--to", "2026-11-21T09:00:00Z")
    cluster = ("--bootstrap", "b:1", "--master", "spark://a:7077")
    result = called("replay", *cluster, *window, "--report", "r.json")
    assert result.exit_code == 2
    assert "a cluster needs --scratch" in result.output


def test_scratch_that_cannot_be_written_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before Spark starts."""
    monkeypatch.setattr(replay, "warn_of_deleted_records", lambda *_: None)
    monkeypatch.setattr(replay, "_holds_records", lambda *_: True)
    window = ("--bootstrap", "b:1", "--from", "1", "--to", "2", "--report", "r.json")
    result = called("replay", *window, "--scratch", "/proc")
    assert result.exit_code == 2
    assert "scratch /proc cannot be written to" in result.output
