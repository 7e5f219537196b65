"""Errors that say what to do when a history cannot be read."""

from __future__ import annotations

from pathlib import Path


class NoHistory(LookupError):
    """The directory is not there, or no monitor has written a history to it.

    Attributes:
        path: Where it was looked for.
        other: Where one is that may be meant; None if none was seen.
    """

    def __init__(self, path: Path, other: Path | None = None) -> None:
        self.path = path
        self.other = other
        remedy = (
            "it is the directory that the monitor writes its history to"
            if other is None
            else f"there is one in {other}"
        )
        super().__init__(f"there is no history in {path}: {remedy}")


class DamagedHistory(ValueError):
    """A file of the history cannot be read.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, cause: Exception) -> None:
        self.path = path
        first_line = str(cause).partition("\n")[0]
        super().__init__(
            f"{path} cannot be read ({first_line}): bring it back from a backup, or "
            "move it away to go on without its rows"
        )
