"""What is wrong with a machine, each seen where it is so."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sds_core.observer.blob import UnknownBlobVersion
from streaming.checkpoint import check_identity, locked_checkpoint, record_start
from streaming.cli import group
from streaming.damage import LEDGER
from streaming.doctor.findings import checked
from streaming.doctor.machine import find_full_disks, find_short_memory
from streaming.doctor.services import find_expiring
from streaming.history import locked_history
from streaming.ledger.ledger import Ledger
from tests.support.cli.command import sds_monitor
from tests.support.small_disk import needs_root, small_disk
from tests.support.tls import Authority


def test_heap_larger_than_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark reads it, in each of its forms."""
    for arguments in (
        "--driver-memory 900t pyspark-shell",
        "--conf spark.driver.memory=900T pyspark-shell",
        "--driver-memory=943718400g pyspark-shell",
    ):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        (finding,) = find_short_memory()
        assert "its heap of 943,718,400 MiB" in finding or "966,367" in finding
        assert "PYSPARK_SUBMIT_ARGS" in finding


def test_open_quote_in_the_arguments_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark could not start with it."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf 'spark.app.name=a pyspark-shell")
    (finding,) = find_short_memory()
    assert finding.startswith("PYSPARK_SUBMIT_ARGS cannot be read (No closing quotat")


def test_small_container_is_found(tmp_path: Path) -> None:
    """Its limit counts, if it has one."""
    limit = tmp_path / "memory.max"
    limit.write_text("536870912\n")
    (finding,) = find_short_memory(tmp_path)
    assert finding.startswith("512 MiB of memory are free, and a job takes 2,048 MiB")
    limit.write_text("max\n")
    assert not any("512 MiB" in one for one in find_short_memory(tmp_path))


@needs_root
def test_full_disk_and_forbidden_execution_are_found(tmp_path: Path) -> None:
    """Of a directory that does not exist, its nearest parent counts."""
    with small_disk(tmp_path / "small", "2m", "noexec") as full:
        state = full / "no" / "state"
        disk, scratch, noexec = find_full_disks({"--checkpoint": state}, full)
    assert disk.startswith(f"2 MiB are free for {state}, and 1,024 MiB are needed")
    assert "set --checkpoint" in disk
    assert "set TMPDIR" in scratch
    assert "noexec" in noexec
    assert not list(find_full_disks({"--checkpoint": tmp_path}, tmp_path))


def ended(*flags: str) -> Result:
    """The command in this process, with Kafka that does not answer."""
    kafka = ("--bootstrap", "127.0.0.1:1", "--kafka-timeout", "1")
    result = CliRunner().invoke(group, ["doctor", *kafka, *flags])
    assert result.exit_code == 1, result.output
    return result


def doctor(directory: Path, *flags: str) -> dict[str, list[str]]:
    """The findings of each check."""
    text = ended("--checkpoint", str(directory), "--format", "json", *flags).stdout
    return {one["check"]: one["findings"] for one in json.loads(text)["checks"]}


def test_everything_that_is_wrong_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java, port, checkpoint of a running job, Kafka, Prometheus, Alertmanager."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with locked_checkpoint(tmp_path):
            found = doctor(
                tmp_path,
                *("--metrics-port", str(port)),
                *("--prometheus", "http://127.0.0.1:1"),
                *("--alertmanager", "http://127.0.0.1:1"),
            )
    assert "Java 17 or newer is needed" in found["java"][0]
    assert found["port"] == [f"port {port} is in use: choose another"]
    assert "another job runs on checkpoint" in found["checkpoint"][0]
    assert "cannot be reached" in found["kafka"][0]
    assert "Prometheus does not answer at" in found["prometheus"][0]
    assert "Alertmanager does not answer" in found["alertmanager"][0]
    # Without Kafka, nothing of it can be checked.
    assert "topics" not in found


def test_certificates_of_the_web_configuration_are_checked(tmp_path: Path) -> None:
    """The page must not be out of reach one morning."""
    until = datetime.now(UTC) + timedelta(days=3)  # noqa: TID251 - as certificates have
    Authority(tmp_path).issue("localhost", until=until)
    config = tmp_path / "web.yml"
    config.write_text(
        "tls_server_config: {cert_file: localhost.pem, key_file: localhost.key}"
    )
    state = tmp_path / "state"
    (finding,) = doctor(state, "--web-config", str(config))["certificates"]
    assert f"localhost.pem expires on {until:%Y-%m-%d}: renew it" in finding
    assert finding.endswith("as cert_file of --web-config")


def test_nothing_is_made_for_a_new_checkpoint(tmp_path: Path) -> None:
    """The text names each check."""
    result = ended("--checkpoint", str(tmp_path / "state"), "--metrics-port", "0")
    assert "ok       checkpoint\nFINDING  kafka: Kafka at 127.0.0.1:1" in result.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("below", ["", "state"])
def test_link_that_leads_nowhere_is_found(tmp_path: Path, below: str) -> None:
    """A job could not create its checkpoint there, although nothing seems to exist."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "unmounted")
    (finding,) = doctor(link / below)["checkpoint"]
    assert f"the link {link} leads to {tmp_path}/unmounted, which does" in finding


def test_few_descriptors_are_found() -> None:
    """The hard limit counts: the soft one is raised."""
    program = (
        "from streaming.doctor.machine import find_few_descriptors; "
        "print(*find_few_descriptors())"
    )
    limited = f"ulimit -n {{}}; exec {sys.executable} -c '{program}'"
    few, enough = (
        subprocess.check_output(["sh", "-c", limited.format(limit)], text=True)
        for limit in (1_000, 1_024)
    )
    assert few.startswith("a process may open 1,000 files, and a job needs 1,024")
    assert enough.strip() == ""


@needs_root
def test_files_of_another_user_are_found(tmp_path: Path) -> None:
    """As after a start by root by mistake."""
    with locked_checkpoint(tmp_path):
        record_start(tmp_path, check_identity(tmp_path, "sds.frames", False, False), ())
    os.chown(tmp_path / "monitor" / "job.json", 54321, 54321)
    (finding,) = doctor(tmp_path)["checkpoint"]
    assert "job.json belongs to user 54321, and this is user root" in finding


def test_checkpoint_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    """By `run` too, before Spark starts, in one line."""
    with locked_checkpoint(tmp_path):
        record_start(tmp_path, check_identity(tmp_path, "sds.frames", False, False), ())
    path = tmp_path / "monitor" / "job.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"state_versions": {"sds": 99, "new": 1}}))
    (finding,) = doctor(tmp_path)["checkpoint"]
    assert "has state of version 99" in finding
    flags = ("--bootstrap", "127.0.0.1:1", "--checkpoint", str(tmp_path))
    result = sds_monitor("run", *flags)
    assert result.returncode == 2
    assert result.stderr.splitlines() == [f"sds-monitor: {finding}"]


def test_ledger_of_a_newer_release_is_refused_and_stays(tmp_path: Path) -> None:
    """Not a byte of it changes."""
    with locked_checkpoint(tmp_path):
        identity = check_identity(tmp_path, "sds.frames", False, False)
        record_start(tmp_path, identity, [LEDGER])
    path = tmp_path / "monitor" / LEDGER
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE of_tomorrow (x)")
        connection.execute("PRAGMA user_version = 2")
    before = path.read_bytes()
    (finding,) = doctor(tmp_path)["checkpoint"]
    assert "version 2" in finding
    with pytest.raises(UnknownBlobVersion):
        Ledger(path, expected=True)
    assert path.read_bytes() == before


def test_empty_directory_stays_empty(tmp_path: Path) -> None:
    """If it is another user's, a lock of this one would shut the owner out."""
    state = tmp_path / "state"
    state.mkdir()
    assert not doctor(state)["checkpoint"]
    assert not list(state.iterdir())


@needs_root
def test_directories_that_exist_must_be_writable(tmp_path: Path) -> None:
    """As those of a service that root has made."""
    with small_disk(tmp_path / "fixed", "1m", "ro") as fixed:
        (finding,) = doctor(fixed)["checkpoint"]
        assert finding.startswith(f"checkpoint {fixed} cannot be written to")
        flags = ("--history", str(fixed))
        (finding,) = doctor(tmp_path / "new", *flags)["checkpoint"]
        assert finding.startswith(f"history {fixed} cannot be written to")


def test_file_in_the_way_of_a_directory_is_found(tmp_path: Path) -> None:
    """Even if it is executable, as directories are."""
    program = tmp_path / "program"
    program.touch(0o755)
    (finding,) = doctor(program / "state")["checkpoint"]
    assert finding.startswith(f"checkpoint {program / 'state'} cannot be written to")


def test_history_of_a_running_job_is_found(tmp_path: Path) -> None:
    """For a new checkpoint too; a history without a lock gets none."""
    history = tmp_path / "history"
    history.mkdir()
    flags = ("--history", str(history))
    assert not doctor(tmp_path / "new", *flags)["checkpoint"]
    assert not list(history.iterdir())
    with locked_history(history):
        (finding,) = doctor(tmp_path / "new", *flags)["checkpoint"]
    assert finding.startswith(f"another job writes to history {history}")
    assert not (tmp_path / "new").exists()


def test_check_that_fails_is_a_finding() -> None:
    """The others are made, and `run` starts."""

    def fail() -> list[str]:
        return [{}["authorized_operations"]]

    (finding,) = checked("topics", fail).findings
    assert "the check failed (KeyError('authorized_operations'))" in finding


def test_list_of_authorities_may_have_old_ones(tmp_path: Path) -> None:
    """As those of a system have; a file that is none is a finding."""
    now = datetime.now(UTC)  # noqa: TID251 - as certificates have
    old = Authority(tmp_path).issue("old", until=now + timedelta(days=1))
    new = Authority(tmp_path).issue("new")
    both = tmp_path / "both.pem"
    both.write_bytes(
        old.certificate_file.read_bytes() + new.certificate_file.read_bytes()
    )
    now_ms = int(now.timestamp() * 1000)
    assert not list(find_expiring({"--kafka-ca-file": str(both)}, now_ms))
    assert list(find_expiring({"--kafka-certificate-file": str(both)}, now_ms))
    both.write_text("-----BEGIN CERTIFICATE-----")
    (finding,) = find_expiring({"--kafka-ca-file": str(both)}, now_ms)
    assert finding.endswith("check --kafka-ca-file")


def test_table_of_run_holds_for_the_doctor(tmp_path: Path) -> None:
    """Its own table overrides it."""
    file = tmp_path / "monitor.toml"
    file.write_text(
        f'[run]\ncheckpoint = "{tmp_path}/a"\nmetrics-port = 1\nprometheus = "http://127.0.0.1:1"\n'
        "[doctor]\nmetrics-port = 0\n"
    )
    result = ended("--config", str(file))
    assert "ok       port" in result.stdout
    assert "FINDING  prometheus" in result.stdout
