"""Programs beside Python that tests start, and skipping the tests if one is missing.

A test names them by the marker `needs("promtool", ...)`. The markers `kafka`, `spark`,
`browser` and `node` name theirs. `tools/install-test-programs --long` installs all of
them on Debian.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from connectors.java import JavaMissing, find_java

OLDEST_NODE = 20
"""Major version of Node that runs `@waku/sds`."""

OF_MARKERS: Mapping[str, tuple[str, ...]] = {
    "kafka": ("java",),
    "spark": ("java",),
    "browser": ("chromium",),
    "node": ("node", "npm"),
}
"""Programs by the marker whose tests need them."""


def has_java() -> bool:
    """Whether there is a Java that runs Kafka and Spark."""
    try:
        find_java()
    except JavaMissing:
        return False
    return True


def has_chromium() -> bool:
    """Whether Chromium is on PATH, or Playwright has installed its own."""
    browsers = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "~/.cache/ms-playwright")
    own = Path(browsers).expanduser().glob("chromium*")
    return shutil.which("chromium") is not None or any(own)


def has_node() -> bool:
    """Whether Node is on PATH, and new enough."""
    node = shutil.which("node")
    if node is None:
        return False
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    version = re.match(r"v(\d+)\.", said)
    return version is not None and int(version[1]) >= OLDEST_NODE


def _is_on_path(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


PROGRAMS: Mapping[str, Callable[[], bool]] = {
    "java": has_java,
    "promtool": _is_on_path("promtool"),
    "prometheus": _is_on_path("prometheus"),
    "prometheus-alertmanager": _is_on_path("prometheus-alertmanager"),
    "amtool": _is_on_path("amtool"),
    "chromium": has_chromium,
    "node": has_node,
    "npm": _is_on_path("npm"),
    "go": _is_on_path("go"),
    "vale": _is_on_path("vale"),
    "helm": _is_on_path("helm"),
    "kubeconform": _is_on_path("kubeconform"),
}
"""By name, whether a program is there. Markers can name no others."""

FOR_LONG_TESTS = frozenset({"helm", "kubeconform"})
"""Programs that only tests marked `long` need."""


def find_missing() -> list[str]:
    """Names of the programs that are not there."""
    return [name for name, is_there in PROGRAMS.items() if not is_there()]


def needed_by(item: pytest.Item) -> set[str]:
    """Names of the programs that a test needs.

    Raises:
        pytest.UsageError: Its marker names a program that is not in `PROGRAMS`.
    """
    names: set[str] = set()
    for marker in item.iter_markers():
        if marker.name == "needs":
            names.update(marker.args)
        else:
            names.update(OF_MARKERS.get(marker.name, ()))
    if unknown := names - PROGRAMS.keys():
        message = f"{item.nodeid} needs {sorted(unknown)}, which PROGRAMS lacks"
        raise pytest.UsageError(message)
    return names


def skip_without(items: Iterable[pytest.Item], missing: Collection[str]) -> None:
    """Mark tests to be skipped that need a missing program."""
    for item in items:
        lacking = sorted(needed_by(item) & set(missing))
        if lacking:
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(lacking)}"))


def missing_line(missing: Sequence[str], skipped: int | None = None) -> str:
    """The line at the start of a run; with the number of skipped tests, at its end."""
    names = ", ".join(missing)
    count = "tests that need them are" if skipped is None else f"{skipped} tests were"
    return f"missing programs: {names}; {count} skipped (tools/install-test-programs)"


def count_skipped(reasons: Iterable[str]) -> int:
    """How many of some skipped tests were skipped for a missing program.

    Args:
        reasons: Of each skipped test, as pytest gives them.
    """
    return sum(reason.startswith("Skipped: needs ") for reason in reasons)
