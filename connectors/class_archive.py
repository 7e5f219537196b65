"""Archives of loaded classes, with which a JVM starts in half the time (JEP 350).

A JVM compares an archive with its own build and its class path. If they differ, it
starts without the archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of one program on one Java; the file need not exist."""

    path: Path

    @classmethod
    def of(
        cls,
        program: str,
        directory: Path,
        java: Path,
        class_path: Sequence[Path],
        content: str = "",
    ) -> ClassArchive:
        """Return the archive of a program; another Java or class path has another.

        Args:
            program: Prefix of the file's name.
            directory: Directory of the file.
            java: The `java` that runs the program.
            class_path: Jars, or directories of jars, that the program is loaded from.
            content: What the program does while it is recorded, if a release has
                recorded something else.
        """
        known = hashlib.sha256(content.encode())
        for place in (java.resolve(), *class_path):
            known.update(f"{place} {place.stat().st_mtime_ns}\n".encode())
        return cls(directory / f"{program}-{known.hexdigest()[:16]}.jsa")

    @property
    def exists(self) -> bool:
        """Whether the archive has been made."""
        return self.path.exists()

    @property
    def options(self) -> list[str]:
        """Options of a JVM that uses the archive; none if it does not exist."""
        return [f"-XX:SharedArchiveFile={self.path}"] if self.exists else []

    @contextmanager
    def recording(self) -> Iterator[list[str]]:
        """Give the options of a JVM that makes the archive.

        The JVM must have ended, in order, at the end of the block: it writes the
        archive as it ends. Archives of other versions of the program are deleted.

        Raises:
            OSError: The directory cannot be written to, or no archive was written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A JVM that maps half an archive crashes.
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        try:
            # The JVM names each class that it omits.
            yield [f"-XX:ArchiveClassesAtExit={unfinished}", "-Xlog:cds=off"]
            unfinished.replace(self.path)
        finally:
            unfinished.unlink(missing_ok=True)
        program = self.path.name.rpartition("-")[0]
        for other in self.path.parent.glob(f"{program}-*.jsa"):
            if other != self.path:
                other.unlink(missing_ok=True)
