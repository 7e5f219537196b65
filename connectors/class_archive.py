"""Archives of loaded Java classes; an archive halves a JVM's start time (JEP 350).

If an archive was made with another JVM build or class path, the JVM starts without the
archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of one program for one Java installation; its file may not exist."""

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
        """Return the archive of a program for one Java installation and class path.

        The class path consists of jars or directories of jars. `content` describes what
        the program does while the JVM records the archive. If `content` changes, the
        path of the archive changes, so a new archive is recorded.
        """
        known = hashlib.sha256(content.encode())
        for place in (java.resolve(), *class_path):
            known.update(f"{place} {place.stat().st_mtime_ns}\n".encode())
        return cls(directory / f"{program}-{known.hexdigest()[:16]}.jsa")

    @property
    def options(self) -> list[str]:
        """Options that make a JVM use the archive; empty if the archive is missing."""
        return [f"-XX:SharedArchiveFile={self.path}"] if self.path.exists() else []

    @contextmanager
    def recording(self) -> Iterator[list[str]]:
        """Yield the options that make a JVM write the archive.

        The JVM must end within the block, because it writes the archive when it ends.
        When the block ends, older archives of the same program are deleted.

        Raises:
            OSError: The directory cannot be written to, or the JVM wrote no archive.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The archive gets its final name only when it is complete, because a JVM that
        # maps an incomplete archive crashes.
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        try:
            # Without the second option, the JVM would log each class that it omits from
            # the archive.
            yield [f"-XX:ArchiveClassesAtExit={unfinished}", "-Xlog:cds=off"]
            unfinished.replace(self.path)
        finally:
            unfinished.unlink(missing_ok=True)
        program = self.path.name.rpartition("-")[0]
        for other in self.path.parent.glob(f"{program}-*.jsa"):
            if other != self.path:
                other.unlink(missing_ok=True)
