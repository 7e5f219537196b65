"""What `run` refuses before it prints its page's address and starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from sds_core.text import printable
from streaming.checkpoint import check_identity, locked_checkpoint, record_start
from streaming.history import locked_history
from tests.support.cli.command import sds_monitor

NO_KAFKA = "127.0.0.1:1"
"""Nothing listens there. A start that is not refused waits for it."""


def refusal_of(checkpoint: Path, *flags: str) -> str:
    """The one line with which `run` ends; it must print nothing else."""
    result = sds_monitor(
        "run",
        *("--bootstrap", NO_KAFKA, "--kafka-timeout", "1", "--metrics-port", "0"),
        *("--checkpoint", str(checkpoint), *flags),
    )
    assert result.returncode == 2
    assert result.stdout == ""
    return printable(result.stderr.strip())


def test_checkpoint_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    """The line names the directory and the option."""
    (tmp_path / "file").write_text("")
    refusal = refusal_of(tmp_path / "file" / "state")
    assert "file/state cannot be written to" in refusal
    assert "--checkpoint" in refusal


def test_checkpoint_of_another_job_is_refused_at_once(tmp_path: Path) -> None:
    """That job goes on."""
    with locked_checkpoint(tmp_path):
        assert "another job runs on checkpoint" in refusal_of(tmp_path)


def test_checkpoint_of_another_topic_is_refused_at_once(tmp_path: Path) -> None:
    """Both topics are named."""
    with locked_checkpoint(tmp_path):
        record_start(tmp_path, check_identity(tmp_path, "old", False, False), ())
    refusal = refusal_of(tmp_path, "--topic", "new")
    assert "was begun with topic old, not new" in refusal


@pytest.mark.parametrize("what", ["in use", "unwritable"])
def test_history_that_cannot_be_used_is_refused_at_once(
    what: str, tmp_path: Path
) -> None:
    """As the checkpoint."""
    (tmp_path / "file").write_text("")
    if what == "in use":
        history = tmp_path / "history"
        with locked_history(history):
            refusal = refusal_of(tmp_path / "a", "--history", str(history))
        assert f"another job writes to history {history}" in refusal
    else:
        history = tmp_path / "file" / "history"
        refusal = refusal_of(tmp_path / "a", "--history", str(history))
        assert f"history {history} cannot be written to" in refusal
