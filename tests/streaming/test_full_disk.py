"""A full disk under each writer: one line, which says where."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from streaming.cli.exit_codes import Failed
from streaming.cli.output import write_json
from streaming.damage import write_atomically
from streaming.failure import JobFailed
from streaming.job import running_job
from streaming.ledger.ledger import Ledger
from tests.support.cli.command import sds_monitor
from tests.support.interposed.library import made_library
from tests.support.small_disk import fill, needs_root, small_disk
from tests.support.streaming.jobs import job_settings, wait_for_end
from tests.support.streaming.records import a_frame, produce

MORE_SPACE = "free space on this disk, and start again: finished batches are not lost"


def test_output_on_a_full_disk_is_one_line() -> None:
    """Python does not report it a second time when it ends."""
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "streaming.cli", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 4
    line = f"sds-monitor: output: No space left on device; {MORE_SPACE}"
    assert ended.stderr.splitlines() == [line]


@needs_root
def test_error_of_a_full_disk_names_the_file(tmp_path: Path) -> None:
    """Of files that are replaced, as reports, and of the ledger, which stays sound."""
    with small_disk(tmp_path / "disk", "1m") as disk:
        ledger = Ledger(disk / "ledger.sqlite")
        ledger.write("CREATE TABLE filler (content BLOB)")
        ledger.write("INSERT INTO filler VALUES (?)", bytes(1_000))
        fill(disk)
        report = disk / "report.json"
        writers: list[tuple[Path, Callable[[], None]]] = [
            (
                disk / "ledger.sqlite",
                lambda: ledger.write("INSERT INTO filler VALUES (?)", bytes(500_000)),
            ),
            (report, lambda: write_atomically(report, "x" * 10_000)),
        ]
        for path, write in writers:
            with pytest.raises(OSError, match="No space left on device") as caught:
                write()
            assert caught.value.errno == errno.ENOSPC
            assert caught.value.filename == str(path)
        assert list(disk.glob("report*")) == []
        (disk / "filler").unlink()
        ledger.write("INSERT INTO filler VALUES (?)", b"more")
        assert ledger.value("SELECT count(*) FROM filler") == 2


@needs_root
def test_command_on_a_full_disk_fails_with_the_remedy(tmp_path: Path) -> None:
    """With code 4: the same command works once there is space."""
    (tmp_path / "grid.toml").write_text(
        "seeds = 1\n[base]\nparticipants = 2\nmessages_per_day = 10\n"
        "[grid]\nloss = [0.1]\n"
    )
    with small_disk(tmp_path / "disk", "1m") as disk:
        fill(disk)
        for arguments in (
            f"audit serve --bootstrap 127.0.0.1:1 --metrics-port 0 --state {disk}/made",
            "plan size --channel-count 1 --messages-per-second 1 "
            f"--html {disk}/size.html",
            f"plan sweep {tmp_path}/grid.toml --out {disk}/sweep",
        ):
            ended = sds_monitor(*arguments.split())
            assert ended.returncode == 4, ended.stderr
            (line,) = ended.stderr.splitlines()
            assert "No space left on device" in line
            assert "free space on this disk" in line
        report = disk / "report.json"
        with pytest.raises(Failed, match=f"{report}.*; free space on this disk"):
            write_json({"filler": "x" * 10_000}, report, "report")


def test_used_up_quota_is_a_full_disk(tmp_path: Path) -> None:
    """Of SQLite, which says that the disk fails, although others have space there."""
    (tmp_path / "quota").mkdir()
    script = """
import errno, sys
from pathlib import Path
from streaming.ledger.ledger import Ledger
from tests.support.interposed.library import failing
path = Path(sys.argv[1]) / "ledger.sqlite"
ledger = Ledger(path)
with failing(path.parent, at=1, number=errno.EDQUOT, lasts=True):
    try:
        ledger.write("CREATE TABLE filler (content BLOB)")
    except OSError as error:
        print(type(error).__name__, error)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "quota")],
        env={**os.environ, "LD_PRELOAD": str(made_library("disk", tmp_path))},
        capture_output=True,
        text=True,
        check=True,
    )
    path = tmp_path / "quota" / "ledger.sqlite"
    assert ended.stdout.strip() == (
        f"OSError [Errno {errno.EDQUOT}] Disk quota exceeded: '{path}'"
    )


@needs_root
@pytest.mark.kafka
@pytest.mark.spark
def test_job_on_a_full_disk_ends_in_one_line_and_continues(
    topic: Callable[..., KafkaSettings], spark: SparkSession, tmp_path: Path
) -> None:
    """Once there is space, it counts each record once."""
    kafka = topic()
    with small_disk(tmp_path / "disk", "20m") as disk:
        settings = job_settings(kafka, disk / "a")
        produce(kafka, {"value": a_frame("a")})
        with running_job(spark, settings) as job:
            wait_for_end(job)
        produce(kafka, {"value": a_frame("b")})
        fill(disk)
        with (
            pytest.raises((JobFailed, OSError)) as failed,
            running_job(spark, settings) as job,
        ):
            wait_for_end(job)
        assert "No space left on device" in str(failed.value)
        if isinstance(failed.value, JobFailed):
            assert failed.value.cause.endswith(MORE_SPACE)
        (disk / "filler").unlink()
        with running_job(spark, settings) as job:
            wait_for_end(job)
            assert job.report(0)["totals"]["messages"] == 2
