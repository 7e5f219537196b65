"""What a disk has after a power failure, from the log of what a process did.

Three disks are imagined, each within what POSIX allows:

- `STRICT` has nothing but what was synced: contents by the sync of the file, names by
  that of the directory.
- `EAGER` has every name at once, but contents only when synced, as ext4 and XFS may.
- `ORDERLY` has all that was done until then: also what a killed process leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class Disk(Enum):
    """What of the unsynced is there."""

    STRICT = "strict"
    EAGER = "eager"
    ORDERLY = "orderly"


class Operation(NamedTuple):
    """What one call changed; see `disk.c`."""

    process: int
    kind: str
    inode: int
    offset: int
    path: str
    data: bytes


def read_log(path: Path) -> list[Operation]:
    """Read what a process did, in order."""
    operations = []
    with path.open("rb") as file:
        while line := file.readline():
            fields = line.rstrip(b"\n").decode().split(" ", 5)
            process, kind, inode, offset, length, name = fields
            data = file.read(int(length))
            numbers = int(inode), int(offset)
            operations.append(Operation(int(process), kind, *numbers, name, data))
    return operations


@dataclass
class _File:
    content: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


@dataclass
class _Directory:
    names: dict[str, _Entry] = field(default_factory=dict)
    synced: dict[str, _Entry] = field(default_factory=dict)


_Entry = _File | _Directory


class Machine:
    """The files of a machine below a directory, which is durable itself."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._top = _Directory()
        self._files: dict[int, _File] = {}

    def apply(self, one: Operation) -> None:
        """Do what a process did."""
        path = Path(one.path.removesuffix(" (deleted)"))
        match one.kind:
            case "c":
                self._files[one.inode] = _File()
                self._parent(path).names[path.name] = self._files[one.inode]
            case "m":
                self._parent(path).names[path.name] = _Directory()
            case "w" | "t":
                self._write(self._files[one.inode].content, one)
            case "s" if one.inode in self._files and not self._is_directory(path):
                file = self._files[one.inode]
                file.synced = bytes(file.content)
            case "s":
                directory = self._entry(path)
                assert isinstance(directory, _Directory), one
                directory.synced = dict(directory.names)
            case "r":
                after = Path(one.data.decode())
                entry = self._parent(path).names.pop(path.name)
                self._parent(after).names[after.name] = entry
            case "u":
                del self._parent(path).names[path.name]

    def lay_out(self, disk: Disk, place: Path) -> None:
        """Write what a disk has after a power failure now."""
        self._lay_out(self._top, disk, place)

    def _lay_out(self, entry: _Entry, disk: Disk, place: Path) -> None:
        if isinstance(entry, _File):
            is_there = disk is Disk.ORDERLY
            place.write_bytes(entry.content if is_there else entry.synced)
            return
        place.mkdir()
        names = entry.synced if disk is Disk.STRICT else entry.names
        for name, inner in names.items():
            self._lay_out(inner, disk, place / name)

    def _write(self, content: bytearray, one: Operation) -> None:
        end = one.offset + len(one.data)
        content.extend(bytes(max(0, end - len(content))))
        if one.kind == "t":
            del content[one.offset :]
        content[one.offset : end] = one.data

    def _is_directory(self, path: Path) -> bool:
        parts = path.relative_to(self._root).parts
        entry: _Entry | None = self._top
        for part in parts:
            entry = entry.names.get(part) if isinstance(entry, _Directory) else None
        return isinstance(entry, _Directory)

    def _entry(self, path: Path) -> _Entry:
        entry: _Entry = self._top
        for part in path.relative_to(self._root).parts:
            assert isinstance(entry, _Directory), path
            entry = entry.names[part]
        return entry

    def _parent(self, path: Path) -> _Directory:
        parent = self._entry(path.parent)
        assert isinstance(parent, _Directory), path
        return parent


def failures(
    root: Path, operations: Sequence[Operation], disk: Disk, place: Path
) -> Iterator[tuple[int, Path]]:
    """Yield a disk after a power failure before each operation, and after the last.

    Args:
        root: The directory that the log is about; empty at its start.
        operations: The log.
        disk: What of the unsynced is there.
        place: Directory for the disks; each is one of its directories.
    """
    machine = Machine(root)
    for number in range(len(operations) + 1):
        image = place / f"{disk.value}-{number}"
        machine.lay_out(disk, image)
        yield number, image
        if number < len(operations):
            machine.apply(operations[number])
