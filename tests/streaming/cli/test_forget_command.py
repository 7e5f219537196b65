"""``sds-monitor forget``: what it asks of the job, and what it refuses."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streaming.chunk import FORGET
from streaming.cli.forget import command
from streaming.damage import LEDGER
from streaming.ledger.ledger import Ledger
from streaming.ledger.view_register import ViewRegister


def forget(
    checkpoint: Path, *channels: str, flag: str | None = "--yes", answer: str = ""
) -> Result:
    """Run the command."""
    flags = [] if flag is None else [flag]
    arguments = ["--checkpoint", str(checkpoint), *flags, "--", *channels]
    return CliRunner().invoke(command, arguments, input=answer)


@pytest.fixture
def register(tmp_path: Path) -> ViewRegister:
    """The register of a checkpoint with two channels and a view of another kind."""
    register = ViewRegister(Ledger(tmp_path / "monitor" / LEDGER))
    register.set_keys(["sds:town", "sds:square:1", "toy:hall"])
    return register


def test_known_channels_are_requested(tmp_path: Path, register: ViewRegister) -> None:
    """Each by its own number; an id may hold anything."""
    result = forget(tmp_path, "town", "square:1")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "channel town is forgotten with the next batch",
        "channel square:1 is forgotten with the next batch",
    ]
    assert register.requests(0, register.newest_request()) == [
        ("sds:town", FORGET),
        ("sds:square:1", FORGET),
    ]


def test_dry_run_prints_the_channels_and_forgets_none(
    tmp_path: Path, register: ViewRegister
) -> None:
    """And refuses an unknown one as the command itself does."""
    result = forget(tmp_path, "town", "square:1", flag="--dry-run")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        ["channel town would be forgotten", "channel square:1 would be forgotten"],
    )
    assert forget(tmp_path, "twon", flag="--dry-run").exit_code == 2
    assert register.newest_request() == 0


@pytest.mark.parametrize(("answer", "requests"), [("y\n", 1), ("n\n", 0), ("", 0)])
def test_terminal_is_asked(
    answer: str,
    requests: int,
    tmp_path: Path,
    register: ViewRegister,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only a yes forgets the channel."""
    terminal = "click.testing._NamedTextIOWrapper.isatty"
    monkeypatch.setattr(terminal, lambda _: True, raising=False)
    result = forget(tmp_path, "town", flag=None, answer=answer)
    assert "Forget 1 channel: town?" in result.stdout
    assert register.newest_request() == requests


def test_without_a_terminal_a_confirmation_is_needed(
    tmp_path: Path, register: ViewRegister
) -> None:
    """Instead of a question that no person reads."""
    result = forget(tmp_path, "town", flag=None, answer="y\n")
    assert result.exit_code == 2
    assert "give --yes or --dry-run" in result.stderr
    assert register.newest_request() == 0


@pytest.mark.parametrize(
    ("channel", "suggestion"),
    [("twon", " (did you mean 'town'?)"), ("hall", ""), ("", "")],
)
def test_unknown_channel_is_refused_with_a_suggestion(
    channel: str, suggestion: str, tmp_path: Path, register: ViewRegister
) -> None:
    """Then the known ones beside it stay too."""
    result = forget(tmp_path, "town", channel)
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert last == f"Error: no such channel: {channel!r}{suggestion}"
    assert register.newest_request() == 0


def test_checkpoint_without_a_list_of_channels_is_refused(tmp_path: Path) -> None:
    """One of an older release, or another directory; no file is made in it."""
    result = forget(tmp_path, "town")
    assert result.exit_code == 2
    assert "ledger.sqlite does not exist: start the monitor once" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_damaged_list_is_refused_in_one_line(tmp_path: Path) -> None:
    """With the remedy."""
    path = tmp_path / "monitor" / LEDGER
    path.parent.mkdir()
    path.write_text("not a database" * 500)
    result = forget(tmp_path, "town")
    assert result.exit_code == 2
    assert "ledger.sqlite is damaged" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("place", [".", LEDGER])
def test_file_of_another_user_is_refused_in_one_line(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the checkpoint's name."""
    directory = tmp_path / "monitor"
    Ledger(directory / LEDGER).write("INSERT INTO views VALUES ('sds:town')")
    # Rights do not bind root.
    read_only = {directory, directory / LEDGER} & {(directory / place).resolve()}
    monkeypatch.setattr(
        sqlite3, "connect", partial(_connect_read_only, sqlite3.connect)
    )
    monkeypatch.setattr(os, "access", lambda path, _: path not in read_only)
    result = forget(tmp_path, "town")
    assert result.exit_code == 2
    assert f"{tmp_path} cannot be written to" in result.stderr.splitlines()[-1]


def _connect_read_only(
    connect: Callable[..., sqlite3.Connection], path: Path, *args: Any, **options: Any
) -> sqlite3.Connection:
    return connect(f"file:{path}?mode=ro", *args, uri=True, **options)
