"""Errors of files with the state of participants and channels.

    StorageError (attribute path)
    ├── StorageInUse        another process has it open
    └── StorageUnreadable   it is no such file, or damaged

`SnapshotError` of `sds_core.message_channel` is raised as it is: it says that the
stored state does not fit the profile.
"""

from __future__ import annotations

from pathlib import Path


class StorageError(Exception):
    """The file cannot be used."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path


class StorageInUse(StorageError):
    """Another process has it open; two with one state would contradict each other."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "another process has it open; end that one first")


class StorageUnreadable(StorageError, ValueError):
    """Another program, or another version, made the file, or it is damaged."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(path, f"cannot be read: {detail}")
        self.detail = detail
