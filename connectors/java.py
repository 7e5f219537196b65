"""Finding a Java that runs Kafka 4 and Spark 4."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

NEEDED_VERSION = 17
"""Oldest major version on which both the Kafka broker and Spark run."""

_VERSION_TIMEOUT_S = 30


class JavaMissing(RuntimeError):
    """There is no Java here, or none that is new enough.

    Attributes:
        found: what is there instead, in words.
    """

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        """Say what is wrong and what to do."""
        return (
            f"Java {NEEDED_VERSION} or newer is needed, found {self.found}: install "
            f"a JRE (Debian: apt-get install openjdk-{NEEDED_VERSION}-jre-headless) "
            "or point JAVA_HOME at one"
        )


def find_java() -> Path:
    """Return the absolute path of a `java` of version 17 or newer.

    JAVA_HOME decides if it is set, as it does in Spark's own launcher: going on to
    PATH would pass a Java that Spark then does not use.

    Raises:
        JavaMissing: none is found, or the one found is too old or does not run.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java").absolute()
        if not java.is_file():
            found = f"none at {java} (JAVA_HOME)"
            raise JavaMissing(found)
    else:
        on_path = shutil.which("java")
        if on_path is None:
            found = "none: JAVA_HOME is not set and PATH has no java"
            raise JavaMissing(found)
        java = Path(on_path).absolute()
    version = _major_version(java)
    if version is None:
        found = f"one that does not tell its version at {java}"
        raise JavaMissing(found)
    if version < NEEDED_VERSION:
        found = f"{version} at {java}"
        raise JavaMissing(found)
    return java


def _major_version(java: Path) -> int | None:
    """Return 8 for `1.8.0_392`, 17 for `17.0.15`; None if it does not say."""
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
    # Not anchored: JAVA_TOOL_OPTIONS makes java print a line before it.
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version else None
