"""Errors that occur while a history is read; each error's message states the remedy."""

from __future__ import annotations

from pathlib import Path


class NoHistory(LookupError):
    """The directory does not exist, or no monitor has written a history to it.

    If the directory has a subdirectory `history` that contains a history, the error's
    message names this subdirectory.
    """

    def __init__(self, path: Path, other: Path | None) -> None:
        remedy = (
            "give the directory to which the monitor writes its history"
            if other is None
            else f"give {other}, which contains a history"
        )
        super().__init__(f"no history was found in {path}: {remedy}")


class DamagedHistory(ValueError):
    """A file of the history cannot be read."""

    def __init__(self, path: Path, cause: Exception) -> None:
        self.path = path
        first_line = str(cause).partition("\n")[0]
        super().__init__(
            f"{path} cannot be read ({first_line}): restore the file from a backup, "
            "or move the file away to continue without its rows"
        )
