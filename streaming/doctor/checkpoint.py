"""Checks of a checkpoint, which no job may use during the checks."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from connectors.history.layout import LOCK
from streaming.directories import DirectoryUnwritable
from streaming.history import locked_history
from streaming.open_checkpoint import check_start
from streaming.settings import JobSettings


def find_in_checkpoint(settings: JobSettings) -> Iterator[str]:
    """Yield why a job cannot use its checkpoint or history; creates no directory.

    A new checkpoint and a history without a lock file stay as they are.

    Raises:
        Exception: See `streaming.open_checkpoint.check_start`.
    """
    checkpoint, history = settings.checkpoint, settings.history
    is_new = not os.path.isdir(checkpoint) or not os.listdir(checkpoint)
    if not is_new and (foreign := [*_foreign_files(checkpoint)]):
        # Further checks would create a lock file of this user, which the owner of the
        # checkpoint cannot use.
        yield from foreign
        return
    for what, directory in (
        ("checkpoint", checkpoint),
        ("history", checkpoint if history is None else history.directory),
    ):
        path = directory.absolute()
        nearest = next(one for one in (path, *path.parents) if os.path.lexists(one))
        if not nearest.exists():
            target = nearest.readlink()
            reason = f"the link {nearest} leads to {target}, which does not exist"
            raise DirectoryUnwritable(what, directory, reason)
        if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
            made = "file" if nearest == path else "directory"
            reason = f"no {made} can be created in {nearest}"
            raise DirectoryUnwritable(what, directory, reason)
    if history is not None and not (history.directory / LOCK).exists():
        history = None
    if not is_new:
        check_start(replace(settings, history=history), thorough=True)
    elif history is not None:
        with locked_history(history.directory):
            pass


def _foreign_files(checkpoint: Path) -> Iterator[str]:
    for path in (checkpoint, *checkpoint.rglob("*")):
        # A running job may remove the file after it was listed.
        with suppress(FileNotFoundError):
            owner = path.lstat().st_uid
            if owner != os.geteuid():
                yield (
                    f"{path} belongs to user {_name_of(owner)}, and this is user "
                    f"{_name_of(os.geteuid())}: run the monitor as the owner, or give "
                    f"all files of {checkpoint} to one user with chown -R"
                )
                return


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
