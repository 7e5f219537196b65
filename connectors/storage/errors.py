"""Errors of a store of participants.

    StorageError (attribute path)
    ├── StorageInUse        another process has it open
    └── StorageUnreadable   it is no such store, or damaged

`SnapshotError` of `sds_core.message_channel` is raised as it is: it says that the
stored state does not fit the profile.
"""

from __future__ import annotations

from pathlib import Path


class StorageError(Exception):
    """A store of participants cannot be used.

    Attributes:
        path: Its file.
    """

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path


class StorageInUse(StorageError):
    """Another process has the store open."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "another process has it open; end that one first")


class StorageUnreadable(StorageError, ValueError):
    """The file is not a store of participants, or it is damaged."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(path, f"cannot be read as a store of participants: {detail}")
        self.detail = detail
