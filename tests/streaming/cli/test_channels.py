"""The channel table of a command, and SIGHUP."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import pytest

from streaming.cli.channels import reload_on_hangup
from tests.support.cli.command import sds_monitor


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A channel table with one entry."""
    path = tmp_path / "channels.toml"
    path.write_text('[[channel]]\nmatch = "a"\nname = "First"\n')
    return path


def test_hangup_reloads_the_channel_table(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once per signal; an invalid file changes nothing."""
    caplog.set_level(logging.INFO, "sds-monitor")
    before = signal.getsignal(signal.SIGHUP)
    with reload_on_hangup(file) as table:
        assert table is not None
        assert table.reload_if_requested() is None
        file.write_text('[[channel]]\nmatch = "a"\nname = "Second"\n')
        os.kill(os.getpid(), signal.SIGHUP)
        found = table.reload_if_requested()
        assert found is not None
        assert found.of("a").name == "Second"
        assert table.reload_if_requested() is None
        for bad in ("[[channel]]\n", ""):
            file.write_text(bad)
            os.kill(os.getpid(), signal.SIGHUP)
            assert table.reload_if_requested() is None
    assert signal.getsignal(signal.SIGHUP) is before
    assert caplog.messages == [
        "the channel table was read again: 1 entry",
        f"the channel table remains unchanged: {file}: entry 1 lacks the key 'match'",
        f"the channel table remains unchanged: {file}: the file has no entries: add "
        "an entry for a channel",
    ]


def test_hangup_without_a_table_ends_the_process() -> None:
    """As the default action does."""
    before = signal.getsignal(signal.SIGHUP)
    with reload_on_hangup(None) as table:
        assert table is None
        assert signal.getsignal(signal.SIGHUP) is before


@pytest.mark.parametrize("command", ["run", "demo"])
def test_invalid_table_is_refused_before_anything_starts(
    command: str, file: Path, tmp_path: Path
) -> None:
    """Exit code 2, in one line."""
    file.write_text('[[channel]]\nmatch = "a"\nlabel = 1\n')
    flags = ["--channels", str(file)]
    if command == "run":
        flags += ["--bootstrap", "127.0.0.1:1", "--checkpoint", str(tmp_path)]
    found = sds_monitor(command, *flags)
    assert found.returncode == 2
    assert found.stderr.startswith(f"sds-monitor: --channels: {file}: entry 1 ('a')")
    assert len(found.stderr.splitlines()) == 1
    assert found.stdout == ""
