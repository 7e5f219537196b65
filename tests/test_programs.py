"""Tests that need a program are skipped where it is missing, and counted."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import (
    FOR_LONG_TESTS,
    OF_MARKERS,
    PROGRAMS,
    count_skipped,
    has_node,
    missing_line,
    needed_by,
    skip_without,
)

INSTALLER = Path(__file__).parents[1] / "tools" / "install-test-programs"


@pytest.fixture
def marked(request: pytest.FixtureRequest) -> pytest.Item:
    """This test's own item, whose markers a test may add to."""
    item: pytest.Item = request.node
    return item


def reasons(item: pytest.Item) -> list[str]:
    """Why a test is skipped."""
    return [one.kwargs["reason"] for one in item.iter_markers("skip")]


def test_markers_name_the_programs_that_their_tests_need(marked: pytest.Item) -> None:
    """Marker `needs` has their names."""
    marked.add_marker("kafka")
    marked.add_marker("node")
    marked.add_marker(pytest.mark.needs("promtool", "go"))
    assert needed_by(marked) == {"java", "node", "npm", "promtool", "go"}


def test_only_tests_that_need_what_is_missing_are_skipped(marked: pytest.Item) -> None:
    """The reason names it."""
    marked.add_marker("spark")
    skip_without([marked], ["chromium", "promtool"])
    assert reasons(marked) == []
    marked.add_marker("browser")
    skip_without([marked], ["chromium", "java", "promtool"])
    assert reasons(marked) == ["needs chromium, java"]


def test_misspelt_program_is_an_error(marked: pytest.Item) -> None:
    """Otherwise its tests would fail instead of being skipped."""
    marked.add_marker(pytest.mark.needs("promtol"))
    with pytest.raises(pytest.UsageError, match="promtol"):
        needed_by(marked)


def test_lines_name_what_is_missing_and_how_much_was_skipped() -> None:
    """At the start and at the end; other reasons to skip do not count."""
    assert missing_line(["go", "npm"]).startswith(
        "missing programs: go, npm; tests that need them are skipped"
    )
    skipped = count_skipped(["Skipped: needs go", "Skipped: needs npm, node", "other"])
    assert "; 2 tests were skipped" in missing_line(["go", "npm"], skipped)


def test_old_node_counts_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library needs version 20."""
    node = tmp_path / "node"
    monkeypatch.setenv("PATH", str(tmp_path))
    for version, is_enough in (("v18.20.4", False), ("v20.0.0", True)):
        node.write_text(f"#!/bin/sh\necho {version}\n")
        node.chmod(0o700)
        assert has_node() is is_enough


def test_installer_installs_the_programs_that_tests_need() -> None:
    """The same programs in the same order."""
    ordinary, long = re.findall(
        r"cat <<'END'\n(.*?)END\n", INSTALLER.read_text(), re.DOTALL
    )
    names = [line.partition(":")[0] for line in (ordinary + long).splitlines()]
    assert {line.partition(":")[0] for line in long.splitlines()} == FOR_LONG_TESTS
    assert names == list(PROGRAMS)
    assert {name for needed in OF_MARKERS.values() for name in needed} <= set(names)


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """Environment of a machine that has none of the programs, of user 1000."""
    (tmp_path / "bin").mkdir()
    for name in ("bash", "cat"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    identity = tmp_path / "bin" / "id"
    identity.write_text("#!/bin/bash\necho 1000\n")
    identity.chmod(0o700)
    return {"PATH": str(tmp_path / "bin")}


def test_installer_lists_missing_programs_for_other_users(
    elsewhere: dict[str, str],
) -> None:
    """In one line with Debian package names; nothing is installed."""
    done = subprocess.run(
        [INSTALLER, "--long"],
        env=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert all(name in line for name in PROGRAMS)
    assert "apt-get install openjdk-17-jre-headless prometheus" in line
