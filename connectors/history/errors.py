"""Errors that say what to do when a history cannot be read."""

from __future__ import annotations

from pathlib import Path


class NoHistory(LookupError):
    """There is no such directory.

    Attributes:
        path: Where it was looked for.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"there is no history in {path}: it is the directory that the monitor "
            "writes its history to"
        )


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
