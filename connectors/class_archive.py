"""Archives of loaded Java classes; an archive halves a JVM's start time (JEP 350).

If an archive does not match the JVM's build or class path, the JVM starts without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of one program on one Java; its file may not exist."""

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

        The class path consists of jars or directories of jars. `content` describes the
        program's actions during the recording; a change of `content` causes a new
        recording.
        """
        known = hashlib.sha256(content.encode())
        for place in (java.resolve(), *class_path):
            known.update(f"{place} {place.stat().st_mtime_ns}\n".encode())
        return cls(directory / f"{program}-{known.hexdigest()[:16]}.jsa")

    @property
    def options(self) -> list[str]:
        """JVM options that use the archive; empty if the archive does not exist."""
        return [f"-XX:SharedArchiveFile={self.path}"] if self.path.exists() else []

    @contextmanager
    def recording(self) -> Iterator[list[str]]:
        """Yield the options of a JVM that writes the archive.

        The JVM must end within the block, because it writes the archive when it ends.
        Afterwards, archives of other versions of the program are deleted.

        Raises:
            OSError: The directory cannot be written to, or the JVM wrote no archive.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A JVM would crash if it mapped an incomplete archive.
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        try:
            # By default, the JVM logs each class that it omits from the archive.
            yield [f"-XX:ArchiveClassesAtExit={unfinished}", "-Xlog:cds=off"]
            unfinished.replace(self.path)
        finally:
            unfinished.unlink(missing_ok=True)
        program = self.path.name.rpartition("-")[0]
        for other in self.path.parent.glob(f"{program}-*.jsa"):
            if other != self.path:
                other.unlink(missing_ok=True)
