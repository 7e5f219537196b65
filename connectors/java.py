"""Finds a Java installation that can run Kafka 4 and Spark 4."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

NEEDED_VERSION = 17
"""Oldest major version of Java that can run both the Kafka broker and Spark."""

_VERSION_TIMEOUT_S = 30


class JavaMissing(RuntimeError):
    """No usable Java was found."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"Java {NEEDED_VERSION} or newer is needed, but {found}: install a JRE "
            f"(Debian: apt-get install openjdk-{NEEDED_VERSION}-jre-headless) or set "
            "JAVA_HOME to a suitable Java"
        )


def find_java() -> Path:
    """Return the absolute path of a `java` executable of version 17 or newer.

    If JAVA_HOME is set, PATH is not searched, because Spark's launcher does not search
    PATH either.

    Raises:
        JavaMissing: Java is missing, is too old, or does not run.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java").absolute()
        if not java.is_file():
            found = f"{java} (JAVA_HOME) does not exist"
            raise JavaMissing(found)
    else:
        on_path = shutil.which("java")
        if on_path is None:
            raise JavaMissing("JAVA_HOME is not set, and PATH has no java")
        java = Path(on_path).absolute()
    version = _major_version(java)
    if version is None:
        found = f"the version of {java} could not be determined"
        raise JavaMissing(found)
    if version < NEEDED_VERSION:
        found = f"{java} has version {version}"
        raise JavaMissing(found)
    return java


def _major_version(java: Path) -> int | None:
    """Return Java's major version, such as 8 for `1.8.0_392`; None if it is unknown."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own java, no shell
            [java, "-version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_VERSION_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # If JAVA_TOOL_OPTIONS is set, java prints another line before the version.
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version else None
